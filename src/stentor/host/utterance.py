"""One piece of text being spoken, and one recording being heard, as the host sees them.

Turns a sidecar's messages into samples or text, checks that nothing is missing between them, and knows when the first
audible sound is there. Knows no encoder and no HTTP.
"""

from __future__ import annotations

import contextlib
import secrets
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..audio import pcm
from ..errors import EngineFailed, ProtocolError
from ..protocol import Audio, Done, Hello, Segment, Started, Synthesize, Text, Transcribe, Word
from ..text.split import Pause
from .sidecar import Sidecar

Samples = NDArray[np.float32]

JOIN_S = 0.01  # kept back until more has come: a resumed utterance is joined over it without a click
AUDIBLE = 10 ** (-55 / 20)  # a block whose peak is under this is silence to a listener


def new_id() -> str:
    return uuid.uuid4().hex


def draw_seed() -> int:
    """A seed for a request that brought none: drawn by the host, so that a retry says the same."""
    return secrets.randbelow(2**31)


Part = Synthesize | Pause


class Utterance:
    """Speaks its parts, one after another in one slot. `sample_rate` is known once `start` has returned.

    `build` makes the parts once a slot is free and the sidecar has said what it has; what it raises, `start` raises.
    """

    def __init__(self, sidecar: Sidecar, build: Callable[[Hello], list[Part]]) -> None:
        self.sample_rate = 0
        self.stats: dict[str, float] = {}
        self._sidecar = sidecar
        self._build = build
        self._blocks = self._speak()
        self._silence: list[Samples] = []

    async def start(self) -> None:
        """Wait for the first audible block, before which no response may be opened.

        Raises what the sidecar reported, or EngineFailed where the whole utterance was silence.
        """
        async for block in self._blocks:
            self._silence.append(block)
            if np.max(np.abs(block), initial=0.0) > AUDIBLE:
                return
        raise EngineFailed("The engine produced only silence for this text.")

    async def blocks(self) -> AsyncGenerator[Samples, None]:
        """The samples from the beginning, as they are made; call `start` first."""
        while self._silence:
            yield self._silence.pop(0)
        async for block in self._blocks:
            yield block

    async def close(self) -> None:
        """Stop the work wherever it is; the slot is free within one unit of it."""
        await self._blocks.aclose()

    async def _speak(self) -> AsyncGenerator[Samples, None]:
        owed = 0.0  # seconds of pause that wait for the sample rate of the part behind them
        async with self._sidecar.place() as hello:
            for part in self._build(hello):
                if isinstance(part, Pause):
                    owed += part.seconds
                    continue
                async with contextlib.aclosing(self._speak_part(part)) as blocks:
                    async for block in blocks:
                        if owed:
                            yield np.zeros(int(owed * self.sample_rate), np.float32)
                            owed = 0.0
                        yield block
        if owed and self.sample_rate:
            yield np.zeros(int(owed * self.sample_rate), np.float32)

    async def _speak_part(self, request: Synthesize) -> AsyncGenerator[Samples, None]:
        held = np.zeros(0, np.float32)
        expected = 0
        async with contextlib.aclosing(self._sidecar.exchange(request)) as messages:
            async for message in messages:
                match message:
                    case Started():
                        self.sample_rate = message.sample_rate or 0
                    case Audio():
                        samples = self._samples(message, expected)
                        expected += len(samples)
                        held = np.concatenate([held, samples])
                        ready = max(0, len(held) - int(JOIN_S * self.sample_rate))
                        if ready:
                            yield held[:ready]
                            held = held[ready:]
                    case Done():
                        self._finish(message)
        if len(held):
            yield held

    def _samples(self, message: Audio, expected: int) -> Samples:
        if self.sample_rate <= 0 or message.first_sample != expected:
            raise ProtocolError(
                f"the sidecar sent audio from sample {message.first_sample} where {expected} was next",
                detail=message.id,
            )
        samples = pcm.from_f32(message.pcm)
        pcm.require_finite(samples)
        return samples

    def _finish(self, done: Done) -> None:
        require_an_end(done)
        self.stats = {name: self.stats.get(name, 0.0) + value for name, value in done.stats.items()}


def require_an_end(done: Done) -> None:
    """Raises EngineFailed where a guard had to stop the engine: what came is not the whole, or not only it."""
    if done.finish_reason in ("length", "loop"):
        raise EngineFailed(
            f"The engine did not find the end of this request ({done.finish_reason}); it was stopped. "
            "A shorter piece, or another seed, usually helps."
        )


@dataclass(slots=True)
class Transcript:
    """What was heard in one recording."""

    text: str = ""
    language: str | None = None
    segments: list[Segment] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    stats: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long the recording was."""
        return self.stats.get("audio_s", 0.0)

    def add(self, piece: Text) -> None:
        self.text += piece.delta
        self.language = self.language or piece.language
        self.segments += piece.segments or []
        self.words += piece.words or []


class Hearing:
    """Transcribes one file on one sidecar."""

    def __init__(self, sidecar: Sidecar, build: Callable[[Hello], Transcribe]) -> None:
        self.transcript = Transcript()
        self._sidecar = sidecar
        self._build = build

    async def deltas(self) -> AsyncGenerator[str, None]:
        """Pieces of text as they are understood; `transcript` grows with them and is whole at the end."""
        async with (
            self._sidecar.place() as hello,
            contextlib.aclosing(self._sidecar.exchange(self._build(hello))) as messages,
        ):
            async for message in messages:
                match message:
                    case Text():
                        self.transcript.add(message)
                        yield message.delta
                    case Done():
                        require_an_end(message)
                        self.transcript.stats = message.stats

    async def whole(self) -> Transcript:
        """The transcript, complete."""
        async with contextlib.aclosing(self.deltas()) as deltas:
            async for _ in deltas:
                continue
        return self.transcript
