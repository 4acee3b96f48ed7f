"""One tiny random model that emits frames, and two loops around it. Needs torch; knows no test.

`generate` asks the device after every token whether to go on, as the usual generate() loops do. `SyncFree` asks
nothing: it posts each frame to the mailbox and learns from there, later, that the end has come.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from stentor.decoder.mailbox import (
    CHECKSUM,
    CODES,
    CODES_PER_FRAME,
    FLAGS,
    HISTORY,
    SEQUENCE,
    Delivery,
    Frame,
    Mailbox,
    Row,
    checksum_bits,
    row_words,
)

VOCABULARY = 32
EOS = VOCABULARY  # one past the codes that the head can give: an output's length is its limit, so reads can be counted
STEP_S = 0.02


class TinyModel(nn.Module):
    """Embedding, GRU, one head for the 16 codes of a frame."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY + 1, width)
        self.gru = nn.GRUCell(width, width)
        self.head = nn.Linear(width, CODES_PER_FRAME * VOCABULARY)

    def forward(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """[1], [1, width] -> logits [16, vocabulary] and the next state."""
        state = self.gru(self.embedding(token), state)
        return self.head(state).reshape(CODES_PER_FRAME, VOCABULARY), state

    def start(self) -> tuple[Tensor, Tensor]:
        return torch.zeros(1, dtype=torch.long), torch.zeros(1, self.gru.hidden_size)


def tiny_model() -> TinyModel:
    torch.manual_seed(0)
    return TinyModel().eval()


@torch.no_grad()
def generate(model: TinyModel, limit: int) -> list[list[int]]:
    """The loop with reads: two for each frame, and one for the result."""
    token, state = model.start()
    unfinished = torch.ones(1, dtype=torch.long)
    frames: list[Tensor] = []
    while True:
        logits, state = model(token, state)
        codes = torch.multinomial(torch.softmax(logits, dim=-1), num_samples=1).squeeze(1)
        frames.append(codes)
        token = codes[:1]
        unfinished = unfinished & (len(frames) < limit)
        if token.item() == EOS:
            break
        if unfinished.max() == 0:
            break
    return torch.stack(frames).tolist()


class SyncFree:
    """The same model with its state, its row, its checksum and its end on the device."""

    def __init__(self, model: TinyModel, limit: int) -> None:
        words = row_words(1)
        self._model = model
        self._limit = limit
        self._row = torch.zeros(words, dtype=torch.long)
        self._bits = torch.from_numpy(checksum_bits(words - SEQUENCE))
        self._shifts = torch.arange(64)
        self._of_zeros = zlib.crc32(bytes(8 * (words - SEQUENCE)))

    @torch.no_grad()
    def run(self, mailbox: Mailbox, clock: Callable[[], float]) -> list[Frame]:
        """Steps until the mailbox has said that the slot is finished; what came before that."""
        token, state = self._model.start()
        frames: list[Frame] = []
        while not frames or not frames[-1].finished.all():
            now = clock()
            if mailbox.room:
                token, state = self._step(token, state)
                mailbox.post(self._row, now)
            frames += mailbox.poll(now)
        return [frame for frame in frames if not frame.finished.all()]

    def _step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        logits, state = self._model(token, state)
        codes = (torch.softmax(logits, dim=-1) / torch.empty_like(logits).exponential_()).argmax(dim=-1)
        self._write(codes)
        return codes[:1], state

    def _write(self, codes: Tensor) -> None:
        place = self._row[SEQUENCE : SEQUENCE + 1] % HISTORY
        finished = (self._row[SEQUENCE : SEQUENCE + 1] >= self._limit) | (codes[:1] == EOS)
        self._row[FLAGS:CODES].index_copy_(0, place, finished.long())
        self._row[CODES:].reshape(HISTORY, CODES_PER_FRAME).index_copy_(0, place, codes.unsqueeze(0))
        self._row[SEQUENCE : SEQUENCE + 1] += 1
        self._row[CHECKSUM : CHECKSUM + 1].copy_(self._checksum())

    def _checksum(self) -> Tensor:
        """CRC-32 by xor of a constant for each bit that is set; the xor halves the row until one number is left."""
        is_set = (self._row[SEQUENCE:, None] >> self._shifts) & 1
        left = (is_set * self._bits).flatten()
        while left.numel() > 1:
            odd = left.numel() % 2
            half = left.numel() // 2
            left = torch.cat([left[:half] ^ left[half : 2 * half], left[2 * half : 2 * half + odd]])
        return left ^ self._of_zeros


class TorchDelivery:
    """Copies into torch memory that numpy sees: the view is taken once, at load, and read without torch."""

    def __init__(self, depth: int = 2) -> None:
        self._buffers = [torch.zeros(row_words(1), dtype=torch.long) for _ in range(depth)]
        self._views: list[Row] = [one.numpy() for one in self._buffers]

    def start(self, buffer: int, row: Any) -> None:
        self._buffers[buffer].copy_(row, non_blocking=True)

    def signalled(self, buffer: int) -> bool:
        return True

    def buffer(self, buffer: int) -> Row:
        return self._views[buffer]


class Clock:
    """Time that passes by being looked at."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        self._now += STEP_S
        return self._now


def run_sync_free(model: TinyModel, limit: int, delivery: Delivery) -> list[Frame]:
    return SyncFree(model, limit).run(Mailbox(1, delivery=delivery), Clock())
