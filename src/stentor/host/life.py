"""One process of a sidecar, from its start to its last byte, and what there is to say of its death.

Owns the status page, the watch and the exchanges of this process. Starts no other one and retries nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from ..catalog import ModelSpec
from ..errors import LoadFailed, ProtocolError, SidecarDied, SidecarStalled, StentorError, from_code
from ..journal import Status, StatusPage
from ..machine.profile import Profile
from ..platform import RunFolder
from ..protocol import PROTOCOL, Error, FromSidecar, Hello, Loading
from ..settings import Settings
from . import evidence
from .exchange import Exchanges
from .incidents import Kind
from .process import GONE_S, SidecarProcess, command
from .watchdog import Deadlines, Stall, Watchdog

log = logging.getLogger(__name__)

WATCH_S = 0.1
NOTHING_YET = Status(0, "", 0, 0, ())


@dataclass(frozen=True, slots=True)
class Death:
    """How one process ended. `error` is what those hear who waited for it."""

    error: StentorError
    kind: Kind = "load_failed"
    served: bool = False  # it had said hello
    proved: bool = False  # it had sent audio or text
    status: Status = NOTHING_YET
    at: float = field(default_factory=time.monotonic)  # when it was noticed
    open_requests: int = 0
    texts: list[str] = field(default_factory=list)  # of the open requests, to be kept out of every report
    how: str = ""
    waited_s: float = 0.0
    pid: int | None = None
    engine: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)


class Life:
    """Run it once. `changed` is called whenever `hello` or `loading` is new."""

    def __init__(
        self, model: str, spec: ModelSpec, profile: Profile, settings: Settings, folder: RunFolder, deadlines: Deadlines
    ) -> None:
        self.profile = profile
        self.hello: Hello | None = None  # once it can serve, until it ends
        self.loading: Loading | None = None
        self.exchanges = Exchanges(folder.spool)
        self.process: SidecarProcess | None = None
        self.started = time.monotonic()
        self.first_memory = 0  # bytes, when it became ready
        self._model = model
        self._spec = spec
        self._settings = settings
        self._page_path = folder.shared / f"{quote(model, safe='')}.{uuid.uuid4().hex[:8]}.status"
        self._page = StatusPage.create(self._page_path)
        self._watchdog = Watchdog(deadlines)
        self._stall: Stall | None = None
        self._noticed: float | None = None
        self._evidence: dict[str, Any] = {}
        self._how = ""
        self._served: Hello | None = None
        self._stopping = False

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    @property
    def stalled(self) -> bool:
        return self._stall is not None

    @property
    def status(self) -> Status:
        """What the driver last wrote on its status page."""
        return self._page.read()

    @property
    def memory(self) -> int:
        """Bytes resident now; 0 where there is no process."""
        with contextlib.suppress(psutil.Error):
            return int(psutil.Process(self.pid).memory_info().rss) if self.pid else 0
        return 0

    async def run(self, changed: Callable[[], None]) -> Death:
        """Start the process and read it to its end. Whoever waits for it is told before this returns."""
        self._page.write("starting", 0, ())
        argv = command(self._model, self._spec, self.profile, self._page_path, drills=self._settings.drills)
        try:
            self.process = await SidecarProcess.spawn(argv, self.profile.environment)
        except OSError as error:
            self._how = str(error)
            return self._dead(LoadFailed(f"The sidecar of {self._model} could not be started: {error}."), "load_failed")
        lost = await self._read_to_the_end(self.process, changed)
        death = self._dead(*await self._verdict(self.process, lost))
        self.exchanges.fail(death.error)
        return death

    async def stop(self) -> None:
        """The polite way out. `run` returns then."""
        self._stopping = True
        self.hello = None
        if self.process is not None:
            await self.process.stop()

    def close(self) -> None:
        """Give the shared memory back."""
        self._page.close()
        for suffix in ("", ".stacks"):
            Path(f"{self._page_path}{suffix}").unlink(missing_ok=True)

    async def _read_to_the_end(self, process: SidecarProcess, changed: Callable[[], None]) -> bool:
        """Whether it is lost: killed, and its pipes are open all the same."""
        reading = asyncio.create_task(self._read(process, changed), name=f"read {self._model}")
        watching = asyncio.create_task(self._watch(process), name=f"watch {self._model}")
        try:
            await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({reading}, timeout=GONE_S)  # where the watch was first, it has killed the process
            return not reading.done()
        finally:
            self.hello = None  # whoever comes now waits for the next process
            process.kill()
            for task in (watching, reading):
                task.cancel()
            await asyncio.wait({watching, reading})
            if not reading.cancelled() and (failure := reading.exception()):
                raise failure

    async def _read(self, process: SidecarProcess, changed: Callable[[], None]) -> None:
        try:
            async for message in process.messages():
                self._receive(message, process)
                if isinstance(message, Hello | Loading):
                    changed()
        except ProtocolError as error:
            process.verdict = process.verdict or error
        self._noticed = self._noticed or time.monotonic()

    def _receive(self, message: FromSidecar, process: SidecarProcess) -> None:
        """Route one message."""
        match message:
            case Loading():
                self.loading = message
            case Hello():
                self._welcome(message, process)
            case Error(id=None):
                log.warning("%s: %s", self._model, message.message)
                if self.hello is None or message.code == "out_of_memory":  # the process is about to end
                    process.verdict = from_code(message.code, message.message, detail=message.detail)
            case _:
                self.exchanges.deliver(message)

    def _welcome(self, hello: Hello, process: SidecarProcess) -> None:
        if hello.protocol != PROTOCOL:
            reason = f"speaks protocol {hello.protocol}, this host {PROTOCOL}"
            process.verdict = LoadFailed(f"The sidecar of {self._model} {reason}: install one Stentor version in both.")
            process.kill()
            return
        self.loading = None
        self.hello = self._served = None if self._stopping else hello
        self.first_memory = self.memory
        log.info("%s is ready: %s on %s, numerics %s", self._model, hello.engine, hello.device.name, hello.numerics)

    async def _watch(self, process: SidecarProcess) -> None:
        """Wait for a stall, gather evidence, kill. The kill ends its stdout, and that ends everything else."""
        while self._stall is None:
            await asyncio.sleep(WATCH_S)
            if self.hello is None:
                self._stall = self._watchdog.check_load(self.loading, time.monotonic())
            else:
                self._stall = self._watchdog.check(self.status, self.exchanges.owed, time.monotonic())
        self._noticed = time.monotonic()
        message = f"The sidecar of {self._model} stalled ({self._stall}) and was killed."
        process.verdict = (SidecarStalled if self._served else LoadFailed)(message)
        self.hello = None
        self._evidence = await evidence.gather(process.pid, Path(f"{self._page_path}.stacks"))
        process.kill()

    async def _verdict(self, process: SidecarProcess, lost: bool) -> tuple[StentorError, Kind]:
        """The error and the kind of incident."""
        code = await process.ended()
        self._how = str(self._stall or _how_it_ended(code))
        if lost or code is None:
            message = f"The sidecar of {self._model} does not end on SIGKILL: its device is lost until a reboot."
            return SidecarStalled(message), "lost"
        if process.verdict is not None:
            return process.verdict, self._kind(process.verdict)
        message = f"The sidecar of {self._model} ended unexpectedly ({self._how}). It is being restarted."
        words = "\n".join(process.last_words)
        if self._served:
            return SidecarDied(message, detail=words), "died"
        return LoadFailed(message, detail=words), "load_failed"

    def _kind(self, verdict: StentorError) -> Kind:
        if not self._served:
            return "load_failed"
        return "out_of_memory" if verdict.code == "out_of_memory" else "stalled" if self._stall else "died"

    def _dead(self, error: StentorError, kind: Kind) -> Death:
        words = list(self.process.last_words) if self.process else []
        return Death(
            error=error,
            kind=kind,
            served=self._served is not None,
            proved=self.exchanges.proved,
            status=self.status,
            at=self._noticed or time.monotonic(),
            open_requests=self.exchanges.open,
            texts=self.exchanges.texts,
            how=self._how,
            waited_s=self._stall.seconds if self._stall else 0.0,
            pid=self.pid,
            engine=self._served.engine if self._served else self._spec.engine,
            evidence={**self._evidence, "stderr": words},
        )


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "SIGKILL did not end it"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
