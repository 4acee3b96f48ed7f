"""What can be seen of a sidecar that stopped making progress, gathered while it still exists, in two seconds at most.

What cannot be read is written down as "not readable" with the reason, never left out: an empty list would look clean.
Knows no request and decides nothing (watchdog.py does).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from ..machine import gpu, tables

BUDGET_S = 2.0
STACKS_S = 0.3  # for the signal to be obeyed: a loop that computes in C may block it that long
CPU_SAMPLE_S = 0.2
KERNEL_LINES = 400
MOST_THREADS = 64


async def gather(pid: int, stacks: Path) -> dict[str, Any]:
    """Python stacks, native stacks where py-spy is there, threads with their CPU use, GPU load."""
    parts = {
        "stacks": python_stacks(pid, stacks),
        "native_stacks": native_stacks(pid),
        "threads": thread_states(pid),
        "gpu_busy_percent": asyncio.to_thread(gpu.busy_percent, Path("/")),
    }
    found = await asyncio.gather(*(within_budget(part) for part in parts.values()))
    return dict(zip(parts, found, strict=True))


async def within_budget(part: Any) -> Any:
    try:
        async with asyncio.timeout(BUDGET_S):
            return await part
    except TimeoutError:
        return f"not readable: took over {BUDGET_S:g} s"
    except (OSError, psutil.Error) as error:
        return f"not readable: {error}"


async def python_stacks(pid: int, file: Path) -> list[str] | str:
    """Where every thread stands. The sidecar's C handler writes it, so a loop that is stuck in C is no obstacle."""
    if sys.platform == "win32":
        return "not readable: Windows has no such signal"
    state = psutil.Process(pid).status()
    if state in (psutil.STATUS_STOPPED, psutil.STATUS_DISK_SLEEP):
        return f"not readable: the process is in state {state}"
    os.kill(pid, signal.SIGUSR1)
    end = time.monotonic() + STACKS_S
    while time.monotonic() < end:
        await asyncio.sleep(0.02)
        if "\n" in (text := _read(file)):
            return text.splitlines()
    return "not readable: the process did not answer the signal"


async def native_stacks(pid: int) -> list[str] | str:
    """Stacks down into C, by py-spy, where it is installed and allowed to (SYS_PTRACE)."""
    program = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    if program is None:
        return "not readable: py-spy is not installed (pip install py-spy)"
    return await _output(program, "dump", "--native", "--pid", str(pid))


async def thread_states(pid: int) -> list[str]:
    """Name, state, kernel wait channel and CPU use of each thread: spinning, sleeping, stopped or stuck in a driver."""
    before = _cpu_seconds(pid)
    await asyncio.sleep(CPU_SAMPLE_S)
    after = _cpu_seconds(pid)
    busy = {one: (after[one] - before.get(one, after[one])) / CPU_SAMPLE_S for one in after}
    return [f"{_thread(pid, one)}, {busy[one]:.0%} CPU" for one in list(after)[:MOST_THREADS]]


def _cpu_seconds(pid: int) -> dict[int, float]:
    return {one.id: one.user_time + one.system_time for one in psutil.Process(pid).threads()}


def _thread(pid: int, thread: int) -> str:
    folder = Path(f"/proc/{pid}/task/{thread}")
    return f"{thread} {_read(folder / 'comm')}: state {_state(folder)}, waits in {_read(folder / 'wchan') or '-'}"


def _state(folder: Path) -> str:
    """The letter of proc(5): R, S, D, T, Z."""
    return _read(folder / "stat").rpartition(")")[2].strip()[:1] or "not readable"


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError as error:
        return f"not readable: {error.strerror}"


async def kernel_log() -> list[str] | str:
    """Lines of the kernel's log in this boot that mean trouble, each with what it means.

    Read after the kill: unlike the rest it does not go away with the process, and reading it may take a second.
    """
    if not sys.platform.startswith("linux"):
        return "not readable: only Linux has such a log"
    reasons = []
    for argv in (("journalctl", "-k", "-b", "--no-pager", "-n", str(KERNEL_LINES)), ("dmesg",)):
        if shutil.which(argv[0]) is None:
            reasons.append(f"{argv[0]} is not installed")
            continue
        lines = await _output(*argv)
        if isinstance(lines, list) and not _is_refusal(lines):
            return explained(lines[-KERNEL_LINES:], "kernel")
        reasons.append(lines if isinstance(lines, str) else " ".join(lines[:1]) or f"{argv[0]} shows no line")
    return f"not readable: {'; '.join(reasons)}"


def _is_refusal(lines: list[str]) -> bool:
    """An empty log, or a note that there is none for us: both are no evidence."""
    return not [one for one in lines if not one.startswith("-- ") and "No journal files" not in one]


def explained(lines: Iterable[str], where: tables.Where) -> list[str]:
    """The lines that a signature knows, each with its class and what to do."""
    found = tables.matches(lines, where)
    return [f"[{one.signature.kind}] {one.line.strip()} -> {one.signature.act}" for one in found]


async def _output(*argv: str) -> list[str] | str:
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, error = await process.communicate()
    finally:
        if process.returncode is None:  # out of time
            process.kill()
    if process.returncode:
        return f"not readable: {error.decode('utf-8', 'replace').strip()[:200] or f'exit code {process.returncode}'}"
    return out.decode("utf-8", "replace").splitlines()
