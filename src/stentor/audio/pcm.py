"""Mono samples: conversion, level, silence, sample rate and tempo.

Owns what is done to samples between an engine and an encoder. Knows no container, codec or engine.
Samples are 1-D float32 arrays in [-1, 1] everywhere. Resampler and Tempo are streams: pushing the same samples in
other block sizes gives the same output bit for bit, and `finish` makes the total length exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import av
import av.filter
import numpy as np
import numpy.typing as npt
import soxr

from .. import errors

Samples = npt.NDArray[np.float32]

SILENCE_DB = -120.0  # what `rms_db` says of digital silence: below the noise floor of 16-bit audio, but finite
MIN_SPEED, MAX_SPEED = 0.25, 4.0

_FRAME_S = 0.01
_TEMPO_TAIL_S = 0.2  # atempo keeps up to 61 ms of input for itself at 0.25 (measured, FFmpeg 8); silence pushes it out
_TEMPO_BLOCK_S = 0.02  # pushed in pieces under 2 ms, atempo aligns its first window otherwise: other bytes


def empty() -> Samples:
    """An array of no samples."""
    return np.zeros(0, np.float32)


def require_finite(samples: Samples) -> None:
    """Raise EngineFailed if any sample is NaN or infinite: a broken engine must not become a burst of noise."""
    if not np.isfinite(samples).all():
        raise errors.EngineFailed("The engine produced samples that are not numbers (NaN or infinite).")


def to_s16(samples: Samples) -> bytes:
    """Little-endian 16-bit PCM, clipped and rounded to nearest, on the scale of 32768 that readers divide by.

    Non-finite samples raise EngineFailed.
    """
    require_finite(samples)
    scaled = np.rint(samples * np.float32(32768))
    return bytes(np.clip(scaled, -32768, 32767).astype("<i2"))


def to_f32(samples: Samples) -> bytes:
    """Little-endian 32-bit float PCM, as the protocol carries it."""
    return samples.astype("<f4").tobytes()


def from_f32(data: bytes) -> Samples:
    """Samples from little-endian 32-bit float PCM; ProtocolError if the bytes are not whole samples."""
    if len(data) % 4:
        raise errors.ProtocolError(f"{len(data)} bytes are not a whole number of 32-bit samples.")
    return np.frombuffer(data, "<f4").astype(np.float32)


def rms_db(samples: Samples) -> float:
    """Level over all samples in dB below full scale; SILENCE_DB for silence and for no samples."""
    if not samples.size:
        return SILENCE_DB
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return max(SILENCE_DB, 10.0 * math.log10(power)) if power > 0.0 else SILENCE_DB


def trim_silence(
    samples: Samples,
    sample_rate: int,
    *,
    threshold_db: float = -45.0,
    keep_s: float = 0.02,
    lead_s: float | None = None,
    tail_s: float | None = None,
) -> Samples:
    """The samples without the silence at both ends (a view of them); nothing at all if every 10 ms frame is silent.

    A frame counts as sound from `threshold_db` (RMS, dB full scale) on. `lead_s` and `tail_s` say how much is kept
    before the first and after the last of them; each is `keep_s` unless given.
    """
    frame = max(1, round(sample_rate * _FRAME_S))
    starts = np.arange(0, samples.size, frame)
    if not starts.size:
        return samples
    power = np.add.reduceat(np.square(samples, dtype=np.float64), starts)
    sizes = np.minimum(frame, samples.size - starts)
    sound = np.flatnonzero(power >= sizes * 10.0 ** (threshold_db / 10.0))
    if not sound.size:
        return samples[:0]
    first = int(starts[sound[0]]) - round(sample_rate * (keep_s if lead_s is None else lead_s))
    last = int(starts[sound[-1]]) + frame + round(sample_rate * (keep_s if tail_s is None else tail_s))
    return samples[max(0, first) : last]


def gain_to(samples: Samples, target_db: float, *, ceiling: float = 0.98) -> float:
    """The factor that brings these samples to `target_db` RMS, lowered where a peak would pass `ceiling`.

    Silence gets 1.0: there is nothing to raise but noise.
    """
    level = rms_db(samples)
    if level <= SILENCE_DB:
        return 1.0
    return min(float(10.0 ** ((target_db - level) / 20.0)), ceiling / float(np.max(np.abs(samples))))


def apply_gain(samples: Samples, gain: float) -> Samples:
    """The samples times `gain`, clipped to [-1, 1].

    The guard is a hard clip on purpose. Anything gentler that looks at the block (a limiter, a scale to the block's
    peak) changes the gain where one block meets the next, and that clicks; a soft knee colours samples that were
    fine. Take one gain for the whole utterance, from `gain_to`, and the clip never happens.
    """
    louder: Samples = np.clip(samples * np.float32(gain), -1.0, 1.0)
    return louder


class Resampler:
    """A stream at `source_rate` in, the same stream at `target_rate` out; equal rates pass through untouched."""

    def __init__(self, source_rate: int, target_rate: int) -> None:
        same = source_rate == target_rate
        self._stream = None if same else soxr.ResampleStream(source_rate, target_rate, 1, "float32", "HQ")

    def push(self, samples: Samples) -> Samples:
        """The output that is ready now, perhaps empty: the filter holds back some 5 to 10 ms."""
        if self._stream is None:
            return samples
        return self._run(samples, last=False)

    def finish(self) -> Samples:
        """The rest. In all, n samples in give round(n * target / source) out. Nothing may be pushed after it."""
        if self._stream is None:
            return empty()
        rest = self._run(empty(), last=True)
        self._stream = None
        return rest

    def _run(self, samples: Samples, *, last: bool) -> Samples:
        assert self._stream is not None
        done: Samples = self._stream.resample_chunk(np.ascontiguousarray(samples, np.float32), last=last)
        np.clip(done, -1.0, 1.0, out=done)  # the filter rings past full scale at steep edges
        return done


class Tempo:
    """Speech made faster (speed over 1) or slower with its pitch kept, by FFmpeg's atempo.

    For engines without a speed of their own: an engine that plans durations itself always sounds better.
    A speed outside 0.25-4 raises InvalidRequest for `speed`.
    """

    def __init__(self, speed: float, sample_rate: int) -> None:
        if not MIN_SPEED <= speed <= MAX_SPEED:  # also refuses NaN
            raise errors.InvalidRequest(
                f"speed must be between {MIN_SPEED:g} and {MAX_SPEED:g}, not {speed:g}.", param="speed"
            )
        self._speed = speed
        self._rate = sample_rate
        self._graph = None if speed == 1.0 else _tempo_graph(speed, sample_rate)
        self._block = round(sample_rate * _TEMPO_BLOCK_S)
        self._waiting = empty()
        self._taken = 0
        self._given = 0

    def push(self, samples: Samples) -> Samples:
        """The output that is ready now, perhaps empty: atempo works in windows of some 40 to 90 ms."""
        if self._graph is None:
            return samples
        self._taken += samples.size
        self._waiting = np.concatenate([self._waiting, samples])
        whole = self._waiting.size // self._block * self._block
        ready, self._waiting = self._waiting[:whole], self._waiting[whole:]
        done = self._filter(*np.split(ready, range(self._block, whole, self._block))) if whole else empty()
        self._given += done.size
        return done

    def finish(self) -> Samples:
        """The rest. In all, n samples in give round(n / speed) out. Nothing may be pushed after it."""
        if self._graph is None:
            return empty()
        silence = np.zeros(round(self._rate * _TEMPO_TAIL_S * max(1.0, self._speed)), np.float32)
        rest = self._filter(np.concatenate([self._waiting, silence]), None)
        self._graph = None
        return rest[: round(self._taken / self._speed) - self._given]

    def _filter(self, *blocks: Samples | None) -> Samples:
        assert self._graph is not None
        ready = [empty()]
        try:
            for block in blocks:
                self._graph.push(None if block is None else mono_frame(block, self._rate, None))
                ready += _pull(self._graph)
        except av.FFmpegError as error:
            raise errors.EngineFailed("Changing the speed of the audio failed.", detail=str(error)) from error
        return np.concatenate(ready)


def mono_frame(samples: Samples, sample_rate: int, pts: int | None) -> av.AudioFrame:
    """The samples (at least one) as a packed float frame whose time base is one sample."""
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples[np.newaxis], np.float32), "flt", "mono")
    frame.sample_rate = sample_rate
    frame.time_base = Fraction(1, sample_rate)
    frame.pts = pts
    return frame


def _tempo_graph(speed: float, sample_rate: int) -> av.filter.Graph:
    graph = av.filter.Graph()
    last = graph.add_abuffer(sample_rate=sample_rate, format="flt", layout="mono", time_base=Fraction(1, sample_rate))
    for factor in _tempo_steps(speed):
        step = graph.add("atempo", repr(factor))
        last.link_to(step)
        last = step
    last.link_to(graph.add("abuffersink"))
    graph.configure()
    return graph


def _tempo_steps(speed: float) -> list[float]:
    """Factors within 0.5-2 whose product is `speed`: past 2, one atempo drops whole stretches instead of blending."""
    count = max(1, math.ceil(abs(math.log2(speed))))
    return [speed ** (1.0 / count)] * count


def _pull(graph: av.filter.Graph) -> Iterator[Samples]:
    while True:
        try:
            frame = graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):  # nothing ready; nothing more
            return
        assert isinstance(frame, av.AudioFrame)
        yield frame.to_ndarray()[0].astype(np.float32)
