"""Shared memory that outlives a sidecar: the status page of its driver, and the journal of each open utterance.

The host creates the files and owns them; the driver writes. Status page: at every unit of device work, for watchdog,
`/health` and drills. A page, not a message, so that a blocked pipe can never be mistaken for a stall (DESIGN.md 5).
Only the loop that does the device work may write: a page written by a helper thread would prove nothing. Journal: what
of an utterance is complete, so that the next process goes on there (DESIGN.md 6). Knows no engine and no process.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import ProtocolError

MAGIC = b"STENTOR1"
MAX_ACTIVE = 32
ID_BYTES = 64

# magic · checksum of what follows · progress counter · unit · pid · phase · number of active ids; then the ids
_HEADER = struct.Struct("<8sIxxxxQQI16sI")
PAGE_BYTES = _HEADER.size + MAX_ACTIVE * ID_BYTES
_CHECKED_FROM = 16
_TRIES = 100

JOURNAL_MAGIC = b"STENTORJ"
# checksum of what follows · frames that are complete · the sample at which the next one begins
_BOUNDARY = struct.Struct("<IxxxxQQ")
# The host goes on from the last boundary that it has all samples of. Behind it lie at most the messages that a dead
# process had not written yet: 64 in its outbox (sidecar/main.py), each a frame at least.
BOUNDARIES = 256
JOURNAL_BYTES = 16 + BOUNDARIES * _BOUNDARY.size


@dataclass(frozen=True, slots=True)
class Status:
    """What a driver last wrote. `counter` grows with every unit; that it grows is the only sign of life."""

    counter: int
    phase: str
    unit: int
    pid: int
    active: tuple[str, ...]


class StatusPage:
    """One page of shared memory with a single writer. A reader never blocks the writer and never sees half a record.

    A checksum and not a sequence lock: Python has no memory barriers, and on ARM two stores may be seen in any order.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._counter = 0
        self._last = Status(0, "", 0, 0, ())

    @classmethod
    def create(cls, path: Path) -> StatusPage:
        """A fresh page at `path` (host side). Raises OSError where shared memory is full or read-only."""
        path.write_bytes(MAGIC.ljust(PAGE_BYTES, b"\0"))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> StatusPage:
        """The page the host made (sidecar side). Raises ProtocolError if the file is none."""
        with path.open("r+b") as file:
            if os.fstat(file.fileno()).st_size != PAGE_BYTES:
                raise ProtocolError(f"{path} is not a status page of {PAGE_BYTES} bytes")
            memory = mmap.mmap(file.fileno(), PAGE_BYTES)
        if memory[: len(MAGIC)] != MAGIC:
            raise ProtocolError(f"{path} is not a status page of this version")
        return cls(memory)

    @classmethod
    def anonymous(cls) -> StatusPage:
        """A page nobody else reads, for a sidecar that is driven by hand."""
        memory = mmap.mmap(-1, PAGE_BYTES)
        memory[: len(MAGIC)] = MAGIC
        return cls(memory)

    def write(self, phase: str, unit: int, active: tuple[str, ...]) -> None:
        """Record one unit of work: advances the counter, so it is called by the driver's loop alone."""
        self._counter += 1
        shown = active[:MAX_ACTIVE]
        ids = b"".join(one.encode()[:ID_BYTES].ljust(ID_BYTES, b"\0") for one in shown)
        header = _HEADER.pack(MAGIC, 0, self._counter, unit, os.getpid(), phase.encode(), len(shown))
        record = header[_CHECKED_FROM:] + ids
        check = zlib.crc32(record).to_bytes(4, "little")
        self._memory[len(MAGIC) : _CHECKED_FROM + len(record)] = check + bytes(4) + record

    def read(self) -> Status:
        """The last complete record. Where a writer died in the middle of one, the one before it that was seen."""
        for _ in range(_TRIES):
            raw = self._memory[:]
            _, check, counter, unit, pid, phase, count = _HEADER.unpack_from(raw)
            end = _HEADER.size + min(count, MAX_ACTIVE) * ID_BYTES
            if zlib.crc32(raw[_CHECKED_FROM:end]) == check:
                ids = tuple(_text(raw[at : at + ID_BYTES]) for at in range(_HEADER.size, end, ID_BYTES))
                self._last = Status(counter, _text(phase), unit, pid, ids)
                break
        return self._last

    def close(self) -> None:
        self._memory.close()


@dataclass(frozen=True, slots=True)
class Boundary:
    """Between two frames of an utterance: `frames` are complete, the next one begins at `sample`."""

    frames: int = 0
    sample: int = 0


class Journal:
    """What is complete of one open utterance. One writer; read after its death, so a torn record must be told apart."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._next = 0

    @classmethod
    def create(cls, path: Path) -> Journal:
        """A fresh journal at `path` (host side). Raises OSError where shared memory is full: all of it is taken now,
        because a page that is missing later would be a SIGBUS in mid-speech."""
        path.write_bytes(JOURNAL_MAGIC.ljust(JOURNAL_BYTES, b"\0"))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Journal:
        """The journal the host made (sidecar side). Raises ProtocolError if the file is none."""
        with path.open("r+b") as file:
            if os.fstat(file.fileno()).st_size != JOURNAL_BYTES:
                raise ProtocolError(f"{path} is not a journal of {JOURNAL_BYTES} bytes")
            memory = mmap.mmap(file.fileno(), JOURNAL_BYTES)
        if memory[: len(JOURNAL_MAGIC)] != JOURNAL_MAGIC:
            raise ProtocolError(f"{path} is not a journal of this version")
        return cls(memory)

    def commit(self, frames: int, sample: int) -> None:
        """Record that `frames` are complete and that the next begins at `sample`."""
        record = _BOUNDARY.pack(0, frames, sample)[8:]
        at = 16 + self._next % BOUNDARIES * _BOUNDARY.size
        self._memory[at : at + _BOUNDARY.size] = zlib.crc32(record).to_bytes(4, "little") + bytes(4) + record
        self._next += 1

    def boundary(self, delivered: int) -> Boundary:
        """The last one that lies at or before `delivered` samples; the beginning where there is none."""
        found = [one for one in self._boundaries() if one.sample <= delivered]
        return max(found, key=lambda one: one.frames, default=Boundary())

    def _boundaries(self) -> Iterator[Boundary]:
        for at in range(16, JOURNAL_BYTES, _BOUNDARY.size):
            check, frames, sample = _BOUNDARY.unpack_from(self._memory, at)
            if zlib.crc32(self._memory[at + 8 : at + _BOUNDARY.size]) == check:
                yield Boundary(frames, sample)

    def close(self) -> None:
        self._memory.close()


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("utf-8", "replace")
