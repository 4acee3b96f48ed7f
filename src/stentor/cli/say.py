"""`stentor say`: text to a file, or to the speakers where a player exists."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from ..audio.write import FORMATS
from ..errors import InvalidRequest, SettingsError, StentorError
from ..settings import Settings
from .options import with_settings

if TYPE_CHECKING:
    from ..server.speech_request import SpeechRequest

PLAYERS = (
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "error"),
    ("mpv", "--really-quiet", "--no-video"),
    ("paplay",),
    ("pw-play",),
    ("aplay", "-q"),
    ("afplay",),
)


def register(app: typer.Typer) -> None:
    app.command("say")(with_settings(say))


def say(
    text: Annotated[list[str] | None, typer.Argument(help="What to say; '-' or nothing reads standard input.")] = None,
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write here; the suffix picks the format.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A speech model; see /v1/models.")] = None,
    voice: Annotated[str | None, typer.Option(help="A voice of that model.")] = None,
    language: Annotated[str | None, typer.Option(help="ISO code or name; else the model decides.")] = None,
    instructions: Annotated[str | None, typer.Option(help="How to speak, for models that take it.")] = None,
    speed: Annotated[float, typer.Option(help="0.25 to 4.")] = 1.0,
    seed: Annotated[int | None, typer.Option(help="The same seed says the same.")] = None,
    settings: Settings,
) -> None:
    """Speak a text."""
    player = None if output else _player()
    format = _format(output) if output else "wav"
    from . import service

    body = _request(
        input=_text(text),
        model=model,
        voice=voice,
        language=language,
        instructions=instructions,
        response_format=format,
        speed=speed,
        seed=seed,
    )
    if output:
        written = service.drain(service.speech(settings, body), output)
        typer.echo(f"wrote {output} ({written} bytes)", err=True)
        return
    assert player is not None
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "speech.wav"
        service.drain(service.speech(settings, body), sound)
        if subprocess.run([*player, str(sound)], check=False).returncode:
            raise StentorError(f"{player[0]} could not play; write to a file instead: stentor say -o speech.wav …")


def _request(**fields: Any) -> SpeechRequest:
    """The same model that the server validates with. Raises InvalidRequest that names the option."""
    from ..server.speech_request import SpeechRequest

    try:
        return SpeechRequest.model_validate({**fields, "stream": False})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidRequest(f"--{first['loc'][0]}: {first['msg']}") from error


def _text(words: list[str] | None) -> str:
    return sys.stdin.read() if not words or words == ["-"] else " ".join(words)


def _format(output: Path) -> str:
    suffix = output.suffix.lower().removeprefix(".")
    suffixes = {entry.extension: name for name, entry in FORMATS.items()} | {name: name for name in FORMATS}
    if suffix not in suffixes:
        raise InvalidRequest(f"the suffix of {output} names no format; use one of: {', '.join(FORMATS)}")
    return suffixes[suffix]


def _player() -> tuple[str, ...]:
    found = next((player for player in PLAYERS if shutil.which(player[0])), None)
    if found is None:
        names = ", ".join(player[0] for player in PLAYERS)
        raise SettingsError(f"no player found ({names}); write to a file instead: stentor say -o speech.wav …")
    return found
