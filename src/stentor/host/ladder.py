"""Which profile serves next: the ladder of a model, and the breaker that keeps a rung out. Pure, the clock passed in.

The same profile once more, then the next safer one, at the end the CPU, which is never kept out (DESIGN.md 7). Knows
no process; who probes a rung that is due tells the ladder what came.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..machine.profile import Profile

LONGEST_PAUSE_S = 24 * 3600.0


@dataclass(slots=True)
class Rung:
    """One profile and what was seen of it. `out_until`: monotonic seconds; infinity for a device that is lost."""

    profile: Profile
    incidents: deque[float] = field(default_factory=deque)
    times_out: int = 0
    out_until: float | None = None

    @property
    def lost(self) -> bool:
        return self.out_until == math.inf


class Ladder:
    """Rungs, best first. `current` is the best one that is not kept out; the last is never kept out."""

    def __init__(self, profiles: Sequence[Profile], *, most: int, window: float, pause: float) -> None:
        self.rungs = [Rung(profile) for profile in profiles]
        self._most = most
        self._window = window
        self._pause = pause

    @property
    def current(self) -> Rung:
        return next((one for one in self.rungs if one.out_until is None), self.rungs[-1])

    @property
    def degraded(self) -> bool:
        """A rung below the best one serves."""
        return self.current is not self.rungs[0]

    @property
    def bottom(self) -> bool:
        """There is nothing to fall back to from the current rung."""
        return self.current is self.rungs[-1]

    def below(self, rung: Rung) -> Rung:
        """The rung that would come next, for a standby; the last one has itself."""
        at = self.rungs.index(rung)
        lower = [one for one in self.rungs[at + 1 :] if one.out_until is None]
        return lower[0] if lower else self.rungs[-1]

    def failed(self, rung: Rung, now: float) -> None:
        """An incident on this rung; past the limit within the window it is put aside for a while."""
        rung.incidents.append(now)
        while rung.incidents[0] < now - self._window:
            rung.incidents.popleft()
        if len(rung.incidents) >= self._most and rung is not self.rungs[-1]:
            self._put_aside(rung, now)

    def lost(self, rung: Rung) -> None:
        """Its device does not answer SIGKILL any more: no rung of that device is tried again in this run."""
        for one in self.rungs:
            if one.profile.device == rung.profile.device and one.profile.on_gpu:
                one.out_until = math.inf

    def due(self, now: float) -> Rung | None:
        """The best rung that was put aside long enough to be probed again."""
        return next((one for one in self.rungs if one.out_until is not None and one.out_until <= now), None)

    def requalified(self, rung: Rung) -> None:
        """Its own probe passed: it serves again."""
        rung.out_until = None
        rung.incidents.clear()

    def refused(self, rung: Rung, now: float) -> None:
        """Its probe failed: it waits twice as long."""
        self._put_aside(rung, now)

    def retry_in(self, now: float) -> float | None:
        """Seconds until a better rung is probed again; None where none waits, infinity where the device is lost."""
        waiting = [one.out_until - now for one in self.rungs if one.out_until is not None]
        return max(0.0, min(waiting)) if waiting else None

    def _put_aside(self, rung: Rung, now: float) -> None:
        rung.out_until = now + min(self._pause * 2**rung.times_out, LONGEST_PAUSE_S)
        rung.times_out += 1
        rung.incidents.clear()
