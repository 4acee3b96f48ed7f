"""Which recordings `transcribe` was given, and where the transcript of each goes. Knows names only, never bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidRequest

SUFFIXES = {"text": ".txt", "json": ".json", "verbose_json": ".json", "srt": ".srt", "vtt": ".vtt"}


@dataclass(frozen=True, slots=True)
class Recording:
    """A file to transcribe. `found`: it was found in a folder, so that it may be anything but audio."""

    path: Path
    beside: Path  # its folder, relative to the folder that was given
    found: bool = False


def recordings(given: list[Path], output: Path | None) -> list[Recording]:
    """The named files and those in named folders, each once. Raises InvalidRequest for what is not there."""
    missing = [str(path) for path in given if not path.exists()]
    if missing:
        raise InvalidRequest(f"no such file: {', '.join(missing)}")
    every: dict[Path, Recording] = {}
    for path in given:
        for one in _in_folder(path, output) if path.is_dir() else [Recording(path, Path())]:
            every.setdefault(one.path.resolve(), one)
    if not every:
        raise InvalidRequest(f"no file in {', '.join(map(str, given))}")
    return list(every.values())


def _in_folder(folder: Path, output: Path | None) -> Iterator[Recording]:
    """By name and in depth, without hidden ones; the folder of transcripts may lie inside and is left out."""
    mine = output.resolve() if output else None
    for here, folders, files in os.walk(folder):
        at = Path(here)
        folders[:] = sorted(one for one in folders if not one.startswith(".") and (at / one).resolve() != mine)
        for name in sorted(files):
            if not name.startswith(".") and (at / name).is_file():  # a named pipe would be waited for
                yield Recording(at / name, at.relative_to(folder), found=True)


def write_beside(text: str, recording: Recording, output: Path, format: str) -> Path:
    """The transcript under the recording's name, or the next free one: nothing that is there is overwritten."""
    folder = output / recording.beside
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        stem = recording.path.stem + (f"-{number}" if number > 1 else "")
        path = folder / f"{stem}{SUFFIXES[format]}"
        try:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except FileExistsError:
            number += 1
        else:
            return path
