"""The mailbox with a delivery that does what a test says: a loss costs time or ends in an error, never in a gap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.decoder.mailbox import (
    CODES_PER_FRAME,
    HISTORY,
    MAX_SLOTS,
    Frame,
    Mailbox,
    MailboxFull,
    MailboxGap,
    MailboxStall,
    empty_row,
    pack,
    row_words,
)
from tests.decoder.device import DEADLINE, LOST, Device, Fate, plain

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def _patterns(draw: st.DrawFn) -> list[Fate]:
    """Any fates with at most 7 losses in a row: runs of losses, each ended by a copy that arrives."""
    runs = st.tuples(st.lists(st.sampled_from(LOST), max_size=7), st.sampled_from((Fate.ARRIVES, Fate.UNSIGNALLED)))
    return [fate for losses, arrival in draw(st.lists(runs, min_size=1, max_size=12)) for fate in (*losses, arrival)]


@given(fates=_patterns(), slots=st.integers(1, 4), depth=st.integers(1, 3), seed=SEEDS)
@settings(deadline=None)
def test_with_fewer_than_8_losses_in_a_row_every_frame_comes_once_and_in_order(
    fates: list[Fate], slots: int, depth: int, seed: int
) -> None:
    device = Device(fates, slots, depth, seed)
    came = device.run(len(fates))
    assert [frame.number for frame in came] == list(range(len(came)))
    assert plain(came) == device.wrote[: len(came)]
    assert len(came) >= len(fates)


@given(fates=st.lists(st.sampled_from(Fate), max_size=60), depth=st.integers(1, 3), seed=SEEDS)
@settings(deadline=None)
def test_whatever_is_lost_frames_come_in_order_or_an_error_says_that_they_do_not(
    fates: list[Fate], depth: int, seed: int
) -> None:
    device = Device(fates, depth=depth, seed=seed)
    came: list[Frame] = []
    try:
        for now in range(2000):
            if device.mailbox.room:
                device.post(now)
            came += device.mailbox.poll(now)
            if len(came) >= len(fates):
                break
        else:
            pytest.fail("neither all frames nor an error")
    except (MailboxStall, MailboxGap):
        assert max(len(run) for run in _runs_of_losses(fates)) >= HISTORY
    assert plain(came) == device.wrote[: len(came)]


def _runs_of_losses(fates: list[Fate]) -> list[str]:
    return "".join("x" if fate in LOST else " " for fate in fates).split(" ")


def test_a_lost_copy_is_healed_by_the_next_one() -> None:
    device = Device([Fate.NO_DATA])
    device.post()
    assert device.mailbox.poll(1) == []
    device.post(2)
    assert plain(device.mailbox.poll(3)) == device.wrote
    assert len(device.wrote) == 2


def test_data_that_arrives_without_its_signal_is_taken_at_once() -> None:
    device = Device([Fate.UNSIGNALLED])
    device.post()
    assert plain(device.mailbox.poll(0)) == device.wrote
    assert device.mailbox.in_flight == 0


def test_seven_losses_in_a_row_are_healed() -> None:
    device = Device([Fate.NO_DATA] * 7)
    assert plain(device.run(8)) == device.wrote
    assert len(device.wrote) == 8


def test_eight_losses_in_a_row_are_an_error_and_not_a_gap() -> None:
    device = Device([Fate.ARRIVES] * 3 + [Fate.NO_DATA] * 8)
    with pytest.raises(MailboxGap, match="frame 3 "):
        device.run(99)
    assert device.mailbox.seen == 3


def test_the_row_says_for_each_slot_whether_it_has_finished() -> None:
    mailbox = Mailbox(MAX_SLOTS)
    finished = np.arange(MAX_SLOTS) % 3 == 2
    mailbox.post(pack(empty_row(MAX_SLOTS), np.zeros((MAX_SLOTS, CODES_PER_FRAME)), finished), 0)
    (frame,) = mailbox.poll(0)
    assert frame.finished.tolist() == finished.tolist()


@pytest.mark.parametrize("slots", [0, MAX_SLOTS + 1])
def test_a_mailbox_for_no_slot_or_for_too_many_is_refused(slots: int) -> None:
    with pytest.raises(ValueError, match=f"1 to {MAX_SLOTS}"):
        Mailbox(slots)


@given(data=st.data(), seed=SEEDS)
@settings(deadline=None)
def test_a_buffer_with_words_of_two_entries_is_never_taken_for_one(data: st.DataObject, seed: int) -> None:
    device = Device([Fate.ARRIVES, Fate.NO_DATA], slots=2, depth=1, seed=seed)
    device.post()
    old = device.delivery.buffer(0).copy()
    assert len(device.mailbox.poll(0)) == 1
    new = device.write().copy()
    device.mailbox.post(new, 0)
    differ = np.flatnonzero(old != new)
    come = data.draw(st.lists(st.sampled_from(differ.tolist()), max_size=differ.size - 1, unique=True))
    device.delivery.buffer(0)[come] = new[come]
    assert device.mailbox.poll(0) == []
    device.delivery.buffer(0)[:] = new
    assert plain(device.mailbox.poll(0)) == device.wrote[1:]


@given(word=st.integers(0, row_words(1) - 1), bit=st.integers(0, 62))
@settings(deadline=None)
def test_an_entry_with_one_wrong_bit_is_not_taken(word: int, bit: int) -> None:
    device = Device([])
    device.post()
    device.delivery.buffer(0)[word] ^= 1 << bit
    assert device.mailbox.poll(0) == []


def test_an_entry_that_was_never_posted_here_is_not_taken() -> None:
    """Memory that held a mailbox before this one."""
    old = Device([])
    rows = [old.write().copy() for _ in range(5)]
    device = Device([Fate.NO_DATA])
    device.delivery.buffer(1)[:] = rows[-1]
    device.post()
    assert device.mailbox.poll(0) == []


@pytest.mark.parametrize("fate", [Fate.NEITHER, Fate.NO_DATA])
def test_what_does_not_arrive_is_a_stall_after_the_deadline_and_not_before(fate: Fate) -> None:
    device = Device([Fate.ARRIVES] + [fate] * 2)
    device.post(0)
    assert len(device.mailbox.poll(5)) == 1
    device.post(1000)
    assert device.mailbox.poll(1000 + DEADLINE) == []
    with pytest.raises(MailboxStall, match=r"frame 1 .* 101\.0 s"):
        device.mailbox.poll(1000 + DEADLINE + 1)


def test_a_mailbox_in_which_nothing_is_due_never_stalls() -> None:
    device = Device([])
    assert device.mailbox.poll(10 * DEADLINE) == []
    device.post(10 * DEADLINE)
    device.mailbox.poll(10 * DEADLINE)
    assert device.mailbox.poll(100 * DEADLINE) == []


def test_the_deadline_counts_from_the_last_arrival() -> None:
    device = Device([Fate.NEITHER] * 2)
    device.post(0)
    first = device.wrote[:1]
    slow = Device([]).write()
    device.post(0)
    device.delivery.buffer(0)[:] = slow
    assert plain(device.mailbox.poll(90)) == first
    assert device.mailbox.poll(90 + DEADLINE) == []
    with pytest.raises(MailboxStall, match="frame 1 "):
        device.mailbox.poll(91 + DEADLINE)


def test_a_device_that_falls_silent_is_a_stall_before_any_frame_is_out_of_reach() -> None:
    device = Device([Fate.NEITHER] * HISTORY)
    quarter = DEADLINE / 4
    for now in (0, quarter, 2 * quarter, 3 * quarter):
        device.post(now)
        device.post(now)
        assert device.mailbox.poll(now + quarter - 1) == []
        assert not device.mailbox.room
        assert device.mailbox.poll(now + quarter) == []
    assert not device.mailbox.room
    with pytest.raises(MailboxStall):
        device.mailbox.poll(DEADLINE + 1)


def test_nothing_is_posted_that_would_push_out_a_frame_still_on_its_way() -> None:
    device = Device([Fate.NO_DATA] * 7 + [Fate.NEITHER])
    for now in range(HISTORY):
        entry = device.write()
        device.mailbox.post(entry, now)
        assert device.mailbox.poll(now) == []
    assert device.mailbox.in_flight == 1
    assert not device.mailbox.room
    device.delivery.buffer(0)[:] = entry
    assert plain(device.mailbox.poll(HISTORY)) == device.wrote
    assert device.mailbox.room


def test_no_more_entries_are_in_flight_than_the_depth() -> None:
    device = Device([Fate.NEITHER] * 3)
    device.post()
    device.post()
    assert not device.mailbox.room
    with pytest.raises(MailboxFull, match="2 entries"):
        device.post()


def test_a_slow_copy_into_a_buffer_that_was_given_away_still_counts() -> None:
    device = Device([Fate.NEITHER] * 2, depth=1)
    device.post(0)
    first = Device([]).write()
    given_away = DEADLINE / HISTORY
    assert device.mailbox.poll(given_away) == []
    device.post(given_away)
    device.delivery.buffer(0)[:] = first
    assert plain(device.mailbox.poll(given_away)) == device.wrote[:1]
    assert device.mailbox.in_flight == 1


def test_a_post_without_a_delivery_of_ones_own_arrives_at_once() -> None:
    mailbox = Mailbox(1)
    row = empty_row(1)
    for number in range(20):
        mailbox.post(pack(row, np.full((1, CODES_PER_FRAME), number), [False]), 0)
        assert [frame.codes[0, 0] for frame in mailbox.poll(0)] == [number]
