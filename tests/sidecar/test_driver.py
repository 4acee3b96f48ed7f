"""The driver with a fake engine, in this process: every accepted request ends, whatever happens to it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from stentor.engines.base import Launch
from stentor.journal import StatusPage
from stentor.protocol import (
    Append,
    Audio,
    Cancel,
    Cancelled,
    Done,
    Error,
    FromSidecar,
    Shutdown,
    Started,
    StatsReport,
    StatsRequest,
    Synthesize,
    ToSidecar,
)
from stentor.sidecar.driver import Driver
from tests.fake_engine import FakeEngine


@dataclass
class Running:
    """A driver in a thread, and what it said."""

    inbox: queue.SimpleQueue[ToSidecar]
    outbox: queue.Queue[FromSidecar]
    page: StatusPage

    def say(self, *messages: ToSidecar) -> None:
        for message in messages:
            self.inbox.put(message)

    def hear(self, until: type) -> list[FromSidecar]:
        heard: list[FromSidecar] = []
        while not heard or not isinstance(heard[-1], until):
            heard.append(self.outbox.get(timeout=10))
        return heard


@contextmanager
def driving(outbox_size: int = 0, **options: object) -> Iterator[Running]:
    running = Running(queue.SimpleQueue(), queue.Queue(outbox_size), StatusPage.anonymous())
    engine = FakeEngine(Launch("fake", slots=2, options=options), lambda stage, fraction: None)
    thread = threading.Thread(target=Driver(engine, running.inbox, running.outbox, running.page).run)
    thread.start()
    yield running
    running.say(Shutdown())
    while thread.is_alive():
        while not running.outbox.empty():
            running.outbox.get()
        thread.join(0.05)


def _speak(request_id: str, text: str) -> Synthesize:
    return Synthesize(id=request_id, text=text, seed=1)


def test_an_utterance_is_started_spoken_and_done() -> None:
    with driving() as driver:
        driver.say(_speak("a", "one two three"))
        heard = driver.hear(Done)
    assert [type(one) for one in heard] == [Started, Audio, Audio, Audio, Done]


def test_two_utterances_share_the_engine_and_a_third_waits_for_a_slot() -> None:
    with driving(frame_s=0.01) as driver:
        driver.say(_speak("a", "1 2 3 4"), _speak("b", "1 2 3 4"), _speak("c", "1"))
        heard: list[FromSidecar] = []
        for _ in range(3):
            heard += driver.hear(Done)
    order = [one.id for one in heard if isinstance(one, Audio)]
    assert order[:6] in (["a", "b", "a", "b", "a", "b"], ["a", "a", "b", "a", "b", "a"])
    assert [one.id for one in heard if isinstance(one, Done)][-1] == "c"


def test_a_cancel_is_obeyed_before_the_next_frame() -> None:
    with driving(frame_s=0.05) as driver:
        driver.say(_speak("a", "word " * 1000))
        driver.hear(Audio)
        driver.say(Cancel(id="a"))
        heard = driver.hear(Cancelled)
        assert sum(isinstance(one, Audio) for one in heard) <= 1
        driver.say(_speak("b", "next"))
        assert isinstance(driver.hear(Done)[-1], Done)


def test_a_cancel_of_one_that_waits_is_obeyed_too_and_of_an_unknown_one_is_nothing() -> None:
    with driving(frame_s=0.01) as driver:
        driver.say(_speak("a", "1 2"), _speak("b", "1 2"), _speak("c", "1 2"), Cancel(id="c"), Cancel(id="nobody"))
        heard = driver.hear(Done) + driver.hear(Done)
    assert [one.id for one in heard if isinstance(one, Cancelled)] == ["c"]


@pytest.mark.parametrize(("word", "code"), [("RAISE", "engine_failed"), ("BUG", "engine_failed")])
def test_an_engine_that_raises_ends_one_request_and_not_its_neighbour(word: str, code: str) -> None:
    with driving() as driver:
        driver.say(_speak("bad", f"one {word}"), _speak("good", "one two three"))
        heard = driver.hear(Done)
    errors = [one for one in heard if isinstance(one, Error)]
    assert [(one.id, one.code) for one in errors] == [("bad", code)]
    assert heard[-1] == Done(id="good")


def test_an_id_that_is_already_open_is_refused_without_ending_the_first() -> None:
    with driving(frame_s=0.01) as driver:
        driver.say(_speak("a", "1 2 3"), _speak("a", "1 2 3"))
        heard = driver.hear(Done)
    assert [one.id for one in heard if isinstance(one, Error)] == [None]
    assert sum(isinstance(one, Audio) for one in heard) == 3


def test_text_for_an_engine_that_cannot_take_more_ends_that_request_with_an_error() -> None:
    with driving(frame_s=0.01) as driver:
        driver.say(_speak("a", "1 2 3 4 5"), Append(id="a", text="more"))
        heard = driver.hear(Error)
    assert (heard[-1].id, heard[-1].code) == ("a", "unsupported_option")  # type: ignore[union-attr]


def test_a_shutdown_ends_what_is_open_with_cancelled() -> None:
    with driving(frame_s=0.01) as driver:
        driver.say(_speak("a", "word " * 1000), _speak("b", "x " * 1000), _speak("waiting", "y"), Shutdown())
        heard = driver.hear(Cancelled) + driver.hear(Cancelled) + driver.hear(Cancelled)
    assert {one.id for one in heard if isinstance(one, Cancelled)} == {"a", "b", "waiting"}


def test_the_page_shows_progress_and_who_is_in() -> None:
    with driving(frame_s=0.02) as driver:
        driver.say(_speak("a", "word " * 50))
        driver.hear(Audio)
        first = driver.page.read()
        driver.hear(Audio)
        driver.hear(Audio)
        second = driver.page.read()
        driver.say(Cancel(id="a"))
    assert first.active == ("a",)
    assert first.phase == "frame"
    assert second.counter > first.counter


def test_a_host_that_does_not_read_shows_as_a_blocked_pipe_not_as_a_frame() -> None:
    with driving(outbox_size=2) as driver:
        driver.say(_speak("a", "word " * 50))
        for _ in range(500):
            if driver.page.read().phase == "blocked-pipe":
                break
            threading.Event().wait(0.01)
        assert driver.page.read().phase == "blocked-pipe"
        assert isinstance(driver.hear(Done)[-1], Done)


def test_stats_tell_units_and_memory() -> None:
    with driving() as driver:
        driver.say(_speak("a", "one two"))
        driver.hear(Done)
        driver.say(StatsRequest())
        values = driver.hear(StatsReport)[-1].values  # type: ignore[union-attr]
    assert values["units"] >= 3
    assert values["rss_bytes"] > 1e6
