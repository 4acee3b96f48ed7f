"""`stentor transcribe`: recordings to text, on standard output or as files beside each other.

Owns what is printed and how a batch goes on past a bad file. The work is the server's, or that of the same routes
inside this process where none runs.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import (
    DeadlinePassed,
    EngineFailed,
    InvalidRequest,
    SidecarDied,
    SidecarStalled,
    StentorError,
    TooLarge,
    UndecodableAudio,
)
from ..settings import Settings
from .options import with_settings
from .progress import Progress, numbers, rtf
from .recordings import SUFFIXES, Recording, recordings, write_beside

if TYPE_CHECKING:
    import httpx

ROUTE = "/v1/audio/transcriptions"
SECONDS_HEADER = "x-stentor-audio-seconds"
# Failures of one file, after which the next one is worth trying; all others would meet every file.
OF_ONE_FILE = (UndecodableAudio, TooLarge, EngineFailed, SidecarDied, SidecarStalled, DeadlinePassed)


@dataclass(slots=True)
class Batch:
    """What was asked, and how far it is."""

    fields: dict[str, str]
    output: Path | None
    as_lines: bool
    files: list[Recording]
    number: int = 0
    elapsed_s: float = 0.0
    audio_s: float = 0.0
    failed: list[str] = field(default_factory=list)

    @property
    def format(self) -> str:
        return self.fields["response_format"]

    @property
    def place(self) -> str:
        return f"file {self.number} of {len(self.files)}, {self.files[self.number - 1].path}"


class Listening(Progress):
    """The line that renews itself while one file is being understood."""

    def __init__(self, batch: Batch) -> None:
        super().__init__()
        self._batch = batch

    def line(self) -> str:
        batch = self._batch
        ratio = rtf(batch.elapsed_s, batch.audio_s)
        before = "" if ratio is None else f"; before: {batch.audio_s:.1f} s audio, RTF {ratio:.2f}"
        return f"{batch.place}: {self.elapsed_s:.1f} s elapsed{before}"


def register(app: typer.Typer) -> None:
    app.command("transcribe")(with_settings(transcribe))


def transcribe(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Audio or video of any container, or folders of it.")
    ],
    *,
    format: Annotated[
        str,
        typer.Option(metavar="NAME", help=f"{', '.join(SUFFIXES)}.", autocompletion=lambda: list(SUFFIXES)),
    ] = "text",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Write a file for each recording; none is overwritten."),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="A listening model; see stentor models.")] = None,
    language: Annotated[str | None, typer.Option(metavar="NAME", help="Code or name (default: detected).")] = None,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="Words that are likely to occur.")] = None,
    lines: Annotated[bool, typer.Option("--json", help="Print a JSON object a line for each file.")] = False,
    settings: Settings,
) -> None:
    """Print or write what is said in recordings.

    Several recordings are printed with their names; in other formats than text they need -o or --json. In a folder,
    what is no audio is passed over. A file that fails does not end the batch; the exit code is 1 then.
    """
    if format not in SUFFIXES:
        raise InvalidRequest(f"--format must be one of {', '.join(SUFFIXES)}, not {format!r}.")
    if output is not None and output.exists() and not output.is_dir():
        raise InvalidRequest(f"-o names a folder for the transcripts, but {output} is a file.")
    found = recordings(files, output)
    if len(found) > 1 and format != "text" and output is None and not lines:
        raise InvalidRequest(f"{len(found)} recordings as {format} need a folder (-o FOLDER) or --json.")
    given = {"model": model, "language": language, "prompt": prompt, "response_format": format}
    batch = Batch({name: value for name, value in given.items() if value}, output, lines, found)
    asyncio.run(_run(settings, batch))
    if batch.failed:
        raise StentorError(f"{len(batch.failed)} of {len(found)} files failed: {', '.join(batch.failed)}.")


async def _run(settings: Settings, batch: Batch) -> None:
    from .connection import api

    async with api(settings) as http:
        for recording in batch.files:
            batch.number += 1
            try:
                await _one(http, batch, recording)
            except OF_ONE_FILE as error:
                _failed(batch, recording, error)
            except OSError as error:
                _failed(batch, recording, StentorError(f"{error.strerror or error}: {error.filename}."))
    if len(batch.files) > 1:
        typer.echo(f"{len(batch.files)} files: {numbers(batch.elapsed_s, batch.audio_s)}", err=True)


async def _one(http: httpx.AsyncClient, batch: Batch, recording: Recording) -> None:
    from .connection import require_ok

    started = time.monotonic()
    with Listening(batch), recording.path.open("rb") as file:
        answer = await http.post(ROUTE, data=batch.fields, files={"file": (recording.path.name, file)})
        await require_ok(answer)
    elapsed, audio = time.monotonic() - started, float(answer.headers.get(SECONDS_HEADER, 0))
    batch.elapsed_s += elapsed
    batch.audio_s += audio
    written = write_beside(answer.text, recording, batch.output, batch.format) if batch.output else None
    to = f" -> {written}" if written else ""
    typer.echo(f"{batch.place}{to}: {numbers(elapsed, audio)}", err=True)
    if batch.as_lines:
        result = {"format": batch.format, "result": _result(answer.text, batch.format)}
        times = {"audio_seconds": audio, "elapsed_s": round(elapsed, 3), "rtf": rtf(elapsed, audio)}
        _line(recording, **result, output=str(written) if written else None, **times)
    elif written is None:
        name = f"{recording.path}: " if len(batch.files) > 1 else ""
        typer.echo(f"{name}{answer.text.rstrip()}")


def _result(body: str, format: str) -> object:
    return json.loads(body) if SUFFIXES[format] == ".json" else body.rstrip("\n")


def _failed(batch: Batch, recording: Recording, error: StentorError) -> None:
    """Say it and go on; what a folder holds beside audio is passed over, not a failure."""
    passed_over = recording.found and isinstance(error, UndecodableAudio)
    if not passed_over:
        batch.failed.append(str(recording.path))
    typer.echo(f"{batch.place}: {'passed over' if passed_over else 'failed'}: {error.message}", err=True)
    if batch.as_lines:
        _line(recording, error={"code": error.code, "message": error.message}, passed_over=passed_over)


def _line(recording: Recording, **facts: Any) -> None:
    typer.echo(json.dumps({"file": str(recording.path), **facts}))
