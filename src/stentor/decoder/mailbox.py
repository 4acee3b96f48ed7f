"""The mailbox: the only way data leaves the device (DESIGN.md 6).

Owns the layout of an entry, what the host believes of it, and how long it waits. An entry is cumulative, so that a
later one heals a lost copy, and it is believed for its checksum, whether or not a signal said that its copy is
complete: an unreliable signal can cost time, never a frame and never the process. Knows no torch and no clock, and not
whose utterance a slot holds.

    row (int64):  0 checksum · 1 sequence · 2-9 flags (bit: slot has finished) · 10- codes; frame n is at n % 8 of both
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import EngineFailed

Row = NDArray[np.int64]

HISTORY = 8
CODES_PER_FRAME = 16
MAX_SLOTS = 63  # bits of a positive int64
CHECKSUM, SEQUENCE, FLAGS, CODES = 0, 1, 2, 2 + HISTORY


class MailboxStall(EngineFailed):
    """Nothing valid came before the deadline."""

    code = "mailbox_stall"


class MailboxGap(EngineFailed):
    """So many copies in a row were lost that a frame is in none that can still come."""

    code = "mailbox_gap"


class MailboxFull(EngineFailed):
    """A post without room: the caller did not wait for `room`."""

    code = "mailbox_full"


class Delivery(Protocol):
    """How a row of device memory gets into one of `depth` host buffers. A later copy never overtakes an earlier one.

    Nothing here may block. Buffers hold no entry of an earlier mailbox.
    """

    def start(self, buffer: int, row: Any) -> None:
        """Begin to copy `row`, the device's own kind of array, and return."""

    def signalled(self, buffer: int) -> bool:
        """Whether the last copy into this buffer is said to be complete. It may be, and this never says so."""

    def buffer(self, buffer: int) -> Row:
        """What the host's memory holds now: an entry, an older one, half of one, or nothing."""


class Direct:
    """The delivery of a device whose memory is the host's: a copy is complete when it was begun."""

    def __init__(self) -> None:
        self._buffers: dict[int, Row] = {}

    def start(self, buffer: int, row: Any) -> None:
        self._buffers[buffer] = np.array(row, dtype=np.int64)

    def signalled(self, buffer: int) -> bool:
        return True

    def buffer(self, buffer: int) -> Row:
        return self._buffers.get(buffer, np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Frame `number` of the batch, by slot: `codes` is [slots, 16], `finished` [slots]."""

    number: int
    codes: Row
    finished: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What one valid row says. `sequence` frames have been made; it holds the last 8 of them, frame n at n % 8."""

    sequence: int
    codes: Row  # [8, slots, 16]
    finished: NDArray[np.bool_]  # [8, slots]

    def frames(self, first: int = 0) -> Iterator[Frame]:
        """Those it holds, from frame `first` on."""
        for number in range(max(first, self.sequence - HISTORY), self.sequence):
            place = number % HISTORY
            yield Frame(number, self.codes[place], self.finished[place])


def empty_row(slots: int) -> Row:
    """A row in which no frame is yet: what the device keeps, and `pack` adds to."""
    return np.zeros(row_words(slots), dtype=np.int64)


def pack(row: Row, codes: ArrayLike, finished: ArrayLike) -> Row:
    """Add one frame to the device's row, in place: `codes` is [slots, 16], `finished` [slots].

    The reference in numpy for what a device does with its own means.
    """
    place = int(row[SEQUENCE]) % HISTORY
    row[FLAGS + place] = sum(1 << int(slot) for slot in np.flatnonzero(finished))
    row[CODES:].reshape(HISTORY, -1, CODES_PER_FRAME)[place] = codes
    row[SEQUENCE] += 1
    row[CHECKSUM] = checksum(row)
    return row


def verify(buffer: Row, slots: int) -> Entry | None:
    """What has arrived in a buffer. None: nothing yet, half of something, or nothing for so many slots."""
    row = buffer.copy()  # before it is judged: the device may be writing just now
    if row.size != row_words(slots) or row[SEQUENCE] < 1 or row[CHECKSUM] != checksum(row):
        return None
    finished = (row[FLAGS:CODES, None] >> np.arange(slots)) & 1
    return Entry(int(row[SEQUENCE]), row[CODES:].reshape(HISTORY, slots, CODES_PER_FRAME), finished.astype(bool))


@dataclass(frozen=True, slots=True)
class _Copy:
    sequence: int
    since: float


class Mailbox:
    """The host's side: `post` begins a copy, `poll` gives every frame once and in order, or says why it cannot.

    A copy that neither arrives nor signals keeps its buffer for `deadline * depth / 8` seconds. All 8 frames that an
    entry holds can thus be lost in silence before the deadline, and none can be pushed out by going on too early.
    """

    def __init__(self, slots: int, depth: int = 2, *, deadline: float = 5.0, delivery: Delivery | None = None) -> None:
        row_words(slots)  # refuses a number of slots that no row can have
        self.slots = slots
        self.depth = depth
        self.posted = 0
        self.seen = 0
        self._deadline = deadline
        self._patience = deadline * depth / HISTORY
        self._delivery = delivery or Direct()
        self._flying: dict[int, _Copy] = {}
        self._since = 0.0

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    @property
    def room(self) -> bool:
        """Whether one more may be posted: a buffer is free, and the entry would still hold every frame not seen."""
        return self.in_flight < self.depth and self._outstanding < HISTORY

    def post(self, row: Any, now: float) -> None:
        """Begin to copy the device's row, which has got one more frame. Raises MailboxFull where there is no `room`."""
        if not self.room:
            raise MailboxFull(f"{self.in_flight} entries are in flight and {self._outstanding} frames unseen")
        buffer = next(one for one in range(self.depth) if one not in self._flying)
        if not self._outstanding:
            self._since = now
        self.posted += 1
        self._flying[buffer] = _Copy(self.posted, now)
        self._delivery.start(buffer, row)

    def poll(self, now: float) -> list[Frame]:
        """The frames that have come since the last call; never waits. Raises MailboxStall or MailboxGap."""
        # Signals first: one that comes after the look at the data would give away a buffer that was not read.
        ended = {buffer for buffer in self._flying if self._delivery.signalled(buffer)}
        frames = [frame for entry in self._entries() for frame in self._unseen(entry)]
        if frames:
            self._since = now
        self._release(ended, now)
        self._raise_if_lost(now)
        return frames

    @property
    def _outstanding(self) -> int:
        return self.posted - self.seen

    def _entries(self) -> list[Entry]:
        """What has arrived in the buffers and was posted here."""
        found = [verify(self._delivery.buffer(buffer), self.slots) for buffer in range(self.depth)]
        return [entry for entry in found if entry and entry.sequence <= self.posted]

    def _unseen(self, entry: Entry) -> Iterator[Frame]:
        """An entry holds every frame not seen, because `room` let it be posted; an older one gives none."""
        for frame in entry.frames(self.seen):
            self.seen = frame.number + 1
            yield frame

    def _release(self, ended: set[int], now: float) -> None:
        for buffer, copy in list(self._flying.items()):
            written_off = now - copy.since >= self._patience and self._outstanding < HISTORY
            if copy.sequence <= self.seen or buffer in ended or written_off:
                del self._flying[buffer]

    def _raise_if_lost(self, now: float) -> None:
        if self._outstanding and now - self._since > self._deadline:
            waited = f"{now - self._since:.1f} s"
            raise MailboxStall(f"frame {self.seen} did not leave the device within {waited} ({self.posted} posted)")
        if self._outstanding >= HISTORY and not self._flying:
            raise MailboxGap(f"{HISTORY} copies in a row were lost, and frame {self.seen} with them")


def row_words(slots: int) -> int:
    """The length of a row. Raises ValueError for a number of slots that the flags cannot hold."""
    if not 1 <= slots <= MAX_SLOTS:
        raise ValueError(f"{slots} slots; a mailbox has 1 to {MAX_SLOTS}")
    return CODES + HISTORY * slots * CODES_PER_FRAME


def checksum(row: Row) -> int:
    """CRC-32 of all but the checksum itself."""
    return zlib.crc32(row[SEQUENCE:].astype("<i8", copy=False).tobytes())


def checksum_bits(words: int) -> Row:
    """[words, 64]: what each bit of so many words does to their CRC-32, for a device that has no crc32 but has xor.

    The checksum is that of as many zeros, xor the entries of all bits that are set: no read, no loop, one fixed shape.
    """
    table = np.array([zlib.crc32(bytes([byte])) for byte in range(256)], dtype=np.int64)
    table ^= table[0]
    bits = np.empty((words * 8, 8), dtype=np.int64)
    bits[-1] = table[1 << np.arange(8)]
    for at in range(len(bits) - 2, -1, -1):
        bits[at] = (bits[at + 1] >> 8) ^ table[bits[at + 1] & 0xFF]
    return bits.reshape(words, 64)
