"""The ladder and its breaker as a pure state machine: the clock is passed in."""

from __future__ import annotations

import math

from stentor.host.ladder import Ladder
from stentor.machine.profile import CPU, Profile

GPU = Profile("gpu", device="cuda:0")
SAFE = Profile("gpu-safe", device="cuda:0")


def _ladder(*profiles: Profile) -> Ladder:
    return Ladder(profiles or (GPU, SAFE, CPU), most=2, window=600, pause=900)


def _fail(ladder: Ladder, *times: float) -> list[str]:
    """The profile that serves after each failure of the one that served."""
    served = []
    for now in times:
        ladder.failed(ladder.current, now)
        served.append(ladder.current.profile.name)
    return served


def test_the_same_profile_is_tried_once_more_then_the_safer_one_then_the_cpu() -> None:
    assert _fail(_ladder(), 0, 1, 2, 3) == ["gpu", "gpu-safe", "gpu-safe", "cpu"]


def test_the_last_rung_is_never_kept_out() -> None:
    ladder = _ladder(CPU)
    assert _fail(ladder, *range(50)) == ["cpu"] * 50
    assert ladder.retry_in(50) is None


def test_incidents_far_apart_do_not_put_a_rung_aside() -> None:
    assert _fail(_ladder(), 0, 601, 1202, 1803) == ["gpu"] * 4


def test_a_rung_put_aside_is_due_after_its_pause_and_serves_again_once_its_probe_passed() -> None:
    ladder = _ladder(GPU, CPU)
    _fail(ladder, 0, 1)
    assert ladder.degraded
    assert ladder.due(900) is None
    assert ladder.retry_in(401) == 500
    rung = ladder.due(902)
    assert rung is not None
    ladder.requalified(rung)
    assert ladder.current.profile is GPU
    assert not ladder.degraded


def test_each_time_that_a_rung_is_put_aside_it_waits_twice_as_long_up_to_a_day() -> None:
    ladder = _ladder(GPU, CPU)
    waits = []
    for _ in range(10):
        ladder.refused(ladder.rungs[0], 0)
        waits.append(ladder.retry_in(0))
    assert waits[:4] == [900, 1800, 3600, 7200]
    assert waits[-1] == 86400


def test_a_lost_device_takes_all_of_its_rungs_with_it_and_is_never_due() -> None:
    ladder = _ladder()
    ladder.lost(ladder.current)
    assert ladder.current.profile is CPU
    assert ladder.due(1e12) is None
    assert ladder.retry_in(0) == math.inf


def test_the_standby_of_a_rung_is_the_next_one_that_may_serve() -> None:
    ladder = _ladder()
    assert ladder.below(ladder.current).profile is SAFE
    _fail(ladder, 0, 1)
    assert ladder.below(ladder.current).profile is CPU
    _fail(ladder, 2, 3)
    assert ladder.below(ladder.current).profile is CPU
