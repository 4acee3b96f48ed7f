"""Decides whether a sidecar still makes progress. A pure state machine with the clock passed in.

Only the counter that the device loop advances counts as life: a thread that answers pings stays alive while that loop
waits for a lost signal (DESIGN.md 1.3). Knows no process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..journal import Status
from ..protocol import Loading

# By phase, in units of frame_timeout (5 s by default): a window of 30 s takes Whisper longer than a frame, and MIOpen's
# first search of a shape takes a minute (facts/rocm-apu.md 4.2). A phase that is not here is a frame.
PHASE_FACTORS: Mapping[str, float] = {"frame": 1.0, "prefill": 2.0, "window": 6.0, "unseen": 24.0}

LEARNED_FACTOR = 10.0  # of the 99th percentile of what units took here (DESIGN.md 7)
LEARNED_FROM = 20  # units
REMEMBERED = 1000
MOST_PATIENCE = 3  # doublings: eight times the deadline at most
LONGEST_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Stall:
    """Nothing was finished for `seconds`, where `limit` was allowed."""

    phase: str
    unit: int
    seconds: float
    limit: float

    def __str__(self) -> str:
        return f"no progress for {self.seconds:.1f} s in phase {self.phase!r}, unit {self.unit}"


@dataclass(slots=True)
class _Learned:
    """What units of one phase took here, as long as the watchdog saw them stand."""

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    stalls: int = 0  # since the last unit that was finished

    def allowance(self) -> float:
        """Ten times the 99th percentile; twice the longest, as long as only a few are known."""
        ordered = sorted(self.seconds)
        if len(ordered) < LEARNED_FROM:
            return 2 * ordered[-1] if ordered else 0.0
        return LEARNED_FACTOR * ordered[int(0.99 * (len(ordered) - 1))]


class Deadlines:
    """How long each phase may take on this machine. Outlives processes: one for each sidecar.

    The default is the least; a machine on which units take long raises it, and so does a stall: where the next process
    finishes such a unit after all, the machine is slow and not stuck.
    """

    def __init__(self, frame_timeout: float, load_timeout: float) -> None:
        self.load_timeout = load_timeout
        self._frame_timeout = frame_timeout
        self._learned: dict[str, _Learned] = {}

    def limit(self, phase: str) -> float:
        """Seconds that one unit of this phase may take now."""
        least = self._frame_timeout * PHASE_FACTORS.get(phase, 1.0)
        known = self._learned.get(phase)
        if known is None:
            return least
        return max(least, known.allowance()) * float(2 ** min(known.stalls, MOST_PATIENCE))

    def finished(self, phase: str, seconds: float) -> None:
        """A unit of this phase took so long."""
        known = self._learned.setdefault(phase, _Learned())
        known.seconds.append(seconds)

    def progressed(self) -> None:
        """Units are finished, too short for a look at each: whatever was given up before, this process works."""
        for known in self._learned.values():
            known.stalls = 0

    def stalled(self, phase: str) -> None:
        """A unit of this phase was given up."""
        self._learned.setdefault(phase, _Learned()).stalls += 1


class Watchdog:
    """Watches one process; a new process gets a new one and the same deadlines."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._sign: object = self  # unlike any sign of life
        self._phase = ""
        self._unit = 0
        self._since = 0.0
        self._checked = 0.0

    def check_load(self, loading: Loading | None, now: float) -> Stall | None:
        """While the process loads: each `loading` message resets its deadline. `now`: a monotonic clock in seconds."""
        stuck, _ = self._stuck(loading, now)
        limit = self._deadlines.load_timeout
        if stuck > limit:
            return Stall(f"loading: {loading.stage}" if loading else "starting", 0, stuck, limit)
        return None

    def check(self, status: Status, open_requests: int, now: float) -> Stall | None:
        """While it serves: the counter must move as long as requests are open. The clock starts with the request."""
        if status.unit > self._unit:
            self._deadlines.progressed()
        self._unit = status.unit
        working = open_requests > 0
        stuck, finished = self._stuck((status.counter, working), now)
        if working and finished is not None and self._phase:
            self._deadlines.finished(self._phase, finished)
        self._phase = status.phase if working else ""
        limit = self._deadlines.limit(status.phase)
        if working and stuck > limit:
            self._deadlines.stalled(status.phase)
            return Stall(status.phase, status.unit, stuck, limit)
        return None

    def _stuck(self, sign: object, now: float) -> tuple[float, float | None]:
        """Seconds for which the sign of life has been the same while we looked; those of the one before if it changed.

        A long gap between two looks is a pause of our own (the machine slept, the host was stopped): the sidecar is
        not to blame for it.
        """
        self._since += max(0.0, now - self._checked - LONGEST_LOOK_S)
        self._checked = now
        if sign is self._sign or sign == self._sign:
            return now - self._since, None
        before, self._sign, self._since = now - self._since, sign, now
        return 0.0, before
