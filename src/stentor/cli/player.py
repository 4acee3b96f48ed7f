"""The players that systems have, and a sink that plays a stream while it is still being made."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ..errors import StentorError
from .sink import File, Sink

LEAST_HEARD = 0.5  # of the audio's duration: ffplay ends at once and with code 0 where there is no sound card
GO_ON = "Write to a file instead: stentor say -o speech.wav …"


@dataclass(frozen=True, slots=True)
class Player:
    """A command that plays `format`: from its standard input, or a whole file that is named last."""

    command: tuple[str, ...]
    format: str
    whole: bool = False


PLAYERS = (
    Player(("ffplay", "-nodisp", "-autoexit", "-loglevel", "error", "-i", "pipe:0"), "wav"),
    Player(("mpv", "--really-quiet", "--no-video", "-"), "wav"),
    # raw, because these read the length of a WAV before its samples, and a stream has none
    Player(("paplay", "--raw", "--format=s16le", "--rate=24000", "--channels=1"), "pcm"),
    Player(("aplay", "-q", "-t", "raw", "-f", "S16_LE", "-r", "24000", "-c", "1", "-"), "pcm"),
    Player(("pw-play",), "wav", whole=True),  # reads a pipe only from 1.4 on
    Player(("afplay",), "wav", whole=True),  # macOS; never reads a pipe
)


def find_player() -> Player:
    """The first one installed. Raises StentorError that says what to do without one."""
    for player in PLAYERS:
        if shutil.which(player.command[0]):
            return player
    names = ", ".join(player.command[0] for player in PLAYERS)
    raise StentorError(f"no player found (looked for {names}). {GO_ON}")


class Speakers(Sink):
    """A player that is fed while it plays. Writing never waits: the work is not slowed down to the speed of a voice."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._process: asyncio.subprocess.Process | None = None
        self._started = 0.0

    async def write(self, data: bytes) -> None:
        if self._process is None:  # not before: a player that waits for its first byte can only fail
            self._process = await _spawn(self._player.command, asyncio.subprocess.PIPE)
            self._started = time.monotonic()
        if self._process.returncode is not None:
            raise _failed(self._player, self._process.returncode)
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self.written += len(data)
        await asyncio.sleep(0)  # lets the pipe take it

    async def finish(self, seconds: float) -> None:
        """Wait until all of it was heard."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        code = await process.wait()
        if code or time.monotonic() - self._started < seconds * LEAST_HEARD:
            raise _failed(self._player, code)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            await _end(self._process)


class WholeFile(File):
    """For a player that reads no pipe: the sound is collected first, then played."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._folder = tempfile.TemporaryDirectory(prefix="stentor-")
        self._sound = Path(self._folder.name) / "speech.wav"
        super().__init__(self._sound, player.format)
        self.name = None

    async def finish(self, seconds: float) -> None:
        await super().finish(seconds)
        process = await _spawn((*self._player.command, str(self._sound)), asyncio.subprocess.DEVNULL)
        try:
            if code := await process.wait():
                raise _failed(self._player, code)
        finally:
            await _end(process)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        self._folder.cleanup()


async def _spawn(command: tuple[str, ...], stdin: int) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(*command, stdin=stdin, stdout=asyncio.subprocess.DEVNULL)
    except OSError as error:
        raise StentorError(f"{command[0]} could not be started: {error.strerror}. {GO_ON}") from error


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await process.wait()


def _failed(player: Player, code: int) -> StentorError:
    return StentorError(f"{player.command[0]} could not play; it ended early (exit code {code}). {GO_ON}")
