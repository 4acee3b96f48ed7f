"""The compute probe: the smallest steps that have told a working device from one that only enumerates.

Each step is announced before it starts, so that the one that hangs or kills the process is named. A driver that
enumerates and dies at the first FP32 operation is a known case (facts/rocm-apu.md 1.4), and so is one that computes
nonsense; hence every result is compared with the CPU's.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import platform

SIZE = 256
TOLERANCES = {"float32": 1e-4, "bfloat16": 2e-2}  # relative, of a product of 256 terms
POLL_S = 10.0
QUOTED = 300  # characters of an error: torch lists every backend that it knows

Step = tuple[str, Callable[[], str]]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compute a little on a device and compare with the CPU.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--parent", type=int, help="the host's process id: die with it")
    arguments = parser.parse_args(argv)
    platform.die_with_parent(arguments.parent)
    device: str = arguments.device
    return 0 if all(run(*step) for step in (numpy_steps() if device == "cpu" else torch_steps(device))) else 1


def run(name: str, body: Callable[[], str]) -> bool:
    """One step with a line before it and one behind it. Whether it passed."""
    _say(step=name, begin=True)
    started = time.perf_counter()
    try:
        detail, ok = body(), True
    except (RuntimeError, ImportError, AssertionError, OSError, MemoryError) as error:
        traceback.print_exc()  # to stderr, where the host looks for lines that a signature knows
        detail, ok = f"{type(error).__name__}: {error}".partition("\n")[0][:QUOTED], False
    _say(step=name, ok=ok, seconds=round(time.perf_counter() - started, 3), detail=detail)
    return ok


def numpy_steps() -> Iterator[Step]:
    yield "fp32 matmul", numpy_matmul


def numpy_matmul() -> str:
    a, b = matrices()
    return compare(a @ b, a.astype(np.float64) @ b.astype(np.float64), "float32")


def torch_steps(device: str) -> Iterator[Step]:
    """Smallest first: what an earlier step needs is never found missing by a later one."""
    yield "import torch", describe_torch
    yield "allocate", lambda: allocate(device)
    yield "fp32 matmul", lambda: torch_matmul(device, "float32")
    yield "bf16 matmul", lambda: torch_matmul(device, "bfloat16")
    if device.startswith("cuda"):
        yield "event polling", lambda: poll_event(device)


def describe_torch() -> str:
    import torch

    archs = torch.cuda.get_arch_list() if torch.cuda.is_available() else []
    return f"torch {torch.__version__}, hip {torch.version.hip}, cuda {torch.version.cuda}, archs {' '.join(archs)}"


def allocate(device: str) -> str:
    import torch

    return f"{torch.zeros(SIZE, device=device).numel()} zeros on {device}"


def torch_matmul(device: str, dtype: str) -> str:
    """A product on the device against the same in float64 on the CPU, from the values that the dtype can hold."""
    import torch

    a, b = (torch.from_numpy(one).to(getattr(torch, dtype)) for one in matrices())
    seen = (a.to(device) @ b.to(device)).cpu().double().numpy()  # MPS has no float64
    return compare(seen, (a.double() @ b.double()).numpy(), dtype)


def poll_event(device: str) -> str:
    """A completion is seen by polling, which is how the decode loop will see it."""
    import torch

    event = torch.cuda.Event()
    torch.ones(SIZE, device=device).mul_(2)
    event.record(torch.cuda.current_stream(device))
    end = time.monotonic() + POLL_S
    polls = 1
    while not event.query():
        if time.monotonic() > end:
            raise TimeoutError(f"the event did not complete within {POLL_S:g} s")
        time.sleep(0.001)
        polls += 1
    return f"complete after {polls} looks"


def matrices() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    draw = np.random.default_rng(0)
    return tuple(draw.standard_normal((SIZE, SIZE)).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


def compare(seen: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], dtype: str) -> str:
    """Raises AssertionError where the largest difference is over the tolerance, or something is no number."""
    worst = float(np.max(np.abs(seen - expected)) / np.max(np.abs(expected)))
    if not worst <= TOLERANCES[dtype]:  # also true for NaN
        raise AssertionError(f"differs from the CPU by {worst:.2g} of the largest value, over {TOLERANCES[dtype]:g}")
    return f"within {worst:.2g} of the CPU"


def _say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    faulthandler.enable()  # a crash names its library
    sys.exit(main())
