"""`stentor transcribe`: audio files to text on standard output."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidRequest
from ..settings import Settings
from .options import with_settings


def register(app: typer.Typer) -> None:
    app.command("transcribe")(with_settings(transcribe))


def transcribe(
    files: Annotated[list[Path], typer.Argument(help="Audio or video files of any container.")],
    *,
    model: Annotated[str | None, typer.Option(help="A transcription model; see /v1/models.")] = None,
    language: Annotated[str | None, typer.Option(help="ISO code or name; else it is detected.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Words that are likely to occur.")] = None,
    settings: Settings,
) -> None:
    """Print what is said in audio files, one line a file (with its name where there are several)."""
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise InvalidRequest(f"no such file: {', '.join(missing)}")
    given = {"model": model, "language": language, "prompt": prompt}
    asyncio.run(_print(settings, files, {key: value for key, value in given.items() if value}))


async def _print(settings: Settings, files: list[Path], fields: dict[str, str]) -> None:
    from . import service

    index = 0
    async for text in service.transcription(settings, files, fields):
        typer.echo(text if len(files) == 1 else f"{files[index]}: {text}")
        index += 1
