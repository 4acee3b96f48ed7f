"""Decides whether a sidecar still makes progress. A pure state machine with the clock passed in.

Only the counter that the device loop advances counts as life: a thread that answers pings stays alive while that loop
waits for a lost signal (DESIGN.md 1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..journal import Status
from ..protocol import Loading

# By phase, in units of frame_timeout: a window of Whisper on a slow processor takes longer than a frame.
PHASE_FACTORS: Mapping[str, float] = {"frame": 1.0, "window": 4.0}

LONGEST_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing was finished for `seconds`."""

    phase: str
    unit: int
    seconds: float

    def __str__(self) -> str:
        return f"no progress for {self.seconds:.1f} s in phase {self.phase!r}, unit {self.unit}"


class Watchdog:
    """Watches one process of one sidecar; a new process gets a new one."""

    def __init__(self, frame_timeout: float, load_timeout: float) -> None:
        self._frame_timeout = frame_timeout
        self._load_timeout = load_timeout
        self._sign: object = self  # unlike any sign of life
        self._since = 0.0
        self._checked = 0.0

    def check_load(self, loading: Loading | None, now: float) -> Stall | None:
        """While the process loads: each `loading` message resets its deadline. `now`: a monotonic clock in seconds."""
        stuck = self._stuck(loading, now)
        if stuck > self._load_timeout:
            return Stall(f"loading: {loading.stage}" if loading else "starting", 0, stuck)
        return None

    def check(self, status: Status, open_requests: int, now: float) -> Stall | None:
        """While it serves: the counter must move as long as requests are open. The clock starts with the request."""
        stuck = self._stuck((status.counter, open_requests > 0), now)
        if open_requests and stuck > self._frame_timeout * PHASE_FACTORS.get(status.phase, 1.0):
            return Stall(status.phase, status.unit, stuck)
        return None

    def _stuck(self, sign: object, now: float) -> float:
        """Seconds for which the sign of life has been the same, while we looked.

        A long gap between two looks is a pause of our own (the machine slept, the host was stopped): the sidecar is
        not to blame for it.
        """
        self._since += max(0.0, now - self._checked - LONGEST_LOOK_S)
        self._checked = now
        if sign is not self._sign and sign != self._sign:
            self._sign, self._since = sign, now
        return now - self._since
