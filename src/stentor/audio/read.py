"""Any recording in, mono samples out: decodes what strangers upload, block by block, in bounded memory.

Owns containers, corrupt packets, channels and limits. Runs in sidecars only, so that a crash of a decoder is an
incident of one process. Judges a file by its bytes: FFmpeg never sees its name, never has its stated duration believed,
and can open nothing but this one file (a playlist names other files and addresses, so no playlist is read).
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import av
import numpy as np
import numpy.typing as npt
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet

from .. import errors
from . import pcm

log = logging.getLogger(__name__)

# What people upload, by FFmpeg's names. hls, dash, concat, sdp, rtsp, image sequences and their like are missing on
# purpose: they read other files or the network (without this list FFmpeg 8 does open an SDP file's UDP ports). So are
# formats without a header, which claim what is none (amrnb took an HTML page for speech, FFmpeg 7).
_CONTAINERS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,eac3,flac,flv,loas,matroska,mov,mp3,mpc,mpc8,mpeg,mpegts,"
    "nistsphere,ogg,oma,rm,sox,tak,tta,voc,w64,wav,wv"
)
_RATES = range(1_000, 768_001)
_BLOCK_S = 0.1
_RAMP_S = 0.01
_SUM_ERROR_S = 1e-3  # of adding up the lengths of many blocks: a recording of exactly the limit is within it
_PADDING_S = 1.0  # silence that encoders add at both ends, at most
_DEAD_CHANNEL_DB = -60.0
_CANCELLED = 0.05  # of the power of its channels, left in their average: a correlation of -0.9
_MAX_PLANES = 8  # FFmpeg keeps the pointers past these elsewhere, and PyAV 18 runs over their end looking for more

# Sample formats, packed or planar: dtype, zero level, full scale.
_SCALES = {
    "u8": ("u1", 128.0, 2.0**7),
    "s16": ("i2", 0.0, 2.0**15),
    "s32": ("i4", 0.0, 2.0**31),
    "s64": ("i8", 0.0, 2.0**63),
    "flt": ("f4", 0.0, 1.0),
    "dbl": ("f8", 0.0, 1.0),
}

Channels = npt.NDArray[np.float32]  # [channel, sample]


@dataclass(frozen=True)
class ReadLimits:
    """How much of a recording is read: seconds after decoding, whatever the header says, and bytes on disk."""

    max_seconds: float = 4 * 3600
    max_bytes: int = 2 * 1024**3


DEFAULT_LIMITS = ReadLimits()


def read(path: str | Path, sample_rate: int, limits: ReadLimits = DEFAULT_LIMITS) -> pcm.Samples:
    """The whole recording as mono samples at `sample_rate`. Errors as for `blocks`."""
    return np.concatenate(list(blocks(path, sample_rate, limits)))


def blocks(path: str | Path, sample_rate: int, limits: ReadLimits = DEFAULT_LIMITS) -> Iterator[pcm.Samples]:
    """The recording as mono samples at `sample_rate`, in blocks of about 0.1 s.

    Corrupt packets are left out and counted in the log; a file cut short gives what is there; samples that are no
    numbers become 0. Raises UndecodableAudio if there is nothing to read, TooLarge at a limit (for `max_seconds` after
    the blocks before it).
    """
    reader = Reader(path, sample_rate, limits)
    yield from reader.blocks()
    if reader.skipped:
        log.warning("left out %d corrupt packets in %.1f s of audio", reader.skipped, reader.seconds)


def require_length(path: str | Path, limits: ReadLimits = DEFAULT_LIMITS) -> None:
    """Raises TooLarge where the packets of a recording say that it is over `max_seconds`, without decoding any.

    So that hours are not understood in vain before the limit is met. Their lengths may be wrong or missing, so that
    `blocks` has the last word; a second is allowed for what encoders put around the sound.
    """
    with _opened(Path(path), limits) as file, _container(file) as container:
        seconds = 0.0
        try:
            for packet in container.demux(_audio_stream(container)):
                seconds += float((packet.duration or 0) * packet.time_base)
        except (av.FFmpegError, IndexError):  # as in Reader: broken from here on
            return
    if seconds > limits.max_seconds + _PADDING_S:
        raise _too_long(limits)


class Reader:
    """One pass over one file. `skipped` counts corrupt packets; `seconds` is what was decoded so far."""

    def __init__(self, path: str | Path, sample_rate: int, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        self.skipped = 0
        self.seconds = 0.0
        self._path = Path(path)
        self._rate = sample_rate
        self._limits = limits
        self._given = 0

    def blocks(self) -> Iterator[pcm.Samples]:
        """As the function `blocks`."""
        with _opened(self._path, self._limits) as file, _container(file) as container:
            for block in self._resampled(_gathered(self._frames(container, _audio_stream(container)))):
                self._given += block.size
                if block.size:
                    yield block
        if not self._given:
            problem = "None of the audio in the file can be decoded." if self.skipped else "The file holds no samples."
            raise errors.UndecodableAudio(problem)

    def _frames(self, container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
        try:
            for packet in container.demux(stream):
                yield from self._decoded(stream, packet)
        except (av.FFmpegError, IndexError):
            # The container is broken from here on; what the decoder still holds counts. (IndexError: PyAV 18, at the
            # end of an MPEG-TS in which a stream turned up that was not there at the start.)
            self.skipped += 1
            yield from self._decoded(stream, None)

    def _decoded(self, stream: AudioStream, packet: Packet[AudioStream] | None) -> list[AudioFrame]:
        try:
            return stream.decode(packet)
        except av.FFmpegError:
            self.skipped += 1
            return []

    def _resampled(self, gathered: Iterator[tuple[Channels, int]]) -> Iterator[pcm.Samples]:
        """Mono blocks at one rate, though rate and channels may change in mid-stream (chained Ogg, joined MP3)."""
        source, resampler, mix = 0, pcm.Resampler(self._rate, self._rate), Downmix(0)
        for channels, rate in gathered:
            self._count(channels.shape[1] / rate)
            if rate != source:
                yield resampler.finish()
                source, resampler = rate, pcm.Resampler(rate, self._rate)
            if len(channels) != mix.channels:
                mix = Downmix(len(channels))
            yield resampler.push(mix.mono(channels, round(rate * _RAMP_S)))
        yield resampler.finish()

    def _count(self, seconds: float) -> None:
        self.seconds += seconds
        if self.seconds > self._limits.max_seconds + _SUM_ERROR_S:
            raise _too_long(self._limits)


class Downmix:
    """Channels to mono, one block after the other, without a level that depends on how many channels are unused.

    The average of the channels that have been heard so far. One that stays below -60 dB (a headset recorded in stereo,
    an open line) does not count: it would halve the level of the other. From its first sound on it counts for good.
    Where the average cancels, because one channel is the other upside down (over the stream so far, 5 % of the power
    left), the loudest channel is taken alone. Weights change over 10 ms, since a step would click.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self._heard = np.zeros(channels, bool)
        self._power = np.zeros(channels)
        self._power_of_average = 0.0
        self._weights: npt.NDArray[np.float32] | None = None

    def mono(self, block: Channels, ramp: int) -> pcm.Samples:
        """[channel, sample] to [sample]; a change of weights takes `ramp` samples."""
        if self.channels == 1:
            return np.asarray(block[0])
        before, after = self._weights, self._weigh(block)
        self._weights = after
        mixed = np.asarray(after @ block, np.float32)
        if before is not None and not np.array_equal(before, after):
            start = block[:, :ramp]
            mixed[:ramp] += ((before - after) @ start) * np.linspace(1.0, 0.0, start.shape[1], dtype=np.float32)
        return mixed

    def _weigh(self, block: Channels) -> npt.NDArray[np.float32]:
        power = np.square(block, dtype=np.float64).sum(axis=1)
        self._power += power
        self._heard |= power > block.shape[1] * 10.0 ** (_DEAD_CHANNEL_DB / 10.0)
        counted = self._heard if self._heard.any() else np.ones_like(self._heard)
        average = np.asarray(counted / counted.sum(), np.float32)
        self._power_of_average += float(np.square(average @ block, dtype=np.float64).sum())
        if self._power_of_average >= _CANCELLED * self._power[counted].mean():
            return average
        return np.asarray(np.arange(self.channels) == self._power.argmax(), np.float32)


def _too_long(limits: ReadLimits) -> errors.TooLarge:
    return errors.TooLarge(
        f"The recording is longer than {limits.max_seconds:g} seconds, the most this server reads; send it in parts."
    )


@contextmanager
def _opened(path: Path, limits: ReadLimits) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise errors.UndecodableAudio("The file cannot be opened.", detail=str(error)) from error
    with file:
        size = path.stat().st_size
        if not size:
            raise errors.UndecodableAudio("The file is empty.")
        if size > limits.max_bytes:
            raise errors.TooLarge(f"The file has {size} bytes; this server reads at most {limits.max_bytes}.")
        yield file


class _Nameless:
    """The file as FFmpeg sees it: bytes. With a name it would pick a demuxer by the extension."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.read, self.tell = file.read, file.tell

    def seek(self, offset: int, whence: int) -> int:
        """As a file's, but a place that cannot be (headers lie) is FFmpeg's error code and not an exception."""
        try:
            return self._file.seek(offset, whence)
        except (OSError, ValueError):
            return -errno.EINVAL


def _container(file: BinaryIO) -> InputContainer:
    try:
        return av.open(
            _Nameless(file),
            "r",
            container_options={
                "format_whitelist": _CONTAINERS,
                "codec_whitelist": _audio_codecs(),
                "protocol_whitelist": "none",
            },
            io_open=_refuse,
            metadata_errors="replace",  # tags are in any encoding, or in none; nothing here reads them
        )
    except av.FFmpegError as error:
        raise errors.UndecodableAudio(
            "The file is not audio in a format this server reads (WAV, FLAC, MP3, M4A, MP4, Ogg, WebM and more).",
            detail=str(error),
        ) from error


def _refuse(url: str, flags: int, options: dict[str, str]) -> NoReturn:
    raise PermissionError(f"an upload may not open {url!r}")  # PyAV hands it to FFmpeg, which gives up


@cache
def _audio_codecs() -> str:
    """Every audio decoder by name: while it looks for streams, FFmpeg would also decode video that nobody wants."""
    return ",".join(sorted(name for name in av.codecs_available if _decodes_audio(name)))


def _decodes_audio(name: str) -> bool:
    try:
        return av.Codec(name, "r").type == "audio"
    except av.codec.codec.UnknownCodecError:  # an encoder only
        return False


def _audio_stream(container: InputContainer) -> AudioStream:
    for stream in container.streams.audio:
        if stream.codec_context is not None:
            return stream
    if container.streams.audio:
        raise errors.UndecodableAudio("The audio in the file uses a codec that this server cannot decode.")
    raise errors.UndecodableAudio("The file holds no audio stream.")


def _gathered(frames: Iterator[AudioFrame]) -> Iterator[tuple[Channels, int]]:
    """Frames put together to about 0.1 s of one rate and one number of channels: a frame can be as short as 2.5 ms."""
    parts: list[Channels] = []
    held = rate = 0
    for frame in frames:
        if not frame.samples:
            continue
        part = _samples(frame)
        if parts and (held >= rate * _BLOCK_S or rate != frame.sample_rate or len(part) != len(parts[0])):
            yield np.concatenate(parts, axis=1), rate
            parts, held = [], 0
        rate = frame.sample_rate
        held += frame.samples
        parts.append(part)
    if parts:
        yield np.concatenate(parts, axis=1), rate


def _samples(frame: AudioFrame) -> Channels:
    """[channel, sample] in [-1, 1]. What is no number becomes 0: one bad sample is no reason to refuse an hour."""
    channels = frame.layout.nb_channels
    if frame.sample_rate not in _RATES or not channels or (frame.format.is_planar and channels > _MAX_PLANES):
        raise errors.UndecodableAudio(
            f"Audio with {channels} channels at {frame.sample_rate} Hz cannot be read here; send mono at 16000 Hz."
        )
    dtype, zero, full = _SCALES[frame.format.name.removesuffix("p")]
    raw = _by_channel(frame, channels, dtype)
    scaled = np.asarray((raw - zero) / full, np.float32) if full != 1.0 else raw.astype(np.float32)
    return np.clip(np.nan_to_num(scaled, copy=False, nan=0.0, posinf=0.0, neginf=0.0), -1.0, 1.0)


def _by_channel(frame: AudioFrame, channels: int, dtype: str) -> npt.NDArray[Any]:
    """[channel, sample], in the decoder's own type."""
    if not frame.format.is_planar:
        return np.frombuffer(memoryview(frame.planes[0]), dtype)[: frame.samples * channels].reshape(-1, channels).T
    planes = frame.planes[:channels]
    return np.stack([np.frombuffer(memoryview(plane), dtype)[: frame.samples] for plane in planes])
