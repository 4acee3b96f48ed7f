"""One encoder per response: samples in, the bytes of one audio file out, as soon as the codec lets them go.

Owns formats, media types and containers. Knows no HTTP and no engine. An encoder per chunk is the most common audible
defect in public reports (mlx-audio#898, gradio#13820: a gap at every seam), so an Encoder lives as long as its response
and is fed one monotone stream. The same samples give the same bytes, in whatever blocks they are pushed.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import av
from av.audio.stream import AudioStream
from av.codec.context import Flags
from av.container import OutputContainer

from .. import errors
from . import pcm

PCM_RATE = 24_000  # OpenAI's pcm and wav; pipecat assumes it without asking
UNKNOWN_SIZE = 0xFFFFFFFF  # what OpenAI writes where a streamed WAV would state a length (speaches#493, Kokoro#94)


@dataclass(frozen=True)
class Format:
    """What a client asks for by name, and how it is made. `rates` are those the codec takes, ascending."""

    name: str
    media_type: str
    extension: str
    rates: tuple[int, ...]
    container: str = ""
    codec: str = ""
    sample_format: str = ""
    bit_rate: int | None = None
    codec_options: Mapping[str, str] = field(default_factory=dict)
    container_options: Mapping[str, str] = field(default_factory=dict)

    def rate_for(self, sample_rate: int) -> int:
        """The lowest rate this format can carry without loss of bandwidth, else its highest."""
        return next((rate for rate in self.rates if rate >= sample_rate), self.rates[-1])


_MPEG_RATES = (16_000, 22_050, 24_000, 32_000, 44_100, 48_000)

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            "mp3",
            "audio/mpeg",
            "mp3",
            _MPEG_RATES,
            container="mp3",
            codec="libmp3lame",
            sample_format="fltp",
            bit_rate=96_000,
            codec_options={"reservoir": "0"},  # a frame that may borrow bits from the next leaves 30 ms later
            container_options={"id3v2_version": "0"},  # its only content would be the encoder's version
        ),
        Format(
            "opus",
            # OpenAI sends audio/opus, which names RTP packets (RFC 7587) and not a file; this is the registered type of
            # Ogg Opus (RFC 7845). LiveKit, which decodes by this header, takes either as Ogg.
            "audio/ogg",
            "ogg",
            (16_000, 24_000, 48_000),
            container="ogg",
            codec="libopus",
            sample_format="flt",
            bit_rate=64_000,
            codec_options={"frame_duration": "20"},
            # A page per packet; the default page of one second would hold the first byte back that long.
            container_options={"page_duration": "20000"},
        ),
        Format(
            "aac",
            "audio/aac",
            "aac",
            _MPEG_RATES,
            container="adts",
            codec="aac",
            sample_format="fltp",
            bit_rate=96_000,
        ),
        Format(
            "flac",
            "audio/flac",
            "flac",
            (*_MPEG_RATES, 96_000),
            container="flac",
            codec="flac",
            sample_format="s16",
            # Blocks of 24 ms instead of 96 ms at 24 kHz: the first one leaves 72 ms sooner, for 5 % more bytes. (Adding
            # lpc_type=levinson wins 3 % back and writes frames that the reference decoder refuses: FFmpeg 8, measured.)
            codec_options={"compression_level": "2"},
            container_options={"metadata_header_padding": "0"},  # else 8 KiB of zeros before the first block
        ),
        Format("wav", "audio/wav", "wav", (PCM_RATE,)),
        Format("pcm", "audio/pcm", "pcm", (PCM_RATE,)),
    )
}


class Encoder:
    """Encodes one response. Use as a context manager, or see that `close` runs whatever happens.

    `streamed` hands bytes out while samples come in; lengths that nobody knows yet are left open (WAV: 0xFFFFFFFF,
    FLAC: 0, MP3: no Xing header). `streamed=False` returns everything from `finish`, with exact lengths in every
    header; the memory used is then the size of the file.

    Decoded again, wav, pcm, flac and opus, and mp3 with its header, have exactly the samples that were pushed. A
    streamed mp3 has nowhere to say what its codec adds: 1105 samples of lead (1024 for aac, always) and silence up to
    the end of its last frame.

    Raises InvalidRequest for an unknown format, EngineFailed where encoding fails or samples are not finite.
    """

    def __init__(self, format: str, sample_rate: int, *, streamed: bool = True) -> None:
        if format not in FORMATS:
            known = ", ".join(FORMATS)
            raise errors.InvalidRequest(f"'{format}' is not an audio format; use {known}.", param="response_format")
        self.format = FORMATS[format]
        self.sample_rate = self.format.rate_for(sample_rate)
        self._resampler = pcm.Resampler(sample_rate, self.sample_rate)
        writer = _Coded if self.format.codec else _Plain
        with _engine_errors(format):
            self._writer: _Writer = writer(self.format, self.sample_rate, streamed)
        self._open = True

    def encode(self, samples: pcm.Samples) -> bytes:
        """Take samples; return the bytes that are ready, perhaps none."""
        if not self._open:
            raise errors.EngineFailed("Audio came after the end of its response.")
        pcm.require_finite(samples)
        return self._write(self._resampler.push(samples))

    def finish(self) -> bytes:
        """End the file and return the rest of it. A second call returns nothing."""
        if not self._open:
            return b""
        ready = self._write(self._resampler.finish())
        with _engine_errors(self.format.name):
            ready += self._writer.finish()
        self.close()
        return ready

    def close(self) -> None:
        """Let go of everything, finished or not. Never raises, and may be called twice."""
        if self._open:
            self._open = False
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, samples: pcm.Samples) -> bytes:
        if not samples.size:
            return b""
        with _engine_errors(self.format.name):
            return self._writer.write(samples)


class _Writer(Protocol):
    def write(self, samples: pcm.Samples) -> bytes: ...
    def finish(self) -> bytes: ...
    def close(self) -> None: ...


class _Plain:
    """pcm and wav: 16-bit samples, for wav behind a header."""

    def __init__(self, format: Format, sample_rate: int, streamed: bool) -> None:
        self._has_header = format.name == "wav"
        self._rate = sample_rate
        self._streamed = streamed
        self._held = bytearray()
        if streamed and self._has_header:
            self._held += wav_header(sample_rate, None)

    def write(self, samples: pcm.Samples) -> bytes:
        self._held += pcm.to_s16(samples)
        return self._take() if self._streamed else b""

    def finish(self) -> bytes:
        if self._has_header and not self._streamed:
            return wav_header(self._rate, len(self._held)) + self._take()
        return self._take()

    def close(self) -> None:
        self._held = bytearray()

    def _take(self) -> bytes:
        ready, self._held = bytes(self._held), bytearray()
        return ready


class _Coded:
    """A codec in a container, both FFmpeg's, through PyAV.

    PyAV cuts the stream into the codec's frames whatever the blocks were. What closing does depends on the container
    (Ogg writes its last page, FLAC and MP3 patch their headers), so the end is read after closing, always: a sink that
    cannot seek leaves nothing to patch, one that can has the patch in it (Kokoro#463, #497).
    """

    def __init__(self, format: Format, sample_rate: int, streamed: bool) -> None:
        self._rate = sample_rate
        self._sink: _Pipe | io.BytesIO = _Pipe() if streamed else io.BytesIO()
        # bitexact: no versions, no dates, and Ogg's serial number is not drawn at random
        options = {"fflags": "+bitexact", "flush_packets": "1", **format.container_options}
        if format.name == "mp3":
            options["write_xing"] = "0" if streamed else "1"
        self._container: OutputContainer = av.open(self._sink, "w", format=format.container, options=options)
        stream = self._container.add_stream(format.codec, rate=sample_rate, options=dict(format.codec_options))
        assert isinstance(stream, AudioStream)
        self._stream = stream
        codec = stream.codec_context
        codec.layout, codec.format = "mono", format.sample_format
        codec.flags |= Flags.bitexact
        if format.bit_rate:
            codec.bit_rate = format.bit_rate
        self._container.start_encoding()
        self._position = 0

    def write(self, samples: pcm.Samples) -> bytes:
        frame = pcm.mono_frame(samples, self._rate, self._position)
        self._position += samples.size
        self._container.mux(self._stream.encode(frame))
        return self._sink.take() if isinstance(self._sink, _Pipe) else b""

    def finish(self) -> bytes:
        if self._position:  # an encoder that never saw a frame has nothing to flush
            self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.take() if isinstance(self._sink, _Pipe) else self._sink.getvalue()

    def close(self) -> None:
        # Closing an abandoned container writes its trailer, into a sink nobody reads any more.
        with suppress(av.FFmpegError):
            self._container.close()


class _Pipe:
    """Where FFmpeg writes a streamed file. Without `seek` it knows that what is written has left."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes) -> int:
        self._data += data
        return len(data)

    def take(self) -> bytes:
        ready, self._data = bytes(self._data), bytearray()
        return ready


def wav_header(sample_rate: int, data_bytes: int | None) -> bytes:
    """The 44 bytes before 16-bit mono samples; None where their number is not known yet."""
    data = UNKNOWN_SIZE if data_bytes is None else min(data_bytes, UNKNOWN_SIZE)
    riff = min(data + 36, UNKNOWN_SIZE)
    format_chunk = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, sample_rate, sample_rate * 2, 2, 16)
    return struct.pack("<4sI4s", b"RIFF", riff, b"WAVE") + format_chunk + struct.pack("<4sI", b"data", data)


@contextmanager
def _engine_errors(format: str) -> Iterator[None]:
    try:
        yield
    except av.FFmpegError as error:
        raise errors.EngineFailed(f"Encoding the audio as {format} failed.", detail=str(error)) from error
