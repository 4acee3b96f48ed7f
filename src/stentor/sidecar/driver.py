"""The sidecar's own loop: takes requests, advances the engine, hands out what came. The only writer of the status page.

Reader and writer are other threads, so that a cancel is seen in mid-utterance and a full pipe cannot stop the device
work unseen. The driver knows no pipe: it has an inbox and an outbox.
"""

from __future__ import annotations

import logging
import queue
from collections import deque

import psutil

from ..engines.base import Engine, Feed, Request, report, require_offered, unexpected
from ..errors import Busy, InvalidRequest, OutOfMemory, StentorError
from ..journal import StatusPage
from ..protocol import (
    Append,
    AudioIn,
    Cancel,
    Cancelled,
    End,
    Ending,
    FromSidecar,
    Shutdown,
    StatsReport,
    StatsRequest,
    Synthesize,
    ToSidecar,
    Transcribe,
)

log = logging.getLogger(__name__)


class EndOfInput:
    """Nothing more will be asked, by a person at a pipe: finish what is open, then end."""


MOST_WAITING = 256  # the host keeps its own bounded queue; this bounds a sidecar that is driven by hand
Inbox = queue.SimpleQueue[ToSidecar | EndOfInput]
Outbox = queue.Queue[FromSidecar]


class Driver:
    """Runs one engine until `shutdown`. Every accepted request ends in `done`, `cancelled` or `error`.

    Raises OutOfMemory, after which the process must end: only that gives back what a failed allocation left behind.
    """

    def __init__(self, engine: Engine, inbox: Inbox, outbox: Outbox, page: StatusPage) -> None:
        self._engine = engine
        self._inbox = inbox
        self._outbox = outbox
        self._page = page
        self._active: dict[str, Request] = {}
        self._waiting: deque[Request] = deque()
        self._units = 0
        self._closing = False
        self._draining = False

    def run(self) -> None:
        self._record("idle")
        while not self._closing and not (self._draining and not self._active and not self._waiting):
            self._take_messages()
            self._fill_slots()
            if self._active:
                self._advance()
        for one in [*self._active, *(request.id for request in self._waiting)]:
            self._emit(Cancelled(id=one))
        self._engine.close()

    def _take_messages(self) -> None:
        """All that has arrived; where there is nothing to do, wait for a first one."""
        if not self._active and not self._waiting and not self._draining:
            self._record("idle")
            self._obey(self._inbox.get())
        while not self._inbox.empty():
            self._obey(self._inbox.get())

    def _obey(self, message: ToSidecar | EndOfInput) -> None:
        match message:
            case EndOfInput():
                self._draining = True
            case Synthesize() | Transcribe():
                self._admit(message)
            case Cancel():
                self._cancel(message.id)
            case Append() | End() | AudioIn():
                self._feed(message)
            case StatsRequest():
                self._emit(StatsReport(values=self._stats()))
            case Shutdown():
                self._closing = True

    def _admit(self, request: Request) -> None:
        if request.id in self._active or any(one.id == request.id for one in self._waiting):
            error = InvalidRequest(f"the id {request.id!r} is of a request that is still open")
            self._emit(report(error))  # without the id, which would end the other request
        elif len(self._waiting) >= MOST_WAITING:
            self._emit(report(Busy(f"{MOST_WAITING} requests are waiting in this sidecar"), request.id))
        else:
            self._waiting.append(request)

    def _fill_slots(self) -> None:
        while self._waiting and len(self._active) < self._engine.hello.slots:
            request = self._waiting.popleft()
            self._active[request.id] = request
            try:
                require_offered(request, self._engine.hello)
                self._engine.submit(request)
            except StentorError as error:
                self._emit(report(error, request.id))
            except Exception as error:
                log.exception("submit failed")
                self._emit(report(unexpected(error), request.id))

    def _advance(self) -> None:
        self._record(self._engine.phase)
        try:
            messages = self._engine.advance()
        except MemoryError as error:
            raise OutOfMemory(
                f"{self._engine.hello.model} ran out of memory; its process ends. Use fewer slots or a smaller model."
            ) from error
        except Exception as error:
            log.exception("advance failed")
            messages = [report(unexpected(error), one) for one in self._active]
            for one in self._active:
                self._engine.cancel(one)
        self._units += 1
        for message in messages:
            self._emit(message)

    def _cancel(self, request_id: str) -> None:
        waiting = [one for one in self._waiting if one.id != request_id]
        known = request_id in self._active or len(waiting) < len(self._waiting)
        self._waiting = deque(waiting)
        if request_id in self._active:
            self._engine.cancel(request_id)
        if known:  # an unknown id has just ended by itself: nothing to say
            self._emit(Cancelled(id=request_id))

    def _feed(self, message: Feed) -> None:
        try:
            self._engine.feed(message)
        except StentorError as error:
            self._engine.cancel(message.id)
            self._emit(report(error, message.id))

    def _emit(self, message: FromSidecar) -> None:
        if isinstance(message, Ending) and message.id is not None:
            self._active.pop(message.id, None)
        try:
            self._outbox.put_nowait(message)
        except queue.Full:
            self._record("blocked-pipe")  # the host does not read: not a stall of the device
            self._outbox.put(message)

    def _record(self, phase: str) -> None:
        self._page.write(phase, self._units, tuple(self._active))

    def _stats(self) -> dict[str, float]:
        return {
            "active": len(self._active),
            "waiting": len(self._waiting),
            "units": self._units,
            "rss_bytes": psutil.Process().memory_info().rss,
        }
