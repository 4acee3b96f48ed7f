"""A device for the mailbox's tests: it writes random frames, and each copy of them meets the fate that a test says."""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import Any

import numpy as np

from stentor.decoder.mailbox import CODES_PER_FRAME, Frame, Mailbox, Row, empty_row, pack, row_words

DEADLINE = 100.0


class Fate(Enum):
    ARRIVES = "data and signal come"
    UNSIGNALLED = "the data comes, the signal does not"
    NO_DATA = "the signal comes, the data does not"
    TORN = "the signal comes with half of the data"
    NEITHER = "nothing comes"


LOST = (Fate.NO_DATA, Fate.TORN, Fate.NEITHER)
SILENT = (Fate.UNSIGNALLED, Fate.NEITHER)


class Scripted:
    """Each copy meets the fate that is next in the list; the ones after the list arrive."""

    def __init__(self, fates: list[Fate], words: int, depth: int) -> None:
        self._fates = iter(fates)
        self._rows = [np.zeros(words, dtype=np.int64) for _ in range(depth)]
        self._last = [Fate.ARRIVES] * depth

    def start(self, buffer: int, row: Any) -> None:
        fate = self._last[buffer] = next(self._fates, Fate.ARRIVES)
        if fate in (Fate.ARRIVES, Fate.UNSIGNALLED):
            self._rows[buffer][:] = row
        elif fate is Fate.TORN:
            self._rows[buffer][: row.size // 2] = row[: row.size // 2]

    def signalled(self, buffer: int) -> bool:
        return self._last[buffer] not in SILENT

    def buffer(self, buffer: int) -> Row:
        return self._rows[buffer]


class Device:
    """A row with random codes that remembers what was written, and a mailbox that carries it."""

    def __init__(self, fates: list[Fate], slots: int = 1, depth: int = 2, seed: int = 0) -> None:
        self.wrote: list[tuple[list[list[int]], list[bool]]] = []
        self.delivery = Scripted(fates, row_words(slots), depth)
        self.mailbox = Mailbox(slots, depth, deadline=DEADLINE, delivery=self.delivery)
        self._row = empty_row(slots)
        self._slots = slots
        self._random = np.random.default_rng(seed)

    def write(self) -> Row:
        codes = self._random.integers(1, 3000, (self._slots, CODES_PER_FRAME))
        finished = self._random.integers(0, 2, self._slots).astype(bool)
        self.wrote.append((codes.tolist(), finished.tolist()))
        return pack(self._row, codes, finished)

    def post(self, now: float = 0.0) -> None:
        self.mailbox.post(self.write(), now)

    def run(self, frames: int) -> list[Frame]:
        """Posts where there is room and polls, once a second, until so many frames have come."""
        came: list[Frame] = []
        for now in count():
            if self.mailbox.room:
                self.post(now)
            assert self.mailbox.in_flight <= self.mailbox.depth
            came += self.mailbox.poll(now)
            if len(came) >= frames:
                return came
        raise AssertionError("a count ended")


def plain(frames: list[Frame]) -> list[tuple[list[list[int]], list[bool]]]:
    """As `Device.wrote` has them."""
    return [(frame.codes.tolist(), frame.finished.tolist()) for frame in frames]
