"""Shared memory that outlives a sidecar: the status page of its driver.

The host creates the file and owns it; the driver writes at every unit of device work, and the watchdog, `/health` and
the drills read. A page, not a message, so that a blocked pipe can never be mistaken for a stall (DESIGN.md 5). Only
the loop that does the device work may write: a page written by a helper thread would prove nothing.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
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


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("utf-8", "replace")
