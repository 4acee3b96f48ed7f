"""The zip for a bug report: all incidents, the machine they happened on, and a page that says what is inside.

Owns the layout of the zip. Knows nothing of where the facts come from: whoever gives them has left secrets out.
"""

from __future__ import annotations

import json
import platform
import sys
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import InvalidRequest
from .incidents import Incident, as_dict, as_json
from .store import FILES, IncidentStore

DISTRIBUTION = "stentor-speech"

README = """\
A bug report of Stentor, made with: stentor incidents export

incidents.json     all recorded incidents ({count}), the newest first, each with its sentence and its evidence
{files}/           the same, one file each
environment.json   the system, Python, the versions of Stentor and of what it is built on

The texts that were to be spoken, what was transcribed, API keys and what looks like one, and the path of the home
folder were taken out when the incidents were recorded. The names of models, devices and processes are inside. Look
through it before you send it: it is all plain text.
"""


def export(store: IncidentStore, path: Path, facts: Mapping[str, Any]) -> int:
    """Write the zip and return how many incidents are in it. Raises SettingsError for a store that cannot be read,
    InvalidRequest for a file that cannot be written; then nothing is left behind."""
    incidents = store.read()
    part = path.with_name(f"{path.name}.part")
    try:
        try:
            _write(part, incidents, facts)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidRequest(f"cannot write {path}: {error.strerror}. Choose another file with -o.") from error
    return len(incidents)


def _write(path: Path, incidents: list[Incident], facts: Mapping[str, Any]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        _add(file, "README.txt", README.format(count=len(incidents), files=FILES))
        _add(file, "environment.json", _json(environment(facts)))
        _add(file, "incidents.json", _json([as_dict(one) for one in incidents]))
        for one in incidents:
            _add(file, f"{FILES}/{one.id}.json", as_json(one))


def _add(file: zipfile.ZipFile, name: str, text: str) -> None:
    """Dated 1980, as ZipInfo does: a machine that has lost its clock may be in 1970, which zip cannot hold."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    file.writestr(entry, text.encode("utf-8", "replace"))


def environment(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **facts,
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": _versions(),
    }


def _versions() -> dict[str, str]:
    """Of Stentor and of what it requires, as installed here."""
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:  # run from its source
        required = []
    names = [one for one in required if "extra ==" not in one]
    return {name: _version(name) for name in [DISTRIBUTION, *map(_name, names)]}


def _name(requirement: str) -> str:
    """`httpx` of `httpx>=0.27`."""
    end = next((at for at, one in enumerate(requirement) if not (one.isalnum() or one in "-_.")), len(requirement))
    return requirement[:end]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
