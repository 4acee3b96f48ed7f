"""What HTTP, the process boundary and the encoder cost beside the same engine in process: one run, in turn, medians.

    .venv/bin/python bench/http.py [--rounds 20]

Prints first-byte and total time of a short and a medium text for 1, 8 and 32 clients at once, the slowest client's
first byte (nobody may starve), and how long /live takes to answer while 16 streams run.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # else this file would be the standard library's `http`

import argparse
import asyncio
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable

import httpx
from bench.demo import address, wait_until_ready

from stentor.engines.base import Launch
from stentor.engines.hibari import HibariEngine
from stentor.protocol import Audio, Done, Synthesize

TEXTS = {
    "short": "Good morning, everyone.",
    "medium": "The quick brown fox jumps over the lazy dog. Then it lies down in the grass and sleeps until noon. "
    "Nobody in the village has ever seen it run again, but they tell the story every winter.",
}
CLIENTS = (1, 8, 32)
Timing = tuple[float, float]  # seconds to the first audio, seconds in all


def in_process(engine: HibariEngine, text: str, clients: int) -> list[Timing]:
    """The engine alone, with this many utterances open."""
    began = time.perf_counter()
    first: dict[str, float] = {}
    total: dict[str, float] = {}
    for number in range(clients):
        engine.submit(Synthesize(id=str(number), text=text, seed=number))
    while len(total) < clients:
        for message in engine.advance():
            elapsed = time.perf_counter() - began
            if isinstance(message, Audio):
                first.setdefault(message.id, elapsed)
            elif isinstance(message, Done):
                total[message.id] = elapsed
    return [(first[one], total[one]) for one in total]


async def through_http(client: httpx.AsyncClient, text: str, clients: int, format: str) -> list[Timing]:
    return list(await asyncio.gather(*(ask(client, text, number, format) for number in range(clients))))


async def ask(client: httpx.AsyncClient, text: str, seed: int, format: str) -> Timing:
    began = time.perf_counter()
    first = 0.0
    body = {"input": text, "seed": seed, "response_format": format}
    async with client.stream("POST", "/v1/audio/speech", json=body) as response:
        response.raise_for_status()
        async for _ in response.aiter_raw():
            first = first or time.perf_counter() - began
    return first, time.perf_counter() - began


async def live_while_busy(client: httpx.AsyncClient, streams: int, format: str) -> list[float]:
    """Seconds that /live takes while `streams` long texts are spoken."""
    busy = asyncio.gather(*(ask(client, TEXTS["medium"] * 10, number, format) for number in range(streams)))
    taken = []
    while not busy.done():
        began = time.perf_counter()
        (await client.get("/live")).raise_for_status()
        taken.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)
    await busy
    return taken


def summary(rounds: list[list[Timing]]) -> tuple[float, float, float]:
    """Median first, worst first, median total, in milliseconds."""
    every = [timing for one in rounds for timing in one]
    firsts = [first for first, _ in every]
    return (
        1000 * statistics.median(firsts),
        1000 * statistics.median(max(first for first, _ in one) for one in rounds),
        1000 * statistics.median(total for _, total in every),
    )


async def measure(base: str, rounds: int) -> None:
    engine = HibariEngine(Launch("hibari"), lambda stage, fraction: None)
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    async with httpx.AsyncClient(base_url=base, timeout=120, limits=limits, trust_env=False) as client:
        ways: dict[str, Callable[[str, int], Awaitable[list[Timing]]]] = {
            "HTTP pcm": lambda text, clients: through_http(client, text, clients, "pcm"),
            "HTTP mp3": lambda text, clients: through_http(client, text, clients, "mp3"),
        }
        print("text    clients way          first ms   slowest  total ms  over engine")
        for name, text in TEXTS.items():
            for clients in CLIENTS:
                await table(engine, ways, name, text, clients, rounds)
        for format in ("pcm", "mp3"):
            taken = sorted(await live_while_busy(client, 16, format))
            worst, median = taken[-1], taken[len(taken) // 2]
            print(f"/live while 16 {format} streams run: median {1000 * median:.1f} ms, worst {1000 * worst:.1f} ms")


async def table(
    engine: HibariEngine,
    ways: dict[str, Callable[[str, int], Awaitable[list[Timing]]]],
    name: str,
    text: str,
    clients: int,
    rounds: int,
) -> None:
    """One text and one number of clients, the ways taken in turn."""
    seen: dict[str, list[list[Timing]]] = {"in process": [], **{way: [] for way in ways}}
    for _ in range(rounds):
        seen["in process"].append(in_process(engine, text, clients))
        for way, run in ways.items():
            seen[way].append(await run(text, clients))
    own = summary(seen["in process"])[0]
    for way, timings in seen.items():
        first, slowest, total = summary(timings)
        over = "" if way == "in process" else f"{first - own:9.1f} ms"
        print(f"{name:7} {clients:7} {way:11} {first:9.1f} {slowest:9.1f} {total:9.1f} {over:>12}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    argv = [sys.executable, "-m", "stentor", "serve", "--port", "0", "--log-level", "warning"]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        base = address(server)
        wait_until_ready(base, server)
        asyncio.run(measure(base, arguments.rounds))
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
