"""The GPUs that the system shows, read from files alone: no driver library is loaded and nothing is computed.

Every read takes the root folder, so that a recorded machine is a test. Knows no chip by name (chips.toml does).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")
TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One compute device as the kernel driver shows it."""

    node: int
    gfx: str  # as gfx1103


def find_gpus(root: Path = ROOT) -> list[Gpu]:
    """AMD GPUs by KFD topology node; none where the folder is missing or closed to us."""
    found = []
    for folder in _nodes(root / TOPOLOGY):
        facts = _properties(folder / "properties")
        if facts.get("gfx_target_version") and facts.get("vendor_id"):  # a CPU node has 0 in both
            found.append(Gpu(int(folder.name), gfx_name(facts["gfx_target_version"])))
    return found


def _nodes(folder: Path) -> list[Path]:
    return sorted((one for one in folder.glob("[0-9]*") if one.name.isdecimal()), key=lambda one: int(one.name))


def gfx_name(version: int) -> str:
    """The target of a KFD `gfx_target_version`: 110003 is gfx1103, 90012 is gfx90c (the step is written in hex)."""
    major, rest = divmod(version, 10_000)
    minor, step = divmod(rest, 100)
    return f"gfx{major}{minor:x}{step:x}"


def busy_percent(root: Path = ROOT) -> dict[str, int | str]:
    """The load of each card; 0 beside a thread that waits is the sign of a lost completion (facts/rocm-apu.md 0.7)."""
    return {card.parent.parent.name: _number(card) for card in root.glob("sys/class/drm/card*/device/gpu_busy_percent")}


def _number(path: Path) -> int | str:
    try:
        return int(path.read_text())
    except OSError as error:
        return f"not readable: {error.strerror}"
    except ValueError:
        return "not readable: no number"


def _properties(path: Path) -> dict[str, int]:
    try:
        words = [line.split() for line in path.read_text("ascii", "replace").splitlines()]
    except OSError:
        return {}
    return {one[0]: int(one[1]) for one in words if len(one) == 2 and one[1].isdigit()}
