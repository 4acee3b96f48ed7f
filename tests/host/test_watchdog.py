"""The watchdog as a pure state machine: the clock is passed in."""

from __future__ import annotations

from stentor.host.watchdog import Watchdog
from stentor.journal import Status
from stentor.protocol import Loading


def _status(counter: int, phase: str = "frame") -> Status:
    return Status(counter=counter, phase=phase, unit=counter, pid=1, active=("a",))


def test_a_counter_that_stands_still_past_the_deadline_is_a_stall() -> None:
    watchdog = Watchdog(frame_timeout=5, load_timeout=300)
    assert watchdog.check(_status(3), 1, now=100) is None
    assert watchdog.check(_status(3), 1, now=104.9) is None
    stall = watchdog.check(_status(3), 1, now=105.1)
    assert stall is not None
    assert (stall.phase, stall.unit) == ("frame", 3)
    assert "5.1 s" in str(stall)


def test_a_counter_that_moves_is_never_a_stall() -> None:
    watchdog = Watchdog(frame_timeout=5, load_timeout=300)
    assert all(watchdog.check(_status(step), 1, now=step * 4.9) is None for step in range(100))


def test_an_idle_sidecar_may_stand_still_for_ever() -> None:
    watchdog = Watchdog(frame_timeout=5, load_timeout=300)
    assert all(watchdog.check(_status(3, "idle"), 0, now=now) is None for now in range(0, 10_000, 100))


def test_the_clock_of_a_request_starts_when_it_arrives_not_when_the_sidecar_went_idle() -> None:
    watchdog = Watchdog(frame_timeout=5, load_timeout=300)
    watchdog.check(_status(3, "idle"), 0, now=0)
    assert watchdog.check(_status(3, "idle"), 1, now=1000) is None
    assert watchdog.check(_status(3, "idle"), 1, now=1004) is None
    assert watchdog.check(_status(3, "idle"), 1, now=1006) is not None


def test_a_window_of_a_transcription_may_take_longer_than_a_frame() -> None:
    watchdog = Watchdog(frame_timeout=5, load_timeout=300)
    watchdog.check(_status(3, "window"), 1, now=0)
    assert watchdog.check(_status(3, "window"), 1, now=19) is None
    assert watchdog.check(_status(3, "window"), 1, now=21) is not None


def test_a_load_may_take_for_ever_as_long_as_it_tells_progress() -> None:
    watchdog = Watchdog(frame_timeout=5, load_timeout=300)
    for step in range(100):
        assert watchdog.check_load(Loading(stage="weights", fraction=step / 100), now=step * 299) is None


def test_a_load_that_tells_nothing_is_a_stall_that_names_its_stage() -> None:
    watchdog = Watchdog(frame_timeout=5, load_timeout=300)
    assert watchdog.check_load(None, now=0) is None
    assert watchdog.check_load(Loading(stage="weights", fraction=0.5), now=299) is None
    assert watchdog.check_load(Loading(stage="weights", fraction=0.5), now=598) is None
    assert "loading: weights" in str(watchdog.check_load(Loading(stage="weights", fraction=0.5), now=600))
