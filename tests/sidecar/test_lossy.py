"""Lost host reads: each kind is counted once, short output survives them and long output does not, the mailbox does."""

from __future__ import annotations

import copy
import math
import operator
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stentor.sidecar.lossy import Lossy, LostSignal  # noqa: E402
from stentor.sidecar.lossy_delivery import LossyDelivery  # noqa: E402
from tests.sidecar.generate_loop import TorchDelivery, generate, run_sync_free, tiny_model  # noqa: E402

P = 0.02
SHORT, LONG = 4, 160
TRIALS = 150
X = torch.arange(6.0)
N = torch.arange(6)
MASK = X > 2
ELSEWHERE = torch.zeros(6, device="meta")  # stands for a device's memory: what comes of a read of it is no matter here

READS: dict[str, Callable[[], Any]] = {
    "item": lambda: X[0].item(),
    "tolist": lambda: X.tolist(),
    "cpu": lambda: X.cpu(),
    "to a string": lambda: X.to("cpu"),
    "to by keyword": lambda: X.to(device="cpu", dtype=torch.float64),
    "numpy": lambda: X.numpy(),
    "asarray": lambda: np.asarray(X),
    "bool": lambda: bool(MASK.any()),
    "a bare if": lambda: 1 if N.max() == 0 else 2,
    "int": lambda: int(X[0]),
    "float": lambda: float(X[0]),
    "index": lambda: operator.index(N[1]),
    "range": lambda: range(N[1]),
    "format": lambda: f"{X[0]}",
    "repr": lambda: repr(X),
    "torch.equal": lambda: torch.equal(X, X),
    "Tensor.equal": lambda: X.equal(X),
    "allclose": lambda: torch.allclose(X, X),
    "is_nonzero": lambda: torch.is_nonzero(X[1]),
    "in": lambda: 2.0 in X,
    "nonzero": lambda: X.nonzero(),
    "nonzero as a tuple": lambda: torch.nonzero(X, as_tuple=True),
    "where with one argument": lambda: torch.where(MASK),
    "read by mask": lambda: X[MASK],
    "write by mask": lambda: operator.setitem(X.clone(), MASK, torch.ones(3)),
    "masked_select": lambda: X.masked_select(MASK),
    "unique": lambda: X.unique(),
    "unique with counts": lambda: torch.unique(N, return_inverse=True, return_counts=True),
    "unique rows": lambda: torch.unique(X, dim=0),
    "unique_consecutive": lambda: torch.unique_consecutive(X),
    "_local_scalar_dense": lambda: torch.ops.aten._local_scalar_dense(X[0]),
    "an index that is a tensor": lambda: X[N[2]],
    "the end of a slice": lambda: X[: N[2]],
    "the larger of two": lambda: max(X[0], X[1]),
    "a size": lambda: torch.arange(N[3]),
    "bincount": lambda: torch.bincount(N),
    "repeat_interleave": lambda: X.repeat_interleave(N),
    "by keywords alone": lambda: torch.equal(input=X, other=X),
    "from another device": lambda: torch.zeros(6).copy_(ELSEWHERE),
    "from another device by to": lambda: ELSEWHERE.to(torch.device("cpu")),
}

NO_READS: dict[str, Callable[[], Any]] = {
    "arithmetic": lambda: (X + 1).softmax(0).argmax(),
    "where with three arguments": lambda: torch.where(MASK, X, X),
    "gather": lambda: X.gather(0, N),
    "index by numbers": lambda: X[N],
    "masked_fill": lambda: X.masked_fill(MASK, 0.0),
    "write of one value by mask": lambda: operator.setitem(X.clone(), MASK, 0.0),
    "topk": lambda: X.topk(2),
    "multinomial": lambda: torch.multinomial(X, 1),
    "to a dtype": lambda: X.to(torch.int32),
    "to where the model is": lambda: X.to(X.device),
    "a copy that waits for nothing": lambda: X.to("cpu", non_blocking=True),
    "a copy into a buffer": lambda: torch.zeros(6).copy_(X, non_blocking=True),
    "a copy from another device that waits for nothing": lambda: _queued(ELSEWHERE),
    "a copy that stays elsewhere": lambda: torch.ones_like(ELSEWHERE).copy_(ELSEWHERE),
    "repeat_interleave with a known size": lambda: X.repeat_interleave(N, output_size=15),
    "repeat_interleave by a number": lambda: X.repeat_interleave(2),
    "shape": lambda: X.shape[0] + len(X) + X.dim(),
    "deepcopy": lambda: copy.deepcopy(X),
}


def _queued(source: torch.Tensor) -> None:
    with suppress(NotImplementedError):
        torch.zeros(6).copy_(source, non_blocking=True)


@pytest.mark.parametrize("name", READS)
def test_a_read_is_counted_once(name: str) -> None:
    lossy = Lossy(0)
    with lossy, suppress(NotImplementedError):  # a meta tensor has nothing to be read
        READS[name]()
    assert lossy.reads.total() == 1, lossy.reads
    assert lossy.losses.total() == 0


@pytest.mark.parametrize("name", READS)
def test_a_read_can_be_lost(name: str) -> None:
    lossy = Lossy(1)
    with lossy, pytest.raises(LostSignal, match="read 1 "):
        READS[name]()
    assert lossy.losses == lossy.reads
    assert lossy.losses.total() == 1


@pytest.mark.parametrize("name", NO_READS)
def test_what_stays_on_the_device_is_no_read(name: str) -> None:
    with Lossy(1) as lossy:
        NO_READS[name]()
    assert lossy.reads.total() == 0, lossy.reads


def test_reads_are_counted_by_the_name_of_the_operation() -> None:
    with Lossy(0) as lossy:
        X[0].item()
        X[MASK].tolist()
        X[1].item()
    assert lossy.reads == {"item": 2, "tolist": 1, "index": 1}


def test_with_a_device_named_only_its_tensors_count() -> None:
    with Lossy(1, device="meta") as lossy:
        assert X[0].item() == 0
        assert X.tolist()[1] == 1
        with pytest.raises(LostSignal):
            ELSEWHERE.cpu()
    assert lossy.reads == {"cpu": 1}


def test_no_read_is_counted_outside_and_counting_goes_on_when_it_is_entered_again() -> None:
    lossy = Lossy(0)
    with lossy:
        X[0].item()
    X[0].item()
    with lossy:
        X[0].item()
    assert lossy.reads == {"item": 2}


def test_a_loss_leaves_the_next_read_as_it_was() -> None:
    lossy = Lossy(1)
    for _ in range(2):
        with lossy, pytest.raises(LostSignal):
            X[0].item()
    assert lossy.reads == lossy.losses == {"item": 2}
    assert X[0].item() == 0


def test_the_same_seed_loses_the_same_reads() -> None:
    assert [_lost_at(seed) for seed in range(8)] == [_lost_at(seed) for seed in range(8)]
    assert len({_lost_at(seed) for seed in range(8)}) > 1


def _lost_at(seed: int) -> int:
    lossy = Lossy(0.2, seed)
    with lossy, suppress(LostSignal):
        while True:
            X[0].item()
    return lossy.reads.total()


@pytest.mark.parametrize("frames", [SHORT, LONG])
def test_the_usual_loop_reads_the_device_twice_for_each_frame(frames: int) -> None:
    with Lossy(0) as lossy:
        assert len(generate(tiny_model(), frames)) == frames
    assert lossy.reads == {"item": frames, "__bool__": frames, "tolist": 1}


def test_short_output_survives_lost_signals_and_long_output_does_not() -> None:
    short, long = _survivors(SHORT), _survivors(LONG)
    assert _is_binomial(short, (1 - P) ** (2 * SHORT + 1)), short
    assert _is_binomial(long, (1 - P) ** (2 * LONG + 1)), long
    assert short > 0.7 * TRIALS
    assert long < 0.1 * TRIALS


def _survivors(frames: int) -> int:
    model = tiny_model()
    return sum(_survives(lambda: generate(model, frames), seed) for seed in range(TRIALS))


def _survives(loop: Callable[[], object], seed: int) -> bool:
    try:
        with Lossy(P, seed):
            loop()
    except LostSignal:
        return False
    return True


def _is_binomial(seen: int, expected: float) -> bool:
    """Within four standard deviations, and one trial for the steps of a count."""
    return abs(seen - TRIALS * expected) <= 4 * math.sqrt(TRIALS * expected * (1 - expected)) + 1


@pytest.mark.parametrize("frames", [SHORT, LONG])
def test_the_sync_free_loop_reads_nothing(frames: int) -> None:
    delivery = TorchDelivery()
    with Lossy(1) as lossy:
        came = run_sync_free(tiny_model(), frames, delivery)
    assert len(came) == frames
    assert lossy.reads.total() == 0


@pytest.mark.parametrize("kind", ["signal", "data"])
@pytest.mark.parametrize(("frames", "trials"), [(SHORT, 30), (LONG, 6)])
def test_the_mailbox_survives_the_same_losses_at_every_length(
    kind: Literal["signal", "data"], frames: int, trials: int
) -> None:
    model = tiny_model()
    undisturbed = _codes(model, frames, TorchDelivery())
    losses = 0
    for seed in range(trials):
        delivery = LossyDelivery(P, seed, kind, TorchDelivery())
        assert _codes(model, frames, delivery) == undisturbed
        losses += delivery.losses
    assert losses > 0


def _codes(model: torch.nn.Module, frames: int, delivery: Any) -> list[list[int]]:
    torch.manual_seed(1)
    with Lossy(P):
        came = run_sync_free(model, frames, delivery)
    assert [frame.number for frame in came] == list(range(frames))
    return [frame.codes[0].tolist() for frame in came]


HANGING = """
import itertools, threading, time, torch
from stentor.sidecar.lossy import Lossy

lossy = Lossy(1, on_loss="hang")

def tick():
    while not lossy.losses:
        time.sleep(0.01)
    for number in itertools.count():
        print(number, flush=True)
        time.sleep(0.05)

threading.Thread(target=tick, daemon=True).start()
with lossy:
    torch.zeros(1).item()
print("survived", flush=True)
"""


def test_a_lost_read_that_hangs_does_so_until_it_is_killed_and_lets_other_threads_run() -> None:
    with subprocess.Popen([sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert [child.stdout.readline() for _ in range(30)] == [f"{number}\n" for number in range(30)]
            assert child.poll() is None
        finally:
            child.kill()
    assert child.returncode not in (0, None)
