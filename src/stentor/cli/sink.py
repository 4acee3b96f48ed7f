"""Where the audio of `say` goes: a file that appears when it is whole, or standard output.

A stream leaves the lengths in its header open; a file is closed with them filled in, since its readers seek.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ..errors import InvalidRequest, StentorError
from . import show

OPEN_SIZE = 0xFFFFFFFF  # what a streamed WAV states as its length (audio/write.py)


class Sink:
    """An asynchronous context manager; leaving it without `finish` leaves nothing behind."""

    name: str | None = None  # what a report calls it
    written = 0

    async def __aenter__(self) -> Self:
        return self

    async def write(self, data: bytes) -> None:
        raise NotImplementedError

    async def finish(self, seconds: float) -> None:
        """All was written; it holds this much audio."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


class Stdout(Sink):
    name = "-"

    async def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()  # here, so that a reader that left ends the work at once
        self.written += len(data)


class File(Sink):
    """Written beside its place and moved there when it is whole; a device or a named pipe is written directly."""

    def __init__(self, path: Path, format: str) -> None:
        self.name = show.readable(path)
        self._path = path.resolve()  # a link stays a link
        self._direct = self._path.exists() and not self._path.is_file()
        self._part = self._path if self._direct else self._path.with_name(f"{self._path.name}.part")
        self._format = format
        self._file: BinaryIO | None = None

    async def __aenter__(self) -> Self:
        try:
            self._file = self._part.open("wb")
        except FileNotFoundError as error:
            folder = self._path.parent
            raise InvalidRequest(f"cannot write {self.name}: no folder {folder}. Make it: mkdir -p {folder}") from error
        except OSError as error:
            raise InvalidRequest(f"cannot write {self.name}: {error.strerror}.") from error
        return self

    async def write(self, data: bytes) -> None:
        assert self._file is not None
        try:
            self.written += self._file.write(data)
        except OSError as error:
            raise StentorError(f"cannot write {self.name}: {error.strerror}.") from error

    async def finish(self, seconds: float) -> None:
        assert self._file is not None
        try:
            self._file.close()
            if not self._direct:
                complete_header(self._part, self._format, seconds)
                self._part.replace(self._path)
        except OSError as error:
            raise StentorError(f"cannot write {self.name}: {error.strerror}.") from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            if not self._direct:
                self._part.unlink(missing_ok=True)


def complete_header(path: Path, format: str, seconds: float) -> None:
    """Write the length into a streamed file of a format whose header has a place for it."""
    complete = {"wav": _complete_wav, "flac": _complete_flac}.get(format)
    if complete is not None:
        with path.open("r+b") as file:
            complete(file, path.stat().st_size, seconds)


def _complete_wav(file: BinaryIO, size: int, _: float) -> None:
    header = file.read(44)
    if len(header) == 44 and header[36:] == b"data" + struct.pack("<I", OPEN_SIZE):
        for at, value in ((4, size - 8), (40, size - 44)):
            file.seek(at)
            file.write(struct.pack("<I", min(value, OPEN_SIZE)))


def _complete_flac(file: BinaryIO, _: int, seconds: float) -> None:
    """STREAMINFO, bytes 18 to 25: 20 bits sample rate, 8 bits layout, 36 bits number of samples (RFC 9639, 8.2)."""
    start = file.read(26)
    facts = int.from_bytes(start[18:26], "big")
    if start[:4] == b"fLaC" and facts % 2**36 == 0:
        rate = facts >> 44
        file.seek(18)
        file.write((facts + round(seconds * rate)).to_bytes(8, "big"))
