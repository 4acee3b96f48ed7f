"""One sidecar process: its pipes, its last words, its end. Knows the protocol's framing and nothing of requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from .. import platform
from ..catalog import ModelSpec
from ..errors import ProtocolError, StentorError
from ..machine.profile import Profile
from ..protocol import MAX_LINE, FromSidecar, Shutdown, ToSidecar, decode_reply, encode

log = logging.getLogger(__name__)

STDERR_LINES = 200
SHUTDOWN_GRACE_S = 2.0
TERMINATE_GRACE_S = 1.0
GONE_S = 2.0  # SIGKILL ends a process at once, unless it is stuck in a driver (state D): then never

# What every sidecar is started with. A library must never fetch a model behind the user's back, and text that is not
# ASCII must survive a C locale.
BASE_ENVIRONMENT: Mapping[str, str] = {
    "PYTHONUTF8": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONNOUSERSITE": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def command(model: str, spec: ModelSpec, profile: Profile, status: Path, *, drills: bool = False) -> list[str]:
    """The argument vector of a sidecar; docs/protocol.md shows the same line for use by hand."""
    argv = [profile.python or spec.python or sys.executable, "-m", "stentor.sidecar.main", spec.kind]
    argv += ["--engine", spec.engine, "--model", model, "--device", profile.device]
    argv += ["--status", str(status), "--parent", str(os.getpid())]
    argv += ["--path", spec.path] if spec.path else []
    argv += ["--slots", str(spec.slots)] if spec.slots else []
    argv += ["--drills"] if drills else []
    return [*argv, "--options", json.dumps({**spec.options, **profile.options})]


class SidecarProcess:
    """A running child. `messages` must be read to its end by one reader: the host always drains a sidecar."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.noise = 0
        self.verdict: StentorError | None = None  # why the host killed it, where it did
        self.last_words: deque[str] = deque(maxlen=STDERR_LINES)
        self._stderr = asyncio.create_task(self._drain_stderr())

    @classmethod
    async def spawn(cls, argv: list[str], environment: Mapping[str, str] | None = None) -> SidecarProcess:
        """Start a child. Raises OSError where the interpreter cannot be started.

        Called on the event loop's own thread, the main one: Linux ties PR_SET_PDEATHSIG to the spawning thread.
        """
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MAX_LINE + 1,
            env={**os.environ, **BASE_ENVIRONMENT, **(environment or {})},
            **platform.spawn_options(),
        )
        platform.bind_to_host(process.pid)
        return cls(process)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def send(self, message: ToSidecar) -> None:
        """Queue a message for the child; one that has died is found by the reader of `messages`."""
        assert self._process.stdin is not None
        line = encode(message)
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._process.stdin.write(line)

    async def messages(self) -> AsyncIterator[FromSidecar]:
        """All that the child says until its stdout ends. Noise is counted and logged, never fatal.

        Raises ProtocolError for a line over the limit, after which the stream cannot be trusted.
        """
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError as error:
                raise ProtocolError(f"the sidecar wrote a line over {MAX_LINE} bytes") from error
            if not line:
                return
            try:
                yield decode_reply(line)
            except ProtocolError as error:
                self.noise += 1
                log.warning("sidecar %d: noise on stdout: %s", self.pid, error.message)

    async def ended(self, within: float = GONE_S) -> int | None:
        """The exit code, once stderr has been read to its end; None for a process that even SIGKILL does not end."""
        try:
            code = await asyncio.wait_for(self._process.wait(), within)
        except TimeoutError:
            self._stderr.cancel()
            self._process._transport.close()  # type: ignore[attr-defined]  # asyncio has no public way to let a child go
            return None
        with contextlib.suppress(asyncio.TimeoutError):  # a grandchild may keep stderr open
            await asyncio.wait_for(asyncio.shield(self._stderr), 0.5)
        self._stderr.cancel()
        return code

    def kill(self) -> None:
        """SIGKILL, at once."""
        if self._process.returncode is None:
            platform.kill(self.pid)

    async def stop(self) -> None:
        """The polite way out, and the others behind it: `shutdown`, stdin closed, SIGTERM, SIGKILL."""
        self.send(Shutdown())
        assert self._process.stdin is not None
        self._process.stdin.close()
        if await self._gone_within(SHUTDOWN_GRACE_S):
            return
        platform.terminate(self.pid)
        if await self._gone_within(TERMINATE_GRACE_S):
            return
        self.kill()
        await self._gone_within(SHUTDOWN_GRACE_S)

    async def _gone_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _drain_stderr(self) -> None:
        """Always read, or a full pipe would stop the child (the second seed's ASR child)."""
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError):  # one endless line: give up reading it as lines
            while line := await self._process.stderr.readline():
                text = line.decode("utf-8", "replace").rstrip()
                self.last_words.append(text)
                log.debug("sidecar %d: %s", self.pid, text)
        while await self._process.stderr.read(65536):
            continue
