"""Shared memory that outlives a sidecar: the status page of its driver.

The host creates the file and owns it; the driver writes at every unit of device work, and the watchdog, `/health` and
the drills read. A page, not a message, so that a blocked pipe can never be mistaken for a stall (DESIGN.md 5). Only
the loop that does the device work may write: a page written by a helper thread would prove nothing.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from .errors import ProtocolError

MAGIC = b"STENTOR1"
MAX_ACTIVE = 32
ID_BYTES = 64

# magic · seqlock · progress counter · unit · pid · phase · number of active ids; then the ids, fixed width
_HEADER = struct.Struct("<8sQQQI16sI")
PAGE_BYTES = _HEADER.size + MAX_ACTIVE * ID_BYTES
_SEQUENCE = slice(8, 16)
_AFTER_SEQUENCE = 16
TORN_AFTER_S = 0.05


@dataclass(frozen=True, slots=True)
class Status:
    """What a driver last wrote. `counter` grows with every unit; that it grows is the only sign of life."""

    counter: int
    phase: str
    unit: int
    pid: int
    active: tuple[str, ...]


class StatusPage:
    """One page of shared memory with a single writer; a reader never blocks the writer (a seqlock)."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._sequence = 0
        self._counter = 0

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
        self._sequence += 2
        shown = active[:MAX_ACTIVE]
        ids = b"".join(one.encode()[:ID_BYTES].ljust(ID_BYTES, b"\0") for one in shown)
        header = _HEADER.pack(MAGIC, 0, self._counter, unit, os.getpid(), phase.encode(), len(shown))
        self._mark(self._sequence - 1)  # odd: being written
        self._memory[_AFTER_SEQUENCE : _HEADER.size] = header[_AFTER_SEQUENCE:]
        self._memory[_HEADER.size : _HEADER.size + len(ids)] = ids
        self._mark(self._sequence)

    def read(self) -> Status:
        """The last complete record; waits out a record that is being written, which takes microseconds.

        A writer killed in mid-write leaves the page odd for ever; then the torn record is taken, since its counter is
        sound and its process is dead anyway.
        """
        end = time.monotonic() + TORN_AFTER_S
        while True:
            before = self._marked()
            status = self._record()
            if (before % 2 == 0 and before == self._marked()) or time.monotonic() > end:
                return status

    def _mark(self, sequence: int) -> None:
        # A slice assignment is one copy of eight bytes; struct.pack_into would clear them first and write one by one,
        # and the reader would see sequences that never were.
        self._memory[_SEQUENCE] = sequence.to_bytes(8, "little")

    def _marked(self) -> int:
        return int.from_bytes(self._memory[_SEQUENCE], "little")

    def close(self) -> None:
        self._memory.close()

    def _record(self) -> Status:
        _, _, counter, unit, pid, phase, count = _HEADER.unpack_from(self._memory, 0)
        ids = (self._memory[at : at + ID_BYTES] for at in _id_offsets(min(count, MAX_ACTIVE)))
        return Status(counter, _text(phase), unit, pid, tuple(_text(one) for one in ids))


def _id_offsets(count: int) -> range:
    return range(_HEADER.size, _HEADER.size + count * ID_BYTES, ID_BYTES)


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("utf-8", "replace")
