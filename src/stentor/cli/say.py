"""`stentor say`: text to a file, to standard output, or to the speakers where a player exists.

Owns what is asked for and what is reported. The work is speaking.py's, the bytes go into a sink.
"""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidRequest
from ..settings import Settings
from . import show
from .meter import meter
from .options import with_settings
from .player import Player, Speakers, WholeFile, find_player
from .progress import Progress, numbers, rtf
from .sink import File, Sink, Stdout
from .source import text_of

if TYPE_CHECKING:
    from ..server.speech_request import SpeechRequest

STDOUT = Path("-")
FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")  # the names and no more: audio/write.py loads FFmpeg
SUFFIXES = {**{name: name for name in FORMATS}, "ogg": "opus", "raw": "pcm"}


@dataclass(slots=True)
class Said:
    """What came of it: the object that --json prints."""

    output: str | None
    player: str | None
    format: str
    bytes: int
    audio_seconds: float
    elapsed_s: float
    first_byte_s: float
    rtf: float | None
    seed: int | None
    model: str | None
    voice: str | None

    def sentence(self) -> str:
        done = f"wrote {self.output} ({self.bytes} bytes)" if self.output else f"played by {self.player}"
        voice = f"voice {self.voice}, " if self.voice else ""
        return f"{done}: {numbers(self.elapsed_s, self.audio_seconds)}; {voice}seed {self.seed}"


def register(app: typer.Typer) -> None:
    app.command("say")(with_settings(say))


def say(
    text: Annotated[list[str] | None, typer.Argument(help="What to say; - or nothing: standard input.")] = None,
    *,
    file: Annotated[Path | None, typer.Option("-f", "--file", metavar="FILE", help="Say this file (UTF-8).")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write here (- is standard output).")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(FORMATS)} (default: by the suffix of -o)",
            autocompletion=lambda: list(FORMATS),
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="A speech model; see stentor models.")] = None,
    voice: Annotated[str | None, typer.Option(metavar="NAME", help="A voice; see stentor voices.")] = None,
    language: Annotated[
        str | None, typer.Option(metavar="NAME", help="Code or name (default: the model decides).")
    ] = None,
    instructions: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How to speak, for models that take it.")
    ] = None,
    speed: Annotated[float, typer.Option(metavar="NUMBER", help="0.25 to 4.")] = 1.0,
    seed: Annotated[int | None, typer.Option(metavar="INTEGER", help="The same seed says the same.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what came of it as JSON.")] = False,
    settings: Settings,
) -> None:
    """Speak a text: play it, or write it with -o.

    Uses the running server, else a model process of its own.
    """
    if json and output == STDOUT:
        raise InvalidRequest("--json and -o - both want standard output; write the audio to a file.")
    player = None if output else find_player()
    format = player.format if player else _format(output or STDOUT, format)
    body = _request(
        input=text_of(text, file),
        model=model,
        voice=voice,
        language=language,
        instructions=instructions,
        response_format=format,
        speed=speed,
        seed=seed,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: no half file stays
    said = asyncio.run(_say(settings, body, _sink(player, output, format), player))
    if json:
        show.as_json(asdict(said))
    else:
        show.remark(said.sentence())


async def _say(settings: Settings, body: SpeechRequest, sink: Sink, player: Player | None) -> Said:
    """Into the sink as it is made. The times are those of the work, not of the listening."""
    from .speaking import speaking

    started, first_byte_s, seconds = time.monotonic(), 0.0, meter(body.response_format)
    try:
        with Progress() as progress:
            async with sink, speaking(settings, body) as speech:
                async for chunk in speech.chunks:
                    first_byte_s = first_byte_s or time.monotonic() - started
                    seconds.feed(chunk)
                    await sink.write(chunk)
                    progress.update(seconds.seconds)
                elapsed_s = time.monotonic() - started
                seconds.finish()
                progress.update(seconds.seconds)
                progress.finish("playing" if player else "writing")
                await sink.finish(seconds.seconds)
    finally:
        seconds.finish()
    return Said(
        output=sink.name,
        player=player.command[0] if player else None,
        format=body.response_format,
        bytes=sink.written,
        audio_seconds=round(seconds.seconds, 3),
        elapsed_s=round(elapsed_s, 3),
        first_byte_s=round(first_byte_s, 3),
        rtf=rtf(elapsed_s, seconds.seconds),
        seed=speech.seed,
        model=speech.model,
        voice=speech.voice,
    )


def _sink(player: Player | None, output: Path | None, format: str) -> Sink:
    if player is not None:
        return WholeFile(player) if player.whole else Speakers(player)
    assert output is not None
    return Stdout() if output == STDOUT else File(output, format)


def _request(**fields: Any) -> SpeechRequest:
    """The same model that the server validates with. Raises InvalidRequest that names the option."""
    from pydantic import ValidationError

    from ..server.speech_request import SpeechRequest

    try:
        return SpeechRequest.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidRequest(f"--{first['loc'][0]}: {first['msg']}.") from error


def _format(output: Path, given: str | None) -> str:
    """The format that is named, else the suffix's; WAV where there is none to go by."""
    if output.is_dir():
        raise InvalidRequest(f"{output} is a folder; name a file in it: -o {output / 'speech.wav'}")
    name = given or ("wav" if output == STDOUT else output.suffix.lower().removeprefix("."))
    if name not in SUFFIXES:
        wrong = f"--format {name}" if given else f"the suffix of {output}"
        raise InvalidRequest(f"{wrong} names no format; use one of: {', '.join(FORMATS)}.")
    return SUFFIXES[name]
