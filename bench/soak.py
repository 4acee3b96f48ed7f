"""Mixed load with random disconnects for some minutes; then nothing may be left: no slot, file, thread or memory.

    .venv/bin/python -m bench.soak --minutes 30 [--seed 1] [--clients 8]

Every minute it prints memory, threads and open files of host and sidecars; at the end it compares a quiet server
with the quiet server of the first minute and exits 1 where something grew. Each answer is checked: a whole one has the
bytes of the same request made alone.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx
import psutil
from bench.demo import address, wait_until_ready

TEXTS = (
    "Good morning, everyone.",
    "The quick brown fox jumps over the lazy dog. Then it lies down in the grass and sleeps until noon.",
    "On March 3, 2024, Dr. Smith paid $42.50 for three tickets at 7:30 pm. " * 6,
)
FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
BAD = ({"input": ""}, {"input": "你好"}, {"input": "x", "model": "nobody"}, {"input": "x", "speed": 99}, {"input": 7})
GROWTH = 1.10  # of the quiet server's memory between the first and the last minute
SPARE = 24 * 2**20  # allocators keep some; a leak of 24 MB in half an hour would still show as a trend in the table


@dataclass
class Load:
    """What the clients share: the expected answers, and what was counted."""

    client: httpx.AsyncClient
    expected: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    recording: bytes = b""

    async def learn(self) -> None:
        """Each request once, alone: what it answers then is what it must answer in company."""
        for text in TEXTS:
            for format in FORMATS:
                answer = await self.client.post("/v1/audio/speech", json=_body(text, format))
                self.expected[text, format] = _digest(answer.content)
        self.recording = (await self.client.post("/v1/audio/speech", json=_body(TEXTS[0], "mp3"))).content

    async def run(self, choose: random.Random, until: float) -> None:
        actions = (self.speak, self.speak, self.leave, self.leave, self.listen, self.listen_and_leave, self.fail)
        while time.monotonic() < until:
            await choose.choice(actions)(choose)

    async def speak(self, choose: random.Random) -> None:
        text, format = choose.choice(TEXTS), choose.choice(FORMATS)
        answer = await self.client.post("/v1/audio/speech", json=_body(text, format))
        self.counts[f"speech {answer.status_code}"] += 1
        if answer.status_code == 200 and _digest(answer.content) != self.expected[text, format]:
            self.wrong.append(f"{format} of {text[:20]!r} differs from the same request alone")

    async def leave(self, choose: random.Random) -> None:
        """Take some bytes, then hang up."""
        enough = choose.choice((0, 1, 5_000, 50_000))
        body = _body(choose.choice(TEXTS), choose.choice(FORMATS))
        async with self.client.stream("POST", "/v1/audio/speech", json=body) as answer:
            taken = 0
            async for chunk in answer.aiter_raw():
                taken += len(chunk)
                if taken > enough:
                    break
        self.counts["left"] += 1

    async def listen(self, choose: random.Random) -> None:
        fields = {"response_format": choose.choice(("json", "text", "srt", "verbose_json"))}
        answer = await self.client.post("/v1/audio/transcriptions", files={"file": self.recording}, data=fields)
        self.counts[f"transcription {answer.status_code}"] += 1
        if "good morning" not in answer.text.lower():
            self.wrong.append(f"heard {answer.text[:80]!r}")

    async def listen_and_leave(self, choose: random.Random) -> None:
        try:
            limits = httpx.Timeout(choose.uniform(0.01, 0.3))
            await self.client.post("/v1/audio/transcriptions", files={"file": self.recording * 4}, timeout=limits)
        except httpx.TimeoutException:
            self.counts["left while it listened"] += 1

    async def fail(self, choose: random.Random) -> None:
        answer = await self.client.post("/v1/audio/speech", json=choose.choice(BAD))
        self.counts[f"bad request {answer.status_code}"] += 1
        if answer.status_code >= 500:
            self.wrong.append(answer.text[:120])


def _body(text: str, format: str) -> dict[str, object]:
    return {"input": text, "response_format": format, "seed": 1}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Holding:
    """What the server holds: host first, then its sidecars."""

    memory: list[int]
    threads: int
    files: int

    @classmethod
    def of(cls, pid: int) -> Holding:
        host = psutil.Process(pid)
        every = [host, *sorted(host.children(recursive=True), key=lambda one: one.pid)]
        memory = [one.memory_info().rss for one in every]
        return cls(memory, sum(one.num_threads() for one in every), host.num_fds())

    def __str__(self) -> str:
        memory = " + ".join(f"{one / 2**20:.0f}" for one in self.memory)
        return f"memory {memory} MiB, threads {self.threads}, files of the host {self.files}"


async def quiet(load: Load, server: subprocess.Popen[str]) -> Holding:
    """The server after all requests have ended. Raises where a slot is still taken."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        sidecars = (await load.client.get("/health")).json()["sidecars"].values()
        if not any(one["running"] or one["waiting"] for one in sidecars):
            await asyncio.sleep(1)
            return Holding.of(server.pid)
        await asyncio.sleep(0.2)
    raise SystemExit("a slot was never given back")


async def soak(base: str, server: subprocess.Popen[str], minutes: float, clients: int, seed: int) -> int:
    limits = httpx.Limits(max_connections=clients * 4, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=base, timeout=120, limits=limits, trust_env=False) as client:
        load = Load(client)
        await load.learn()
        began = time.monotonic()
        first: Holding | None = None
        while time.monotonic() - began < 60 * minutes:
            until = min(time.monotonic() + 60, began + 60 * minutes)
            choosers = [random.Random(f"{seed} {number} {until}") for number in range(clients)]
            await asyncio.gather(*(load.run(choose, until) for choose in choosers))
            last = await quiet(load, server)
            first = first or last
            print(f"{(time.monotonic() - began) / 60:5.1f} min  {last}  {dict(load.counts)}", flush=True)
    return verdict(first or last, last, load)


def verdict(first: Holding, last: Holding, load: Load) -> int:
    grew = [
        f"process {number} grew from {before >> 20} to {after >> 20} MiB"
        for number, (before, after) in enumerate(zip(first.memory, last.memory, strict=True))
        if after > before * GROWTH + SPARE
    ]
    grew += [f"threads {first.threads} -> {last.threads}"] if last.threads > first.threads + 2 else []
    grew += [f"files {first.files} -> {last.files}"] if last.files > first.files + 4 else []
    for line in [*grew, *load.wrong[:10]]:
        print("FAULT", line)
    print("nothing is left behind" if not grew and not load.wrong else "see the faults above")
    return 1 if grew or load.wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    argv = [sys.executable, "-m", "stentor", "serve", "--port", "0", "--log-level", "error"]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        base = address(server)
        wait_until_ready(base, server)
        return asyncio.run(soak(base, server, arguments.minutes, arguments.clients, arguments.seed))
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    sys.exit(main())
