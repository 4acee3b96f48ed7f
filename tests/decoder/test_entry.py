"""An entry on its own: what a row holds, and what is not taken for one."""

from __future__ import annotations

import zlib
from functools import reduce
from operator import xor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.decoder.mailbox import (
    CHECKSUM,
    CODES,
    HISTORY,
    SEQUENCE,
    Entry,
    Row,
    checksum,
    checksum_bits,
    empty_row,
    pack,
    row_words,
    verify,
)
from tests.decoder.device import Device, plain

SEEDS = st.integers(0, 2**32 - 1)


@given(frames=st.integers(1, 30), slots=st.integers(1, 4), seed=SEEDS)
@settings(deadline=None)
def test_an_entry_holds_the_last_8_frames_that_were_packed(frames: int, slots: int, seed: int) -> None:
    device = Device([], slots, seed=seed)
    for _ in range(frames):
        row = device.write()
    entry = verify(row, slots)
    assert isinstance(entry, Entry)
    assert entry.sequence == frames
    held = list(entry.frames())
    assert [frame.number for frame in held] == list(range(frames))[-HISTORY:]
    assert plain(held) == device.wrote[-HISTORY:]
    assert [frame.number for frame in entry.frames(frames - 1)] == [frames - 1]


def test_an_entry_stays_what_it_was_when_the_device_writes_on() -> None:
    device = Device([])
    row = device.write()
    entry = verify(row, 1)
    assert entry is not None
    device.write()
    assert plain(list(entry.frames())) == device.wrote[:1]


@pytest.mark.parametrize("buffer", [np.zeros(0, dtype=np.int64), empty_row(1), empty_row(2)])
def test_a_buffer_into_which_nothing_has_come_holds_no_entry(buffer: Row) -> None:
    assert verify(buffer, 1) is None


def test_an_entry_for_another_number_of_slots_is_not_taken() -> None:
    row = Device([], slots=2).write()
    assert verify(row, 2) is not None
    assert verify(row, 1) is None


def test_a_row_of_no_frames_is_no_entry_even_with_a_right_checksum() -> None:
    row = empty_row(1)
    row[CHECKSUM] = checksum(row)
    assert verify(row, 1) is None


@given(seed=SEEDS, slots=st.integers(1, 3))
@settings(deadline=None, max_examples=20)
def test_a_device_can_make_the_checksum_from_the_bits_of_its_row(seed: int, slots: int) -> None:
    row = np.random.default_rng(seed).integers(-(2**63), 2**63, row_words(slots))
    is_set = (row[SEQUENCE:, None] >> np.arange(64)) & 1 == 1
    bits = checksum_bits(row.size - SEQUENCE)
    assert reduce(xor, bits[is_set].tolist(), zlib.crc32(bytes(8 * (row.size - SEQUENCE)))) == checksum(row)


def test_the_layout_is_the_documented_one() -> None:
    row = pack(empty_row(2), [range(16), range(16, 32)], [False, True])
    assert (row[SEQUENCE], row[2]) == (1, 0b10)
    assert row[CODES : CODES + 32].tolist() == list(range(32))
    assert row[CHECKSUM] == zlib.crc32(row[1:].tobytes())
