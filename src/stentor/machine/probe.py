"""One experiment in a child process with a deadline: a device is believed when it has computed (DESIGN.md 1.6).

Owns the child and its verdict. What is computed is the child's business (sidecar/probes/).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass
from typing import Any

from .. import platform
from . import tables
from .profile import Profile

GONE_S = 2.0
KEPT = 256 * 1024  # bytes of each stream, the last ones: a child that never stops printing must not fill the host


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`step`: the last one that was begun; `why`: one sentence; `lines`: what each step reported."""

    ok: bool
    step: str
    seconds: float
    why: str
    lines: tuple[dict[str, Any], ...]
    matches: tuple[tables.Match, ...]  # lines of the child that a signature knows


async def probe(profile: Profile, deadline: float, argv: list[str] | None = None) -> ProbeResult:
    """Compute with this profile. A child that dies, stalls or cannot be started is a result, and no error.

    `argv`: another child than the compute probe. Called on the main thread, as every spawn of a child that asks Linux
    to die with its parent.
    """
    started = time.monotonic()
    try:
        process = await _spawn(profile, argv or _command(profile))
    except OSError as error:
        return ProbeResult(False, "start", 0.0, f"the probe cannot be started: {error}", (), ())
    out, errors = bytearray(), bytearray()
    reading = asyncio.gather(_read(process.stdout, out), _read(process.stderr, errors))
    try:
        async with asyncio.timeout(deadline):
            await process.wait()
            await asyncio.wait_for(asyncio.shield(reading), GONE_S)  # a grandchild may keep the pipes open
    except TimeoutError:
        pass
    finally:
        code = process.returncode  # None: it still runs
        platform.kill(process.pid)
        await _gone(process, reading)
    return _result(code, bytes(out), bytes(errors), time.monotonic() - started, deadline)


def _command(profile: Profile) -> list[str]:
    python = profile.python or sys.executable
    argv = [python, "-m", "stentor.sidecar.probes.compute", "--device", profile.device]
    return [*argv, "--parent", str(os.getpid())]


async def _spawn(profile: Profile, argv: list[str]) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1", **profile.environment},
        **platform.spawn_options(),
    )
    platform.bind_to_host(process.pid)
    return process


async def _read(stream: asyncio.StreamReader | None, into: bytearray) -> None:
    assert stream is not None
    while piece := await stream.read(65536):
        into += piece
        del into[:-KEPT]


async def _gone(process: asyncio.subprocess.Process, reading: asyncio.Future[Any]) -> None:
    """Its last words are read and it is reaped; one that even SIGKILL does not end is not waited for."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(process.wait(), reading), GONE_S)


def _result(code: int | None, out: bytes, errors: bytes, seconds: float, deadline: float) -> ProbeResult:
    lines = tuple(_steps(out))
    step = str(lines[-1].get("step", "start")) if lines else "start"
    known = tuple(tables.matches(errors.decode("utf-8", "replace").splitlines(), "stderr"))
    failed = next((one for one in lines if one.get("ok") is False), None)
    if code == 0 and failed is None and lines and lines[-1].get("ok"):  # a library may exit in mid-step, with 0
        return ProbeResult(True, step, seconds, "all steps passed", lines, known)
    why = _why(code, failed, step, deadline)
    meaning = f" ({known[0].signature.kind}: {known[0].signature.act})" if known else ""
    return ProbeResult(False, step, seconds, why + meaning, lines, known)


def _why(code: int | None, failed: dict[str, Any] | None, step: str, deadline: float) -> str:
    if code is None:
        return f"the step {step!r} did not end within {deadline:g} s"
    if failed:
        return f"the step {step!r} failed: {failed.get('detail', 'no reason given')}"
    return f"the step {step!r} ended the process with {f'signal {-code}' if code < 0 else f'exit code {code}'}"


def _steps(out: bytes) -> list[dict[str, Any]]:
    """The JSON lines of the child; what a library prints between them is none."""
    found = []
    for line in out.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            found += [value] if isinstance(value, dict) else []
    return found
