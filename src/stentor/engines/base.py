"""What an engine is: the one interface that every driver drives, and the rotation for engines without a decode batch.

An engine owns one model on one device. It is single-threaded: only the driver's loop calls it. It answers in protocol
messages and must not know pipes, processes or HTTP.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..audio import pcm
from ..errors import EngineFailed, LoadFailed, StentorError, UnknownVoice, UnsupportedLanguage, UnsupportedOption
from ..protocol import (
    Append,
    Audio,
    AudioIn,
    Device,
    Done,
    End,
    Ending,
    Error,
    FromSidecar,
    Hello,
    Synthesize,
    Transcribe,
)
from ..text import languages

Request = Synthesize | Transcribe
Feed = Append | End | AudioIn
MESSAGE_S = 0.25  # a message of a whole sentence (300 KB) would hold its first sound back until all of it is through
Progress = Callable[[str, float], None]
"""`progress(stage, fraction)` while loading; each call resets the host's load deadline."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What the host decided about this sidecar; an engine reads what it knows and refuses what it does not."""

    model: str
    path: str | None = None
    device: str = "cpu"
    slots: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """`submit` takes a request into a slot; `advance` does one bounded unit of work and returns what came out."""

    hello: Hello

    @property
    def phase(self) -> str:
        """What `advance` will do next: a row of the deadline table (host/watchdog.py)."""

    def submit(self, request: Request) -> None:
        """Take a request. Raises InvalidRequest where it can never be served."""

    def feed(self, message: Feed) -> None:
        """More text or audio for an open request. Raises UnsupportedOption where the engine has no such thing."""

    def advance(self) -> list[FromSidecar]:
        """One unit of work for the requests that are in; short enough that a cancel is obeyed after it."""

    def cancel(self, request_id: str) -> None:
        """Forget a request and free its slot; an unknown id is nothing."""

    def close(self) -> None:
        """Give back what the engine holds."""


class Rotation:
    """An engine whose requests are independent generators, advanced in turn, one unit a call.

    Fair by construction: with n requests open, each waits for at most n - 1 units of the others.
    """

    hello: Hello
    phase = "frame"

    def __init__(self) -> None:
        self._turns: deque[tuple[str, Iterator[list[FromSidecar]]]] = deque()

    def work(self, request: Any) -> Iterator[list[FromSidecar]]:
        """The life of one request: yields what each unit produced; ends after its last unit."""
        raise UnsupportedOption(f"{self.hello.engine} does not take a {request.type} request", param="model")

    def submit(self, request: Request) -> None:
        self._turns.append((request.id, self.work(request)))

    def feed(self, message: Feed) -> None:
        raise UnsupportedOption(f"{self.hello.engine} does not take {message.type} messages")

    def advance(self) -> list[FromSidecar]:
        if not self._turns:
            return []
        request_id, units = self._turns.popleft()
        try:
            messages = next(units)
        except StopIteration:
            return [report(EngineFailed("The engine stopped before the end of this request."), request_id)]
        except StentorError as error:
            return [report(error, request_id)]
        except MemoryError:  # of the whole process, not of this request
            raise
        except Exception as error:  # noqa: BLE001 the sidecar's edge: one text must not take its neighbours down
            return [report(unexpected(error), request_id)]
        if not any(isinstance(one, Ending) for one in messages):
            self._turns.append((request_id, units))
        return messages

    def cancel(self, request_id: str) -> None:
        self._turns = deque(turn for turn in self._turns if turn[0] != request_id)

    def close(self) -> None:
        self._turns.clear()


def require_offered(request: Request, hello: Hello) -> None:
    """Raises InvalidRequest that names the field, where a request asks for what the engine did not say it has."""
    language = languages.code(request.language)
    if language and hello.languages and language not in hello.languages:
        have = ", ".join(hello.languages[:12]) + (" and more" if len(hello.languages) > 12 else "")
        raise UnsupportedLanguage(
            f"The model {hello.model} does not have the language {language!r}; it has: {have}. "
            "Leave language out or choose another model (GET /v1/models).",
            param="language",
        )
    if isinstance(request, Synthesize):
        _require_voice(request, hello)
    for param, capability, asked in _asked_capabilities(request):
        if asked and capability not in hello.capabilities:
            raise UnsupportedOption(f"The model {hello.model} cannot do {param}; leave it out.", param=param)


def _require_voice(request: Synthesize, hello: Hello) -> None:
    voices = [one.id for one in hello.voices]
    if request.voice is not None and request.voice not in voices:
        raise UnknownVoice(
            f"The model {hello.model} has no voice {request.voice!r}; it has: {', '.join(voices)}.", param="voice"
        )


def _asked_capabilities(request: Request) -> list[tuple[str, str, bool]]:
    """(field, capability it needs, whether it was asked for)."""
    if isinstance(request, Synthesize):
        return [
            ("instructions", "instructions", bool(request.instructions)),
            ("ref_audio", "clone", bool(request.references)),
            ("speed", "speed", request.speed != 1.0),
        ]
    return [
        ("prompt", "context", bool(request.context)),
        ("timestamp_granularities", "word_timestamps", request.timestamps == "word"),
        ("timestamp_granularities", "segment_timestamps", request.timestamps == "segment"),
    ]


def audio_messages(request_id: str, first: int, samples: pcm.Samples, sample_rate: int) -> list[FromSidecar]:
    """Samples as messages of at most MESSAGE_S each, the first of them at sample `first` of the utterance."""
    size = int(MESSAGE_S * sample_rate)
    return [
        Audio(id=request_id, first_sample=first + at, pcm=pcm.to_f32(samples[at : at + size]))
        for at in range(0, len(samples), size)
    ]


class Stopwatch:
    """Seconds by stage of one request, as `done.stats` reports them."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.stats: dict[str, float] = {}

    def mark(self, name: str) -> None:
        """Record the seconds since the start under `name`, once."""
        self.stats.setdefault(name, time.perf_counter() - self._started)

    def add(self, name: str, value: float) -> None:
        self.stats[name] = self.stats.get(name, 0.0) + value

    def done(self, request_id: str) -> Done:
        self.mark("total_s")
        return Done(id=request_id, stats=self.stats)


def numerics(**facts: Any) -> str:
    """A hash over everything that changes bits. Equal: an utterance can go on elsewhere byte for byte (promise 5)."""
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def report(error: StentorError, request_id: str | None = None) -> Error:
    """An error as the message that carries it to the host."""
    return Error(
        id=request_id,
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        param=error.param,
        detail=error.detail,
    )


def unexpected(error: Exception) -> EngineFailed:
    """An exception of a library, as an error a user can act on."""
    return EngineFailed(
        f"The engine failed on this request ({type(error).__name__}: {error}). Other requests go on; "
        "if it happens again with this input, please report it with the input.",
        detail=repr(error),
    )


def require_cpu(launch: Launch) -> None:
    """Raises LoadFailed where an engine that computes on the processor was told to use something else."""
    if launch.device != "cpu":
        raise LoadFailed(f"{launch.model} runs on the cpu only, not on {launch.device}; leave `device` out.")


def cpu() -> Device:
    """The device of every engine that computes on the processor."""
    return Device(name="cpu")
