"""Decides from a status page whether a sidecar still makes progress. A pure state machine with the clock passed in.

Only the counter that the device loop advances counts as life: a thread that answers pings stays alive while that loop
waits for a lost signal (DESIGN.md 1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..journal import Status

# Seconds one unit of work may take, by phase. A window of Whisper on a slow processor takes longer than a frame.
PHASE_FACTORS: Mapping[str, float] = {"frame": 1.0, "window": 4.0}


@dataclass(frozen=True, slots=True)
class Stall:
    """No unit was finished for `seconds` while requests were open."""

    phase: str
    unit: int
    seconds: float

    def __str__(self) -> str:
        return f"no progress for {self.seconds:.1f} s in phase {self.phase!r}, unit {self.unit}"


class Watchdog:
    """Watches one process of one sidecar; a new process gets a new one."""

    def __init__(self, frame_timeout: float) -> None:
        self._frame_timeout = frame_timeout
        self._counter = -1
        self._since = 0.0
        self._was_open = False

    def check(self, status: Status, open_requests: int, now: float) -> Stall | None:
        """Call it often; `now` is a monotonic clock in seconds. A request that arrives starts the clock anew."""
        if status.counter != self._counter or not self._was_open:
            self._counter, self._since = status.counter, now
        self._was_open = open_requests > 0
        stuck = now - self._since
        if open_requests and stuck > self._frame_timeout * PHASE_FACTORS.get(status.phase, 1.0):
            return Stall(status.phase, status.unit, stuck)
        return None
