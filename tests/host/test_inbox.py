"""What a client has not taken yet: in order, whole, and on disk where it is much."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from stentor.errors import SidecarDied
from stentor.host import inbox
from stentor.host.inbox import Inbox
from stentor.protocol import Audio, Done, FromSidecar, Started


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "IN_MEMORY", 1000)


def _audio(number: int, size: int) -> Audio:
    return Audio(id="a", first_sample=number, pcm=bytes([number % 256]) * size)


async def _take(box: Inbox, count: int) -> list[object]:
    return [await box.get() for _ in range(count)]


def test_everything_comes_out_as_it_went_in_whatever_was_on_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        choose = np.random.default_rng(3)
        box = Inbox(tmp_path)
        sent: list[object] = [Started(id="a", slot=0)]
        taken: list[object] = []
        box.put(sent[0])  # type: ignore[arg-type]
        for number in range(500):
            message = _audio(number, int(choose.integers(0, 400)))
            sent.append(message)
            box.put(message)
            taken += await _take(box, int(choose.integers(0, min(4, len(sent) - len(taken)) + 1)))
        ending: list[FromSidecar | SidecarDied] = [Done(id="a"), SidecarDied("gone")]
        for one in ending:
            box.put(one)
        taken += await _take(box, len(sent) + 2 - len(taken))
        assert taken == [*sent, *ending]
        box.close()

    asyncio.run(scenario())


def test_the_file_has_no_name_and_shrinks_when_all_was_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        box = Inbox(tmp_path)
        for number in range(10):
            box.put(_audio(number, 900))
        assert os.listdir(tmp_path) == []  # noqa: PTH208
        await _take(box, 10)
        assert box._file is not None
        assert box._file.seek(0, 2) == 0
        box.close()

    asyncio.run(scenario())


def test_a_reader_waits_for_what_has_not_come_yet(tmp_path: Path) -> None:
    async def scenario() -> None:
        box = Inbox(tmp_path)
        waiting = asyncio.create_task(box.get())
        await asyncio.sleep(0)
        assert not waiting.done()
        box.put(Done(id="a"))
        assert await waiting == Done(id="a")

    asyncio.run(scenario())
