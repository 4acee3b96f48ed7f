"""One piece of text being spoken, and one recording being heard, as the host sees them.

Turns a sidecar's messages into samples or text, checks that nothing is missing between them, and knows when the first
audible sound is there. Knows no encoder and no HTTP.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import EngineFailed
from ..protocol import Audio, Done, FromSidecar, Hello, Segment, Started, Synthesize, Text, Transcribe, Word, new_id
from ..text.split import Pause
from .resume import Speech, persistently
from .service import Service

Samples = NDArray[np.float32]

AUDIBLE = 10 ** (-55 / 20)  # a block whose peak is under this is silence to a listener


def draw_seed() -> int:
    """A seed for a request that brought none: drawn by the host, so that a retry says the same."""
    return secrets.randbelow(2**31)


Part = Synthesize | Pause


class Utterance:
    """Speaks its parts, one after another in one slot. `sample_rate` is known once `start` has returned.

    `build` makes the parts once a slot is free and the sidecar has said what it has; what it raises, `start` raises.
    """

    def __init__(self, service: Service, build: Callable[[Hello], list[Part]]) -> None:
        self.sample_rate = 0
        self.resumed = 0  # times that another process went on with it
        self.exact = True  # each time with equal numerics: these are the bytes of an undisturbed run
        self.stats: dict[str, float] = {}
        self._service = service
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
        async with self._service.place() as hello:
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
        speech = Speech(request, self._service.folder.shared)
        try:
            async with contextlib.aclosing(persistently(self._service, speech)) as messages:
                async for message in messages:
                    match message:
                        case Started():
                            self.sample_rate = speech.sample_rate
                        case Audio():
                            if len(block := speech.take(message)):
                                yield block
                        case Done():
                            self._finish(message)
            if len(rest := speech.rest()):
                yield rest
        finally:
            self.resumed += speech.resumed
            self.exact = self.exact and speech.exact
            speech.close()

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

    def __init__(self, service: Service, build: Callable[[Hello], Transcribe]) -> None:
        self.transcript = Transcript()
        self._service = service
        self._build = build
        self._request: Transcribe | None = None
        self._committed = 0

    async def deltas(self) -> AsyncGenerator[str, None]:
        """Pieces of text as they are understood; `transcript` grows with them and is whole at the end."""
        async with (
            self._service.place(),
            contextlib.aclosing(persistently(self._service, self)) as messages,
        ):
            async for message in messages:
                match message:
                    case Text():
                        self._committed = message.committed_samples
                        self.transcript.add(message)
                        yield message.delta
                    case Done():
                        require_an_end(message)
                        self.transcript.stats = message.stats

    def request(self, hello: Hello) -> Transcribe:
        """The whole recording, or what of it no process has understood yet, in the language it was found to be in."""
        if self._request is None:
            self._request = self._build(hello)
            return self._request
        options = {name: value for name, value in self._request.options.items() if name != "fault"}
        language = self._request.language or self.transcript.language
        return replace(
            self._request, id=new_id(), options=options, language=language, committed_samples=self._committed
        )

    def check(self, message: FromSidecar) -> None:
        """Nothing: each `text` says how far it goes, and a lost one would be seen in no number."""

    async def whole(self) -> Transcript:
        """The transcript, complete."""
        async with contextlib.aclosing(self.deltas()) as deltas:
            async for _ in deltas:
                continue
        return self.transcript
