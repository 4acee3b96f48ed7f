"""The requests a sidecar has been sent: who waits for what it says to each, and which it has not ended yet.

Routes messages by request id. Belongs to one process and knows nothing of its life (life.py).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from ..errors import StentorError, from_code
from ..protocol import Audio, Cancel, Done, Ending, Error, FromSidecar, Synthesize, Text, Transcribe
from .inbox import Inbox
from .process import SidecarProcess


class Exchanges:
    """Open exchanges by request id. `proved`: the process has sent audio, text or `done`, so it works."""

    def __init__(self, spool: Path) -> None:
        self.proved = False
        self._spool = spool
        self._waiting: dict[str, Inbox] = {}
        self._owed: dict[str, str] = {}  # id and text, not ended by the process, whether or not a client still waits

    @property
    def open(self) -> int:
        """Requests whose client waits for messages."""
        return len(self._waiting)

    @property
    def owed(self) -> int:
        """Requests that the process still has to end: its progress is judged by these, not by who waits."""
        return len(self._owed)

    @property
    def texts(self) -> list[str]:
        """What users asked to be said or gave as context: none of it may reach a report."""
        return [text for text in self._owed.values() if text]

    async def run(self, process: SidecarProcess, request: Synthesize | Transcribe) -> AsyncGenerator[FromSidecar, None]:
        """Everything a process says to one request, up to `done`; close it early to cancel.

        Raises the error the sidecar reported, or what `fail` was told.
        """
        inbox = self._waiting[request.id] = Inbox(self._spool)
        self._owed[request.id] = request.text if isinstance(request, Synthesize) else request.context or ""
        ended = False
        try:
            process.send(request)
            while not ended:
                message = await inbox.get()
                ended = isinstance(message, StentorError | Ending)
                if isinstance(message, StentorError):
                    raise message
                if isinstance(message, Error):
                    raise from_code(message.code, message.message, param=message.param, detail=message.detail)
                yield message
        finally:
            del self._waiting[request.id]
            inbox.close()
            if not ended:
                process.send(Cancel(id=request.id))

    def deliver(self, message: FromSidecar) -> None:
        """Hand a message to whoever waits for it; the late word of a cancelled request has nobody."""
        request_id = getattr(message, "id", "")
        self.proved = self.proved or isinstance(message, Audio | Text | Done)
        if isinstance(message, Ending):
            self._owed.pop(request_id, None)
        inbox = self._waiting.get(request_id)
        if inbox is not None:
            inbox.put(message)

    def fail(self, error: StentorError) -> None:
        """The process is gone: everyone who waits gets this error."""
        self._owed.clear()
        for inbox in self._waiting.values():
            inbox.put(error)
