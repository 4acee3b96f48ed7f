"""Makes the recordings the audio tests read: every container, sound and broken, at test time."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import av
import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]


def tone(seconds: float, sample_rate: int, *, hertz: float = 440.0, level: float = 0.5) -> Samples:
    times = np.arange(round(seconds * sample_rate)) / sample_rate
    return (level * np.sin(2 * np.pi * hertz * times)).astype(np.float32)


def noise(seconds: float, sample_rate: int, *, level: float = 0.1, seed: int = 0) -> Samples:
    return (level * np.random.default_rng(seed).standard_normal(round(seconds * sample_rate))).astype(np.float32)


@dataclass
class Pipe:
    """A sink that cannot seek, as a recorder in a browser or a shell pipe writes."""

    data: bytearray = field(default_factory=bytearray)

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)


def recording(
    container: str,
    codec: str,
    channels: Sequence[Samples],
    sample_rate: int,
    *,
    piped: bool = False,
    video: bool = False,
) -> bytes:
    """The channels (all of one length) encoded into a container, next to a video track if asked for."""
    sink = Pipe() if piped else io.BytesIO()
    layout = {1: "mono", 2: "stereo", 6: "5.1"}[len(channels)]
    with av.open(sink, "w", format=container) as output:
        screen = _add_screen(output) if video else None
        stream = output.add_stream(codec, rate=sample_rate, layout=layout)
        if screen:
            _show(output, screen)
        output.mux(stream.encode(_frame(np.stack(channels, axis=1).reshape(1, -1), sample_rate, layout)))
        output.mux(stream.encode(None))
    return bytes(sink.data) if isinstance(sink, Pipe) else sink.getvalue()


def _frame(packed: Samples, sample_rate: int, layout: str) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(packed, np.float32), "flt", layout)
    frame.sample_rate, frame.pts, frame.time_base = sample_rate, 0, Fraction(1, sample_rate)
    return frame


def video_only() -> bytes:
    sink = io.BytesIO()
    with av.open(sink, "w", format="mp4") as output:
        _show(output, _add_screen(output))
    return sink.getvalue()


def _add_screen(output: av.container.OutputContainer) -> av.VideoStream:
    stream = output.add_stream("mpeg4", rate=10)
    stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
    return stream


def _show(output: av.container.OutputContainer, screen: av.VideoStream) -> None:
    for shade in range(10):
        output.mux(screen.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), 20 * shade, np.uint8), "rgb24")))
    output.mux(screen.encode(None))


def wav(
    data: bytes,
    *,
    sample_rate: int = 16_000,
    channels: int = 1,
    bits: int = 16,
    tag: int = 1,
    stated: int | None = None,
) -> bytes:
    """A WAV file by hand, so that its header can lie: `stated` is the length it claims."""
    size = len(data) if stated is None else stated
    block = channels * bits // 8
    head = struct.pack("<IHHIIHH", 16, tag, channels, sample_rate, sample_rate * block % 2**32, block % 2**16, bits)
    return (
        b"RIFF"
        + struct.pack("<I", min(size + 36, 2**32 - 1))
        + b"WAVEfmt "
        + head
        + struct.pack("<4sI", b"data", size)
        + data
    )


def mp3_with_cover(sound: bytes) -> bytes:
    """The MP3 behind an ID3 tag with a picture, which FFmpeg presents as a video stream."""
    picture = b"\x00image/png\x00\x03\x00" + _png()
    frame = b"APIC" + struct.pack(">IH", len(picture), 0) + picture
    size = len(frame)
    return b"ID3\x03\x00\x00" + bytes((size >> shift) & 0x7F for shift in (21, 14, 7, 0)) + frame + sound


def _png() -> bytes:
    codec = av.CodecContext.create("png", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = 8, 8, "rgb24", Fraction(1, 1)
    return b"".join(bytes(packet) for packet in codec.encode(av.VideoFrame(8, 8, "rgb24")))


def decoded(data: bytes) -> tuple[Samples, int]:
    """What a player makes of an encoded file: samples and their rate."""
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(audio=0))
        if not frames:
            return np.zeros(0, np.float32), container.streams.audio[0].rate
        rows = [frame.to_ndarray()[0] for frame in frames]
        whole = np.concatenate(rows)
        scale = {"i2": 2.0**15, "i4": 2.0**31}.get(whole.dtype.str[1:], 1.0)
        return (whole / scale).astype(np.float32), frames[0].sample_rate
