"""Admission to one sidecar: as many requests run as it has slots, a bounded number waits in order, the rest is refused.

Pure bookkeeping on the event loop; knows neither sidecars nor HTTP.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..errors import Busy

RETRY_AFTER_S = 2


class Queue:
    """First come, first served. `slots` may change while requests wait (it is known once the sidecar said hello)."""

    def __init__(self, limit: int, slots: int = 1) -> None:
        self._limit = limit
        self._slots = slots
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.running = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def resize(self, slots: int) -> None:
        self._slots = slots
        self._wake()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A slot for as long as the context is open. Raises Busy at once where the queue is full."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self.running < self._slots and not self._waiting:
            self.running += 1
            return
        if len(self._waiting) >= self._limit:
            raise Busy(
                f"{self.running} requests are running and {self.waiting} are waiting for this model; "
                f"try again in {RETRY_AFTER_S} s.",
                retry_after=RETRY_AFTER_S,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # cancelled in the moment it was let in: hand the slot on
                self._leave()
            elif turn in self._waiting:  # else `_wake` has just passed over it
                self._waiting.remove(turn)
            raise

    def _leave(self) -> None:
        self.running -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.running < self._slots:
            turn = self._waiting.popleft()
            if not turn.cancelled():
                self.running += 1
                turn.set_result(None)
