"""The status page: what a driver writes is what the watchdog reads, also across processes."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from stentor.errors import ProtocolError
from stentor.journal import BOUNDARIES, ID_BYTES, MAX_ACTIVE, PAGE_BYTES, Boundary, Journal, StatusPage


def test_a_fresh_page_shows_no_work(tmp_path: Path) -> None:
    status = StatusPage.create(tmp_path / "page").read()
    assert (status.counter, status.phase, status.unit, status.active) == (0, "", 0, ())


def test_what_the_sidecar_writes_the_host_reads(tmp_path: Path) -> None:
    host = StatusPage.create(tmp_path / "page")
    sidecar = StatusPage.open(tmp_path / "page")
    sidecar.write("frame", 7, ("a", "b"))
    status = host.read()
    assert (status.counter, status.phase, status.unit, status.active) == (1, "frame", 7, ("a", "b"))
    assert status.pid == os.getpid()


def test_the_counter_grows_with_every_record_even_an_equal_one(tmp_path: Path) -> None:
    page = StatusPage.create(tmp_path / "page")
    counters = []
    for _ in range(3):
        page.write("frame", 0, ("a",))
        counters.append(page.read().counter)
    assert counters == [1, 2, 3]


def test_more_ids_than_fit_and_longer_ones_are_cut_not_fatal(tmp_path: Path) -> None:
    page = StatusPage.create(tmp_path / "page")
    page.write("frame", 0, tuple(f"{number}" * 100 for number in range(MAX_ACTIVE + 5)))
    active = page.read().active
    assert len(active) == MAX_ACTIVE
    assert all(len(one) <= ID_BYTES for one in active)


def test_a_record_torn_by_a_kill_leaves_the_one_before_it(tmp_path: Path) -> None:
    page = StatusPage.create(tmp_path / "page")
    page.write("frame", 3, ("a",))
    assert page.read().unit == 3
    with (tmp_path / "page").open("r+b") as file:
        file.seek(24)
        file.write(b"\x63")  # another unit, but not its checksum: the writer died in between
    assert page.read().unit == 3
    page.write("frame", 4, ())
    assert (page.read().unit, page.read().counter) == (4, 2)


@pytest.mark.parametrize("content", [b"", b"x" * PAGE_BYTES, b"STENTOR1"])
def test_a_file_that_is_no_page_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "page").write_bytes(content)
    with pytest.raises(ProtocolError):
        StatusPage.open(tmp_path / "page")


def _write_many(path: Path, count: int) -> None:
    page = StatusPage.open(path)
    for unit in range(count):
        page.write(f"phase{unit % 10}", unit, (f"id{unit}",) * (unit % 4))


def test_a_reader_never_sees_half_a_record(tmp_path: Path) -> None:
    path = tmp_path / "page"
    page = StatusPage.create(path)
    writer = multiprocessing.get_context("spawn").Process(target=_write_many, args=(path, 20_000))
    writer.start()
    seen = 0
    while writer.is_alive() or seen == 0:
        status = page.read()
        if status.counter:
            seen += 1
            assert status.unit == status.counter - 1
            assert status.phase == f"phase{status.unit % 10}"
            assert status.active == (f"id{status.unit}",) * (status.unit % 4)
    writer.join()
    assert page.read().counter == 20_000


def test_an_utterance_goes_on_from_the_last_boundary_that_was_delivered(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "one")
    writer = Journal.open(tmp_path / "one")
    assert journal.boundary(10**9) == Boundary(0, 0)
    for frame in range(1, 6):
        writer.commit(frame, frame * 1000)
    assert journal.boundary(999) == Boundary(0, 0)
    assert journal.boundary(3000) == Boundary(3, 3000)
    assert journal.boundary(4999) == Boundary(4, 4000)
    assert journal.boundary(10**9) == Boundary(5, 5000)


def test_a_long_utterance_keeps_its_last_boundaries(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "one")
    for frame in range(1, 10_000):
        journal.commit(frame, frame * 10)
    assert journal.boundary(99_990) == Boundary(9_999, 99_990)
    assert journal.boundary(99_990 - 10 * (BOUNDARIES - 1)) == Boundary(
        9_999 - BOUNDARIES + 1, 99_990 - 10 * (BOUNDARIES - 1)
    )


def test_a_boundary_that_was_half_written_when_its_writer_died_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "one"
    journal = Journal.create(path)
    journal.commit(1, 1000)
    journal.commit(2, 2000)
    raw = bytearray(path.read_bytes())
    at = raw.rindex((2000).to_bytes(8, "little"))
    raw[at : at + 2] = b"\xff\xff"
    path.write_bytes(raw)
    assert Journal.open(path).boundary(10**9) == Boundary(1, 1000)


@pytest.mark.parametrize("content", [b"", b"STENTORJ", b"x" * 6160])
def test_a_file_that_is_no_journal_is_told_apart(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "one").write_bytes(content)
    with pytest.raises(ProtocolError, match="journal"):
        Journal.open(tmp_path / "one")
