"""Cuts a stream of samples of any length into windows that a model with a fixed receptive field can take.

A cut falls where it is quietest, so that no word is split; memory is one window. Knows no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]

FRAME_S = 0.05  # energy is compared in frames of this length: shorter than the gap between two words


def windows(
    blocks: Iterable[Samples], sample_rate: int, *, longest_s: float = 29.0, search_s: float = 8.0
) -> Iterator[tuple[int, Samples]]:
    """Yields (first sample, samples): windows of at most `longest_s`, cut at the quietest place of the last `search_s`.

    Together they are the stream exactly, without overlap.
    """
    longest = int(longest_s * sample_rate)
    search = int(search_s * sample_rate)
    first, held = 0, np.zeros(0, np.float32)
    for block in blocks:
        held = np.concatenate([held, block])
        while len(held) > longest:
            cut = longest - search + quietest(held[longest - search : longest], sample_rate)
            yield first, held[:cut]
            first, held = first + cut, held[cut:]
    if len(held):
        yield first, held


def quietest(samples: Samples, sample_rate: int) -> int:
    """The middle of the frame of least energy, in samples; of equals the last, which keeps windows long."""
    size = max(1, int(FRAME_S * sample_rate))
    count = len(samples) // size
    if count < 1:
        return len(samples)
    energy = np.square(samples[: count * size], dtype=np.float64).reshape(count, size).mean(axis=1)
    best = count - 1 - int(np.argmin(energy[::-1]))
    return best * size + size // 2
