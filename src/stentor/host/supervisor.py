"""Keeps one sidecar per model running, and carries requests to it. The registry of all of them.

Owns states, restarts and back-off. Knows no HTTP, no audio and no text: a request goes in as a protocol message, the
sidecar's messages come out, and whatever happens to the process, the stream of a request ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from enum import StrEnum

from ..catalog import ModelSpec
from ..errors import LoadFailed, ProtocolError, SidecarDied, SidecarStalled, StentorError, Unavailable, from_code
from ..journal import Status, StatusPage
from ..platform import RunFolder
from ..protocol import (
    PROTOCOL,
    Cancel,
    Cancelled,
    Done,
    Error,
    FromSidecar,
    Hello,
    Loading,
    Synthesize,
    Transcribe,
)
from ..settings import Settings
from .process import SidecarProcess, command
from .queue import Queue
from .watchdog import Watchdog

log = logging.getLogger(__name__)

Request = Synthesize | Transcribe
Build = Callable[[Hello], Request]

WATCH_S = 0.1
BACK_OFF_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)  # by failures in a row: a sidecar that cannot live is no fork bomb
SETTLED_S = 60.0  # a process that lived this long starts the count of failures anew


class State(StrEnum):
    UNLOADED = "unloaded"
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    STALLED = "stalled"
    RESTARTING = "restarting"


class Sidecar:
    """One model's sidecar through all of its processes. Requests outlive none of them; the sidecar outlives all."""

    def __init__(self, model: str, spec: ModelSpec, settings: Settings, folder: RunFolder) -> None:
        self.model = model
        self.spec = spec
        self.queue = Queue(settings.queue_limit, spec.slots or 1)
        self.restarts = 0
        self.loading: Loading | None = None
        self.last_failure: StentorError | None = None
        self._settings = settings
        self._page_path = folder.shared / f"{model.replace('/', '_')}.status"
        self._page = StatusPage.create(self._page_path)
        self._open: dict[str, asyncio.Queue[FromSidecar | StentorError]] = {}
        self._process: SidecarProcess | None = None
        self._hello: asyncio.Future[Hello] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._wanted = False
        self._state = State.UNLOADED

    @property
    def state(self) -> State:
        return State.BUSY if self._state is State.READY and self._open else self._state

    @property
    def hello(self) -> Hello | None:
        """What the running process said of itself; None while none can serve."""
        future = self._hello
        done = future is not None and future.done() and not future.cancelled() and future.exception() is None
        return future.result() if future is not None and done else None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def noise(self) -> int:
        return self._process.noise if self._process else 0

    @property
    def status(self) -> Status:
        """What the driver last wrote on its status page."""
        return self._page.read()

    def start(self) -> None:
        """Begin to load, if that has not begun; returns at once."""
        if self._keeper is None:
            self._wanted = True
            self._hello = _new_future()
            self._keeper = asyncio.create_task(self._keep(), name=f"keep {self.model}")

    async def ready(self) -> Hello:
        """The hello of a process that can serve. Raises LoadFailed, at once while a failed load backs off."""
        self.start()
        assert self._hello is not None
        return await asyncio.shield(self._hello)

    async def stream(self, build: Build) -> AsyncGenerator[FromSidecar, None]:
        """Everything the sidecar says to one request, up to `done`; close it early to cancel.

        `build` makes the request once a slot is free and the sidecar has said what it has; what it raises comes out
        here. Raises Busy where the queue is full, the error that the sidecar reported, or SidecarDied.
        """
        async with self.queue.place():
            request = build(await self.ready())
            async with contextlib.aclosing(self._exchange(request)) as messages:
                async for message in messages:
                    yield message

    async def close(self) -> None:
        """End the process, politely first; open requests end with an error."""
        self._wanted = False
        self._fail_open(Unavailable(f"The sidecar of {self.model} is being unloaded."))
        keeper, self._keeper = self._keeper, None
        if self._process is not None:
            await self._process.stop()
        if keeper is not None:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
        self._process = self._hello = None
        self._state = State.UNLOADED

    async def _exchange(self, request: Request) -> AsyncGenerator[FromSidecar, None]:
        process = self._process
        assert process is not None
        inbox: asyncio.Queue[FromSidecar | StentorError] = asyncio.Queue()
        self._open[request.id] = inbox
        ended = False
        try:
            process.send(request)
            while not ended:
                message = await inbox.get()
                ended = isinstance(message, StentorError | Done | Cancelled | Error)
                if isinstance(message, StentorError):
                    raise message
                if isinstance(message, Error):
                    raise from_code(message.code, message.message, param=message.param, detail=message.detail)
                yield message
        finally:
            del self._open[request.id]
            if not ended:
                process.send(Cancel(id=request.id))

    async def _keep(self) -> None:
        """One process after another, for as long as the sidecar is wanted."""
        failures = 0
        while True:
            self._state = State.STARTING if failures == 0 else State.RESTARTING
            started = time.monotonic()
            failure = await self._run_process()
            if not self._wanted:
                return
            failures = 1 if time.monotonic() - started > SETTLED_S else failures + 1
            self._report(failure)
            await asyncio.sleep(BACK_OFF_S[min(failures - 1, len(BACK_OFF_S) - 1)])
            self.restarts += 1
            if self._hello is None or self._hello.done():
                self._hello = _new_future()

    async def _run_process(self) -> StentorError:
        """The life of one process, from spawn to its last byte. Returns why it ended."""
        self._page.write("starting", 0, ())  # a fresh record: the last process may have left a torn one
        try:
            process = await SidecarProcess.spawn(command(self.model, self.spec, self._page_path))
        except OSError as error:
            return LoadFailed(f"The sidecar of {self.model} could not be started: {error}.")
        self._process = process
        watch = asyncio.create_task(self._watch(process), name=f"watch {self.model}")
        failure: StentorError | None = None
        try:
            async for message in process.messages():
                failure = self._receive(message) or failure
        except ProtocolError as error:
            failure = error
            process.kill()
        finally:
            watch.cancel()
            if process.returncode is None:
                process.kill()
        code = await process.ended()
        stalled = self.last_failure if self._state is State.STALLED else None
        return stalled or failure or self._death(process, code)

    def _receive(self, message: FromSidecar) -> StentorError | None:
        """Route one message; returns the failure where it ends the process's usefulness."""
        match message:
            case Loading():
                self.loading = message
            case Hello():
                return self._welcome(message)
            case Error(id=None):
                log.warning("%s: %s", self.model, message.message)
                if self.hello is None:
                    return from_code(message.code, message.message, detail=message.detail)
            case _:
                inbox = self._open.get(getattr(message, "id", ""))
                if inbox is not None:  # else the late word of a request that was cancelled
                    inbox.put_nowait(message)
        return None

    def _welcome(self, hello: Hello) -> StentorError | None:
        if hello.protocol != PROTOCOL:
            if self._process:
                self._process.kill()
            return LoadFailed(
                f"The sidecar of {self.model} speaks protocol {hello.protocol}, this host {PROTOCOL}: "
                "install the same Stentor version in both environments."
            )
        self.loading = None
        self._state = State.READY
        self.queue.resize(hello.slots)
        log.info("%s is ready: %s on %s, numerics %s", self.model, hello.engine, hello.device.name, hello.numerics)
        if self._hello is not None and not self._hello.done():
            self._hello.set_result(hello)
        return None

    async def _watch(self, process: SidecarProcess) -> None:
        """Kill the process when it stalls. The kill ends its stdout, which ends everything else."""
        watchdog = Watchdog(self._settings.frame_timeout)
        last_sign, sign = time.monotonic(), self.loading
        while True:
            await asyncio.sleep(WATCH_S)
            now = time.monotonic()
            if self._state is State.READY:
                stall = watchdog.check(self._page.read(), len(self._open), now)
                reason = f"{stall}" if stall else ""
            else:
                last_sign, sign = (last_sign, sign) if self.loading is sign else (now, self.loading)
                late = now - last_sign > self._settings.load_timeout
                reason = f"no sign of progress for {now - last_sign:.0f} s while loading" if late else ""
            if reason:
                self.last_failure = SidecarStalled(f"The sidecar of {self.model} stalled ({reason}) and was killed.")
                self._state = State.STALLED
                process.kill()
                return

    def _death(self, process: SidecarProcess, code: int) -> StentorError:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        words = "\n".join(process.last_words)
        kind = SidecarDied if self.hello is not None else LoadFailed
        return kind(f"The sidecar of {self.model} ended unexpectedly ({how}). It is being restarted.", detail=words)

    def _report(self, failure: StentorError) -> None:
        """Tell everyone who waits that this process is gone."""
        log.error("%s%s", failure.message, f"\n{failure.detail}" if failure.detail else "")
        self.last_failure = failure
        self._process = None
        self._state = State.RESTARTING
        self._fail_open(failure)
        if self._hello is not None and not self._hello.done():
            self._hello.set_exception(failure)
            self._hello.exception()  # seen: nobody may be waiting for it
        elif not isinstance(failure, LoadFailed):
            self._hello = _new_future()  # it served before: whoever comes now waits for the restart

    def _fail_open(self, error: StentorError) -> None:
        for inbox in self._open.values():
            inbox.put_nowait(error)


class Supervisor:
    """All sidecars of this host, by model id."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        self.settings = settings
        self.sidecars = {model: Sidecar(model, spec, settings, folder) for model, spec in settings.offered.items()}

    def start(self) -> None:
        """Begin to load what is wanted from the start."""
        if self.settings.preload:
            for model in (self.settings.speech_model, self.settings.transcription_model):
                self.sidecars[model].start()

    async def close(self) -> None:
        await asyncio.gather(*(sidecar.close() for sidecar in self.sidecars.values()))


def _new_future() -> asyncio.Future[Hello]:
    return asyncio.get_running_loop().create_future()
