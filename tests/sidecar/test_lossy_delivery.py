"""The lossy delivery itself: it must lose what it says, or every test that survives it shows nothing."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from stentor.decoder.mailbox import CODES_PER_FRAME, Direct, Mailbox, MailboxGap, MailboxStall, Row, empty_row, pack
from stentor.sidecar.lossy_delivery import LossyDelivery

KINDS: tuple[Literal["signal", "data"], ...] = ("signal", "data")


def _row(value: int = 1) -> Row:
    return pack(empty_row(1), np.full((1, CODES_PER_FRAME), value), [False])


def test_a_lost_signal_leaves_the_data() -> None:
    delivery = LossyDelivery(1, kind="signal")
    delivery.start(0, _row())
    assert not delivery.signalled(0)
    assert delivery.buffer(0).tolist() == _row().tolist()


def test_lost_data_comes_neither_with_its_signal_nor_without() -> None:
    delivery = LossyDelivery(1, kind="data")
    delivery.start(0, _row())
    assert not delivery.signalled(0)
    assert delivery.buffer(0).size == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_lost_arrives_and_says_so(kind: Literal["signal", "data"]) -> None:
    delivery = LossyDelivery(0, kind=kind)
    delivery.start(1, _row())
    assert delivery.signalled(1)
    assert delivery.buffer(1).tolist() == _row().tolist()
    assert (delivery.copies, delivery.losses) == (1, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_buffer_whose_last_copy_arrived_says_so_again(kind: Literal["signal", "data"]) -> None:
    delivery = LossyDelivery(0.5, seed=1, kind=kind)
    said: list[bool] = []
    for number in range(40):
        before = delivery.losses
        delivery.start(0, _row(number))
        assert delivery.signalled(0) == (delivery.losses == before)
        said.append(delivery.signalled(0))
    assert 5 < sum(said) < 35
    assert (delivery.copies, delivery.losses) == (40, 40 - sum(said))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_loses_the_same_copies(kind: Literal["signal", "data"]) -> None:
    assert _lost(1, kind) == _lost(1, kind)
    assert _lost(1, kind) != _lost(2, kind)


def _lost(seed: int, kind: Literal["signal", "data"]) -> list[bool]:
    delivery = LossyDelivery(0.5, seed, kind, Direct())
    lost = []
    for _ in range(40):
        delivery.start(0, _row())
        lost.append(not delivery.signalled(0))
    return lost


def test_a_mailbox_whose_every_signal_is_lost_still_gives_each_frame_at_once() -> None:
    delivery = LossyDelivery(1, kind="signal")
    mailbox = Mailbox(1, delivery=delivery)
    row = empty_row(1)
    for number in range(50):
        mailbox.post(pack(row, np.full((1, CODES_PER_FRAME), number), [False]), 0)
        assert [frame.number for frame in mailbox.poll(0)] == [number]
    assert delivery.losses == 50


def test_a_mailbox_whose_all_data_is_lost_ends_in_an_error_and_does_not_hang() -> None:
    mailbox = Mailbox(1, deadline=5, delivery=LossyDelivery(1, kind="data"))
    with pytest.raises((MailboxStall, MailboxGap)):
        _run(mailbox, steps=100)
    assert mailbox.seen == 0


def _run(mailbox: Mailbox, steps: int) -> None:
    row = empty_row(1)
    for now in range(steps):
        if mailbox.room:
            mailbox.post(pack(row, np.zeros((1, CODES_PER_FRAME)), [False]), now)
        assert mailbox.poll(now) == []
