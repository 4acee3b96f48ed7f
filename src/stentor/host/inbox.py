"""What a sidecar said to one request and its client has not taken yet.

The host always drains a sidecar, so that a slow listener never holds a slot of the device; what it has not heard waits
here. A voice that is a hundred times faster than real time would fill the memory, so beyond a few seconds the samples
wait in an unnamed file. Knows messages, no process.
"""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections import deque
from pathlib import Path
from typing import IO

from ..errors import StentorError
from ..protocol import Audio, FromSidecar

IN_MEMORY = 4 * 2**20  # bytes of samples: 43 s at 24 kHz


class Inbox:
    """A queue of messages with one reader. Close it: it may own a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._messages: deque[FromSidecar | StentorError] = deque()
        self._arrived = asyncio.Event()
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._spilled: deque[int] = deque()  # bytes of each audio message in the file, in order
        self._read_at = 0

    def put(self, message: FromSidecar | StentorError) -> None:
        if isinstance(message, Audio):
            message = self._keep(message)
        self._messages.append(message)
        self._arrived.set()

    async def get(self) -> FromSidecar | StentorError:
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        return self._restored(message) if isinstance(message, Audio) else message

    def close(self) -> None:
        self._messages.clear()
        if self._file is not None:
            self._file.close()

    def _keep(self, message: Audio) -> Audio:
        """The message itself, or one without samples whose samples went to the file. Order is kept: see `_restored`."""
        if not self._spilled and self._in_memory + len(message.pcm) <= IN_MEMORY:
            self._in_memory += len(message.pcm)
            return message
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 closed in `close`
        self._file.seek(0, 2)
        self._file.write(message.pcm)
        self._spilled.append(len(message.pcm))
        return dataclasses.replace(message, pcm=b"")

    def _restored(self, message: Audio) -> Audio:
        if message.pcm:
            self._in_memory -= len(message.pcm)
            return message
        if not self._spilled or self._file is None:
            return message  # a sidecar may send no samples
        size = self._spilled.popleft()
        self._file.seek(self._read_at)
        pcm = self._file.read(size)
        self._read_at += size
        if not self._spilled:  # all of it has been taken: give the disk back
            self._file.truncate(0)
            self._read_at = 0
        return dataclasses.replace(message, pcm=pcm)
