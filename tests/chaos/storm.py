"""A storm: clients that speak at a server of their own while its sidecars are killed, stopped, hung and garbled.

Most faults are real ones of the process itself, placed between the first and the last sentence of an utterance; the
rest are signals from outside at random moments, which hit whatever runs then.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import psutil

from stentor.cli.own_server import OwnServer, own_server
from stentor.settings import Settings

SENTENCES = (
    "The morning was cold and clear.",
    "Nobody had seen the two boats leave.",
    "She counted the stairs while she went down.",
    "A letter lay on the table, and it was not for her.",
    "Later they would say that the bells had rung twice.",
    "The baker closed his shop before noon.",
    "It rained for three days, and then it stopped.",
    "Who would have thought of such a thing?",
)
TEXTS = 6
FORMATS = ("pcm", "mp3")
INSIDE = ("kill", "stop", "hang", "spin", "half-line", "crash", "exit")
OUTSIDE_SHARE = 0.1  # signals from outside, at any moment
GROWTH = 32 * 2**20  # bytes: allocators keep some


@dataclass
class Report:
    """What came of it. `between`: faults that were due between the first and the last sentence."""

    seed: int
    wanted: int
    same: int = 0
    between: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    incidents: int = 0
    grown: int = 0

    @property
    def ok(self) -> bool:
        return not self.wrong and self.same == self.wanted

    def __str__(self) -> str:
        pauses = sorted(self.pauses) or [0.0]
        lines = [
            f"seed {self.seed}: {self.same} of {self.wanted} utterances whole and identical, {self.incidents} restarts",
            f"faults between first and last block: {self.between / max(1, self.wanted):.0%}  {dict(self.faults)}",
            f"longest silence of an utterance: median {statistics.median(pauses):.2f} s, worst {pauses[-1]:.2f} s",
            f"memory of the host: {self.grown / 2**20:+.1f} MiB",
            *self.wrong,
        ]
        return "\n".join(lines)


class Storm:
    """One run against one server."""

    def __init__(self, server: OwnServer, report: Report) -> None:
        self._server = server
        self._report = report
        self._lock = threading.Lock()
        draw = random.Random(report.seed)
        self._texts = [" ".join(draw.choices(SENTENCES, k=draw.randint(8, 16))) for _ in range(TEXTS)]
        self._expected: dict[tuple[str, str], str] = {}

    def learn(self) -> None:
        """Each text undisturbed: what it is then is what it must be."""
        for text in self._texts:
            for kind in FORMATS:
                self._expected[text, kind] = self._speak(text, kind, None)[0]

    def utterance(self, number: int) -> None:
        draw = random.Random(self._report.seed * 1_000_003 + number)
        text, kind = draw.choice(self._texts), draw.choice(FORMATS)
        sentences = text.count(".") + text.count("?")
        fault = f"{draw.choice(INSIDE)}@{draw.randint(1, sentences - 2)}"
        outside = draw.random() < OUTSIDE_SHARE
        if outside:
            fault = draw.choice(("SIGKILL", "SIGSTOP"))
            threading.Timer(draw.uniform(0, 0.6), self._signal, (fault,)).start()
        try:
            seen, pause = self._speak(text, kind, None if outside else fault)
            problem = "" if seen == self._expected[text, kind] else "other bytes"
        except httpx.HTTPError as error:
            problem, pause = f"{type(error).__name__}: {error}", 0.0
        self._note(number, fault, outside, problem, pause)

    def _note(self, number: int, fault: str, outside: bool, problem: str, pause: float) -> None:
        with self._lock:
            self._report.faults[fault.partition("@")[0]] += 1
            self._report.between += not outside
            self._report.pauses.append(pause)
            if problem:
                self._report.wrong.append(f"utterance {number} ({fault}): {problem}")
            else:
                self._report.same += 1

    def _speak(self, text: str, kind: str, fault: str | None) -> tuple[str, float]:
        """The digest of the answer, and the longest time in which nothing of it came."""
        body = {"input": text, "response_format": kind, "seed": 3, **({"fault": fault} if fault else {})}
        digest, longest, last = hashlib.sha256(), 0.0, time.monotonic()
        url = f"{self._server.base}/v1/audio/speech"
        with httpx.stream("POST", url, json=body, timeout=120, trust_env=False) as answer:
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                digest.update(piece)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
        return digest.hexdigest(), longest

    def _signal(self, name: str) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            self._server.children()[0].send_signal(getattr(signal, name))


def storm(count: int, seed: int, clients: int, show: Callable[[str], None]) -> Report:
    """`count` utterances from `clients` at a time. The server is one of its own and gone afterwards."""
    report = Report(seed, count)
    with tempfile.TemporaryDirectory(prefix="chaos-") as data, own_server(Settings(), **_settings(data)) as server:
        one = Storm(server, report)
        one.learn()
        memory = server.memory()
        with ThreadPoolExecutor(clients) as pool:
            for number, _ in enumerate(pool.map(one.utterance, range(count)), 1):
                if number % 50 == 0:
                    show(f"{number} utterances, {len(report.wrong)} wrong")
        _look_around(server, report, memory)
        children = server.children()
    report.wrong += [f"an orphan: {child}" for child in children if child.is_running() and child.status() != "zombie"]
    return report


def _settings(data: str) -> dict[str, object]:
    return {
        "drills": True,
        "data_dir": data,
        "frame_timeout": 1.0,
        "attempts": 12,  # with several clients, each suffers the faults of its neighbours
        "log_level": "error",
        "transcription_model": "whisper-tiny.en",
    }


def _look_around(server: OwnServer, report: Report, memory: int) -> None:
    """Afterwards: healthy, no slot held, one process a model, no more memory than before."""
    server.wait_until_healthy(120)
    facts = server.get("/health").json()["sidecars"]["hibari"]
    report.incidents = facts["restarts"]
    report.grown = server.memory() - memory
    if facts["running"] or facts["waiting"]:
        report.wrong.append(f"a slot is held: {facts['running']} running, {facts['waiting']} waiting")
    if len(server.children()) > 2:
        report.wrong.append(f"{len(server.children())} processes for two models")
    if report.grown > GROWTH:
        report.wrong.append(f"the host has grown by {report.grown / 2**20:.0f} MiB")
