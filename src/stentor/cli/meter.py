"""How many seconds of audio an encoded stream holds, while it is being received.

Samples are counted; a codec's packets are read by FFmpeg's demuxer, which knows their length without decoding them.
Knows no server: what it is fed is what our own encoder wrote (audio/write.py).
"""

from __future__ import annotations

import queue
import threading
from typing import Protocol

WAV_HEADER = 44
BYTES_A_SECOND = 24_000 * 2  # wav and pcm: 16-bit mono at OpenAI's rate (audio/write.py)
DEMUXERS = {"mp3": "mp3", "opus": "ogg", "aac": "aac", "flac": "flac"}


class Meter(Protocol):
    @property
    def seconds(self) -> float: ...
    def feed(self, data: bytes) -> None: ...
    def finish(self) -> None:
        """No more data comes. `seconds` is complete afterwards. Must be called, whatever happened."""


def meter(format: str) -> Meter:
    return Packets(DEMUXERS[format]) if format in DEMUXERS else Samples(WAV_HEADER if format == "wav" else 0)


class Samples:
    def __init__(self, header: int) -> None:
        self._bytes = -header

    @property
    def seconds(self) -> float:
        return max(0, self._bytes) / BYTES_A_SECOND

    def feed(self, data: bytes) -> None:
        self._bytes += len(data)

    def finish(self) -> None:
        return


class Packets:
    """The demuxer pulls and the stream pushes, so that a thread of its own stands between them."""

    def __init__(self, demuxer: str) -> None:
        self.seconds = 0.0
        self._demuxer = demuxer
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._rest = b""
        self._thread = threading.Thread(target=self._follow, name="meter", daemon=True)
        self._thread.start()

    def feed(self, data: bytes) -> None:
        if data:
            self._pieces.put(data)

    def finish(self) -> None:
        self._pieces.put(b"")
        self._thread.join()

    def read(self, size: int) -> bytes:
        """What the demuxer calls. An empty answer is the end, and stays it."""
        if not self._rest:
            self._rest = self._pieces.get()
            if not self._rest:
                self._pieces.put(b"")
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _follow(self) -> None:
        import av

        try:
            with av.open(self, "r", format=self._demuxer) as container:
                for packet in container.demux(audio=0):
                    if packet.pts is not None and packet.time_base is not None:
                        self.seconds = float((packet.pts + (packet.duration or 0)) * packet.time_base)
        except av.FFmpegError:  # a stream that was broken off before its first packet: nothing was heard
            return
