"""Profiles: with which device, environment and options a model is run; and the ladder of them, best first.

Made from the tables; what a probe has shown decides later whether one is used (host/ladder.py). Knows no process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from ..catalog import RungSpec
from . import tables
from .gpu import Gpu
from .tables import Knob

ON_TORCH_CUDA = frozenset({"rocm", "cuda", "gpu"})


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to run a model. `environment` is set before the process starts: libraries read it when imported."""

    name: str
    device: str = "cpu"
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, JsonValue] = field(default_factory=dict)  # laid over the model's own
    python: str | None = None

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu"


CPU = Profile("cpu")


def ladder(device: str, rungs: Sequence[RungSpec], gpu: Gpu | None, cache: Path) -> tuple[Profile, ...]:
    """The user's own ladder where there is one; else the device asked for, the same more safely, and the CPU."""
    if rungs:
        return tuple(Profile(one.name, one.device, one.environment, one.options, one.python) for one in rungs)
    if device == "cpu":
        return (CPU,)
    families = _families(device, gpu)
    rows = [one for one in tables.knobs() if one.set and families & set(one.applies)]
    usual = [one for one in rows if one.rung == "default"]
    return (_profile("gpu", device, usual, cache), _profile("gpu-safe", device, rows, cache), CPU)


def _profile(name: str, device: str, rows: Iterable[Knob], cache: Path) -> Profile:
    """Later rows win, so that a safe one replaces the default of the same name."""
    rows = list(rows)
    return Profile(
        name,
        torch_device(device),
        {one.name: str(one.value).replace("{cache}", str(cache)) for one in rows if one.name},
        {one.option: one.value for one in rows if one.option},
    )


def torch_device(device: str) -> str:
    """Torch's name of a device: it calls a ROCm one cuda."""
    family, _, number = device.partition(":")
    return f"cuda:{number or 0}" if family in ON_TORCH_CUDA else device


def _families(device: str, gpu: Gpu | None) -> frozenset[str]:
    """The selectors of knobs.toml that apply here.

    An AMD GPU that is here counts for "cuda" too, since torch calls it so: its variables do nothing to an NVIDIA card,
    while a missing one hangs an APU. A chip that the table lacks is taken by what was asked for.
    """
    asked = device.partition(":")[0]
    if asked not in ON_TORCH_CUDA:
        return frozenset({"any", asked})
    if gpu is None:
        return frozenset({"any", "rocm" if asked == "rocm" else "cuda"})
    known = tables.chip(gpu.gfx)
    return known.families if known else frozenset({"any", "rocm", gpu.gfx})
