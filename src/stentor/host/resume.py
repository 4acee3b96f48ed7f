"""One request over as many processes as it takes: what has been delivered is kept, the next process goes on behind it.

Three ways (DESIGN.md 6). An engine that can resume is told where. One that cannot, with equal numerics, says it all
again, and what was delivered is dropped, which is the same bytes. With other numerics the join is faded over the last
10 ms, which had been kept back for it. Knows no HTTP and no encoder.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..audio import pcm
from ..errors import LoadFailed, OutOfMemory, ProtocolError, SidecarDied, SidecarStalled
from ..journal import Journal
from ..protocol import Audio, FromSidecar, Hello, Resume, Started, Synthesize, Transcribe, new_id
from .service import Service

log = logging.getLogger(__name__)

Samples = NDArray[np.float32]

JOIN_S = 0.01  # kept back until more has come: a resumed utterance is joined over it without a click
SUSPECT_FROM = 3
RETRIED = (SidecarDied, SidecarStalled, OutOfMemory, LoadFailed, ProtocolError)


class Work(Protocol):
    """What is to be done, whichever process does it."""

    def request(self, hello: Hello) -> Synthesize | Transcribe:
        """What is left to do, for this process; a retry has an id of its own."""

    def check(self, message: FromSidecar) -> None:
        """Raises ProtocolError where something is missing before this message."""


async def persistently(service: Service, work: Work) -> AsyncGenerator[FromSidecar, None]:
    """Everything that sidecars say to one request, up to `done`; close it early to cancel.

    Raises the error that a sidecar reported, and after `attempts` processes what ended the last of them.
    """
    lost_at: float | None = None
    for attempt in range(1, service.settings.attempts + 1):
        try:
            async with contextlib.aclosing(_attempt(service, work, attempt)) as messages:
                async for message in messages:
                    if lost_at is not None:
                        service.went_on(time.monotonic() - lost_at)
                        lost_at = None
                    yield message
            return
        except RETRIED as failure:
            if attempt == service.settings.attempts or (attempt == 1 and isinstance(failure, LoadFailed)):
                raise
            log.warning("%s A request goes on (attempt %d).", failure.message, attempt + 1)
            lost_at = lost_at or time.monotonic()


async def _attempt(service: Service, work: Work, attempt: int) -> AsyncGenerator[FromSidecar, None]:
    """The exchange with one process.

    Of two requests that died together twice, one may be what kills: from the third attempt on they go one by one.
    """
    async with service.suspects if attempt >= SUSPECT_FROM else contextlib.nullcontext():
        life = await service.life(patient=attempt > 1)
        assert life.hello is not None
        assert life.process is not None  # there is no pause between `life` and here in which it could go
        exchange = life.exchanges.run(life.process, work.request(life.hello))
        async with contextlib.aclosing(exchange) as messages:
            async for message in messages:
                work.check(message)
                yield message


class Speech:
    """The samples of one `synthesize` request, without gap or repetition, whoever sends them."""

    def __init__(self, request: Synthesize, folder: Path) -> None:
        self.sample_rate = 0
        self.resumed = 0
        self.exact = True
        self._request = request
        self._path = folder / f"{request.id}.journal"
        self._journal: Journal | None = None
        self._numerics: str | None = None
        self._expected = 0  # the utterance's next sample
        self._position = 0  # the next sample of the process of now
        self._held = pcm.empty()
        self._fade = pcm.empty()  # the end of what another numerics said, to be faded out

    def request(self, hello: Hello) -> Synthesize:
        """What to ask of this process. Raises SidecarDied where it cannot go on with what another one began."""
        first, self._numerics = self._numerics is None, self._numerics or hello.numerics
        if first:
            return self._first_request(hello)
        self.resumed += 1
        options = {name: value for name, value in self._request.options.items() if name != "fault"}
        again = replace(self._request, id=new_id(), options=options)
        self._position = 0
        if self._expected == 0:
            return again
        if hello.numerics != self._numerics:
            self._join_other_numerics(hello)
        if "resume" not in hello.capabilities:
            return again  # all of it, and `take` drops what there is
        return replace(again, **self._rest())

    def check(self, message: FromSidecar) -> None:
        if isinstance(message, Started):
            self.sample_rate = message.sample_rate or 0
        if isinstance(message, Audio) and (self.sample_rate <= 0 or message.first_sample != self._position):
            raise ProtocolError(
                f"The sidecar sent audio from sample {message.first_sample} where {self._position} was next.",
                detail=message.id,
            )

    def take(self, message: Audio) -> Samples:
        """The samples that may be delivered now. Raises EngineFailed where some are no numbers."""
        samples = pcm.from_f32(message.pcm)
        pcm.require_finite(samples)
        known = min(max(0, self._expected - self._position), len(samples))
        self._position += len(samples)
        fresh = self._faded(samples[known:])
        self._expected += len(fresh)
        self._held = np.concatenate([self._held, fresh])
        ready = max(0, len(self._held) - int(JOIN_S * self.sample_rate))
        out, self._held = self._held[:ready], self._held[ready:]
        return out

    def rest(self) -> Samples:
        """What was kept back, at the end."""
        out, self._held = self._held, pcm.empty()
        return out

    def close(self) -> None:
        """Give the shared memory back."""
        if self._journal:
            self._journal.close()
        self._path.unlink(missing_ok=True)

    def _first_request(self, hello: Hello) -> Synthesize:
        if "resume" not in hello.capabilities:
            return self._request
        try:
            self._journal = Journal.create(self._path)
        except OSError as error:  # it can still be resumed, by saying all of it again
            log.warning("no journal for an utterance: %s; free some shared memory", error)
            return self._request
        return replace(self._request, journal=str(self._path))

    def _join_other_numerics(self, hello: Hello) -> None:
        """From here on another numerics speaks: it begins where the held samples do."""
        if "resume" not in hello.capabilities:
            raise SidecarDied("The process that could go on computes other samples and cannot resume; ask again.")
        self.exact = False
        self._numerics = hello.numerics
        self._expected -= len(self._held)
        self._fade, self._held = self._held, pcm.empty()

    def _rest(self) -> dict[str, Any]:
        """The fields of a request that goes on."""
        self._position = self._expected
        if self._journal is None:
            return {"resume": Resume(samples=self._expected)}
        at = self._journal.boundary(self._expected)
        resume = Resume(frames=at.frames, first_sample=at.sample, samples=self._expected)
        return {"resume": resume, "journal": str(self._path)}

    def _faded(self, samples: Samples) -> Samples:
        count = min(len(self._fade), len(samples))
        if not count:
            return samples
        old, self._fade = self._fade[:count], self._fade[count:]
        weight = np.linspace(0.0, 1.0, count + 2, dtype=np.float32)[1:-1]
        return np.concatenate([old * (1 - weight) + samples[:count] * weight, samples[count:]])
