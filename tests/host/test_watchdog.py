"""The watchdog as a pure state machine: the clock is passed in."""

from __future__ import annotations

from stentor.host.watchdog import Deadlines, Watchdog
from stentor.journal import Status
from stentor.protocol import Loading


def _watchdog(deadlines: Deadlines | None = None) -> Watchdog:
    return Watchdog(deadlines or Deadlines(frame_timeout=5, load_timeout=300))


def _look(watchdog: Watchdog, status: Status, start: float, end: float, requests: int = 1) -> float | None:
    """The time at which a look every 0.1 s first sees a stall."""
    for step in range(int((end - start) * 10) + 1):
        now = start + step / 10
        if watchdog.check(status, requests, now):
            return now
    return None


def _status(counter: int, phase: str = "frame") -> Status:
    return Status(counter=counter, phase=phase, unit=counter, pid=1, active=("a",))


def test_a_counter_that_stands_still_past_the_deadline_is_a_stall() -> None:
    watchdog = _watchdog()
    assert _look(watchdog, _status(3), 100, 104.9) is None
    stall = watchdog.check(_status(3), 1, now=105.1)
    assert stall is not None
    assert (stall.phase, stall.unit) == ("frame", 3)
    assert "5.1 s" in str(stall)


def test_a_stall_is_seen_within_a_second_of_its_deadline() -> None:
    seen = _look(_watchdog(), _status(3), 0, 60)
    assert seen is not None
    assert 5 < seen < 6


def test_a_counter_that_moves_is_never_a_stall() -> None:
    watchdog = _watchdog()
    assert all(_look(watchdog, _status(step), step * 4.9, step * 4.9 + 4.8) is None for step in range(50))


def test_an_idle_sidecar_may_stand_still_for_ever() -> None:
    watchdog = _watchdog()
    assert _look(watchdog, _status(3, "idle"), 0, 1000, requests=0) is None


def test_the_clock_of_a_request_starts_when_it_arrives_not_when_the_sidecar_went_idle() -> None:
    watchdog = _watchdog()
    _look(watchdog, _status(3, "idle"), 0, 1000, requests=0)
    seen = _look(watchdog, _status(3, "idle"), 1000, 1010)
    assert seen is not None
    assert 1005 < seen < 1006


def test_a_window_of_a_transcription_may_take_longer_than_a_frame() -> None:
    seen = _look(_watchdog(), _status(3, "window"), 0, 60)
    assert seen is not None
    assert 30 < seen < 31


def test_a_pause_of_the_host_itself_is_not_the_sidecars_fault() -> None:
    """The machine slept or the host was stopped: the sidecar gets its whole deadline from then on."""
    watchdog = _watchdog()
    assert _look(watchdog, _status(3), 0, 2) is None
    seen = _look(watchdog, _status(3), 3600, 3620)
    assert seen is not None
    assert 3601.5 < seen < 3603.5


def test_a_load_may_take_for_ever_as_long_as_it_tells_progress() -> None:
    watchdog = _watchdog()
    for step in range(5):
        loading = Loading(stage="weights", fraction=step / 5)
        assert not any(watchdog.check_load(loading, now=step * 299 + second) for second in range(299))


def test_a_load_that_tells_nothing_is_a_stall_that_names_its_stage() -> None:
    watchdog = _watchdog()
    loading = Loading(stage="weights", fraction=0.5)
    looks = [watchdog.check_load(loading, now=float(second)) for second in range(310)]
    assert looks[:300] == [None] * 300
    assert "loading: weights" in str(looks[302])


def test_a_shape_that_was_never_seen_may_take_two_minutes() -> None:
    seen = _look(_watchdog(), _status(3, "unseen"), 0, 150)
    assert seen is not None
    assert 120 < seen < 121


def test_a_slow_machine_raises_its_own_deadline_to_ten_times_what_units_take_there() -> None:
    deadlines = Deadlines(frame_timeout=5, load_timeout=300)
    for counter in range(30):
        assert _look(_watchdog(deadlines), _status(counter), 0, 1) is None
    watchdog = _watchdog(deadlines)
    for counter in range(30):  # each unit takes two seconds
        assert _look(watchdog, _status(counter), counter * 2, counter * 2 + 1.9) is None
    assert 19 < deadlines.limit("frame") < 22
    assert deadlines.limit("prefill") == 10


def test_a_fast_machine_keeps_the_default_and_is_not_judged_by_its_best_days() -> None:
    deadlines = Deadlines(frame_timeout=5, load_timeout=300)
    watchdog = _watchdog(deadlines)
    for counter in range(100):
        watchdog.check(_status(counter), 1, now=counter * 0.1)
    assert deadlines.limit("frame") == 5


def test_a_unit_that_was_given_up_gets_twice_the_time_in_the_next_process() -> None:
    """A machine slower than the default is told from a device that hangs by what the next process does."""
    deadlines = Deadlines(frame_timeout=5, load_timeout=300)
    limits = []
    for _ in range(6):
        assert _look(_watchdog(deadlines), _status(0), 0, 100) is not None
        limits.append(deadlines.limit("frame"))
    assert limits == [10, 20, 40, 40, 40, 40]
    watchdog = _watchdog(deadlines)
    watchdog.check(_status(0), 0, now=0)
    watchdog.check(_status(2), 0, now=0.1)  # a request came and went between two looks: this process works
    assert deadlines.limit("frame") == 5


def test_a_machine_on_which_each_unit_takes_longer_than_the_default_is_killed_once_and_not_again() -> None:
    deadlines = Deadlines(frame_timeout=5, load_timeout=300)
    assert _look(_watchdog(deadlines), _status(0), 0, 8) is not None
    watchdog = _watchdog(deadlines)
    for counter in range(50):
        assert _look(watchdog, _status(counter), 100 + counter * 8, 107.9 + counter * 8) is None


def test_time_between_two_requests_teaches_nothing() -> None:
    deadlines = Deadlines(frame_timeout=5, load_timeout=300)
    watchdog = _watchdog(deadlines)
    for hour in range(40):
        watchdog.check(_status(hour), 1, now=hour * 3600)
        watchdog.check(_status(hour), 0, now=hour * 3600 + 0.1)
    assert deadlines.limit("frame") == 5
