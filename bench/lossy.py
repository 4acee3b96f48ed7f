"""`python -m bench.lossy`: the usual loop and the sync-free one under lost signals, as a table. Needs torch.

A simulation on torch's CPU build: what it shows is the arithmetic of lost reads, and that the mailbox carries on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from tests.sidecar.generate_loop import TinyModel, TorchDelivery, generate, run_sync_free, tiny_model

from stentor.decoder.mailbox import Delivery, MailboxGap, MailboxStall
from stentor.sidecar.lossy import Lossy, LostSignal
from stentor.sidecar.lossy_delivery import LossyDelivery

LENGTHS = (4, 16, 64, 256)
COLUMNS = ("loop", "frames", "reads/frame", "p", "trials", "losses", "expected survival", "seen survival")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one trial. `survived`: the whole output came, bit for bit."""

    survived: bool
    losses: int
    reads: int


Trial = Callable[[float, int], Outcome]
"""Of a probability and a seed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--p", type=float, default=0.02, help="how likely a read or a copy is to be lost")
    parser.add_argument("--trials", type=int, default=200, help="of the usual loop; the mailbox gets a tenth")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    model = tiny_model()
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    for frames in LENGTHS:
        print_row("reads each token", frames, wanted.p, wanted.trials, reading(model, frames))
    for kind in ("signal", "data"):
        for frames in LENGTHS:
            print_row(f"mailbox, {kind} lost", frames, wanted.p, wanted.trials // 10, posting(model, frames, kind))


def reading(model: TinyModel, frames: int) -> Trial:
    def trial(p: float, seed: int) -> Outcome:
        lossy = Lossy(p, seed)
        try:
            with lossy:
                survived = len(generate(model, frames)) == frames
        except LostSignal:
            survived = False
        return Outcome(survived, lossy.losses.total(), lossy.reads.total())

    return trial


def posting(model: TinyModel, frames: int, kind: Literal["signal", "data"]) -> Trial:
    undisturbed = codes(model, frames, TorchDelivery())

    def trial(p: float, seed: int) -> Outcome:
        delivery = LossyDelivery(p, seed, kind, TorchDelivery())
        lossy = Lossy(p, seed)
        try:
            with lossy:
                survived = codes(model, frames, delivery) == undisturbed
        except (LostSignal, MailboxStall, MailboxGap):
            survived = False
        return Outcome(survived, delivery.losses + lossy.losses.total(), lossy.reads.total())

    return trial


def codes(model: TinyModel, frames: int, delivery: Delivery) -> list[list[int]]:
    torch.manual_seed(1)
    return [frame.codes[0].tolist() for frame in run_sync_free(model, frames, delivery)]


def print_row(loop: str, frames: int, p: float, trials: int, trial: Trial) -> None:
    reads = trial(0.0, 0).reads
    outcomes = [trial(p, seed) for seed in range(trials)]
    losses = sum(one.losses for one in outcomes)
    seen = sum(one.survived for one in outcomes) / trials
    cells = (loop, frames, f"{reads / frames:.2f}", p, trials, losses, f"{(1 - p) ** reads:.3f}", f"{seen:.3f}")
    print("| " + " | ".join(str(one) for one in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
