"""A mailbox delivery that loses what an unreliable chip loses: the signal of a copy, or the copy itself (DESIGN.md 8).

Knows no torch: it stands around any delivery, and a row passes through it unread.
"""

from __future__ import annotations

import random
from typing import Any, Literal

from ..decoder.mailbox import Delivery, Direct, Row


class LossyDelivery:
    """Each copy suffers with probability p. "signal": the data arrives, nothing says so. "data": neither comes."""

    def __init__(
        self, p: float, seed: int = 0, kind: Literal["signal", "data"] = "signal", inner: Delivery | None = None
    ) -> None:
        self.copies = 0
        self.losses = 0
        self._p = p
        self._random = random.Random(seed)
        self._kind = kind
        self._inner = inner or Direct()
        self._unsignalled: set[int] = set()

    def start(self, buffer: int, row: Any) -> None:
        self.copies += 1
        self._unsignalled.discard(buffer)
        if self._random.random() < self._p:
            self.losses += 1
            self._unsignalled.add(buffer)
            if self._kind == "data":
                return
        self._inner.start(buffer, row)

    def signalled(self, buffer: int) -> bool:
        return buffer not in self._unsignalled and self._inner.signalled(buffer)

    def buffer(self, buffer: int) -> Row:
        return self._inner.buffer(buffer)
