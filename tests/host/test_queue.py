"""Admission: slots, order, bound, and slots that are handed on whatever happens to those who wait."""

from __future__ import annotations

import asyncio

import pytest

from stentor.errors import Busy
from stentor.host.queue import Queue


async def _hold(queue: Queue, entered: list[int], number: int, release: asyncio.Event) -> None:
    async with queue.place():
        entered.append(number)
        await release.wait()


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_requests_beyond_the_slots_wait_and_enter_in_their_order() -> None:
    async def scenario() -> list[int]:
        queue, entered, release = Queue(limit=10, slots=2), [], asyncio.Event()
        tasks = [asyncio.create_task(_hold(queue, entered, number, release)) for number in range(5)]
        await _settle()
        assert entered == [0, 1]
        assert (queue.running, queue.waiting) == (2, 3)
        release.set()
        await asyncio.gather(*tasks)
        assert (queue.running, queue.waiting) == (0, 0)
        return entered

    assert asyncio.run(scenario()) == [0, 1, 2, 3, 4]


def test_past_its_limit_the_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    async def scenario() -> Busy:
        queue, release = Queue(limit=1, slots=1), asyncio.Event()
        tasks = [asyncio.create_task(_hold(queue, [], number, release)) for number in range(2)]
        await _settle()
        with pytest.raises(Busy) as refused:
            await _hold(queue, [], 3, release)
        release.set()
        await asyncio.gather(*tasks)
        return refused.value

    error = asyncio.run(scenario())
    assert error.status == 429
    assert error.retry_after > 0


def test_one_that_gives_up_waiting_leaves_the_line() -> None:
    async def scenario() -> None:
        queue, entered, release = Queue(limit=5, slots=1), [], asyncio.Event()
        tasks = [asyncio.create_task(_hold(queue, entered, number, release)) for number in range(3)]
        await _settle()
        tasks[1].cancel()
        await _settle()
        assert queue.waiting == 1
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert entered == [0, 2]
        assert queue.running == 0

    asyncio.run(scenario())


def test_a_slot_given_to_one_that_is_cancelled_in_the_same_moment_is_handed_on() -> None:
    async def scenario() -> None:
        queue, entered, release = Queue(limit=5, slots=1), [], asyncio.Event()
        first, gone = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(_hold(queue, [], 0, first))
        await _settle()
        loser = asyncio.create_task(_hold(queue, entered, 1, gone))
        winner = asyncio.create_task(_hold(queue, entered, 2, release))
        await _settle()
        first.set()
        await asyncio.sleep(0)  # the holder runs and hands its slot to the loser, which has not run yet
        loser.cancel()
        await _settle()
        assert entered == [2]
        release.set()
        await asyncio.gather(holder, loser, winner, return_exceptions=True)
        assert queue.running == 0

    asyncio.run(scenario())


def test_a_holder_and_a_waiter_cancelled_in_one_moment_both_end_as_cancelled() -> None:
    async def scenario() -> None:
        queue = Queue(limit=5, slots=1)
        never = asyncio.Event()
        tasks = [asyncio.create_task(_hold(queue, [], number, never)) for number in range(3)]
        await _settle()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in results), results
        assert (queue.running, queue.waiting) == (0, 0)

    asyncio.run(scenario())


def test_more_slots_let_those_who_wait_in() -> None:
    async def scenario() -> None:
        queue, entered, release = Queue(limit=9, slots=1), [], asyncio.Event()
        tasks = [asyncio.create_task(_hold(queue, entered, number, release)) for number in range(4)]
        await _settle()
        queue.resize(3)
        await _settle()
        assert entered == [0, 1, 2]
        release.set()
        await asyncio.gather(*tasks)

    asyncio.run(scenario())
