"""One model's sidecar through all of its processes: loaded, restarted, unloaded; requests go in, messages come out.

Owns states and back-off. Knows no HTTP, no audio and no text, and not what else runs on this host (supervisor.py).
Whatever happens to a process, the exchange of every open request ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from enum import StrEnum
from urllib.parse import quote

from ..catalog import ModelSpec
from ..errors import LoadFailed, ProtocolError, SidecarDied, SidecarStalled, StentorError, Unavailable, from_code
from ..journal import Status, StatusPage
from ..platform import RunFolder
from ..protocol import (
    PROTOCOL,
    Error,
    FromSidecar,
    Hello,
    Loading,
    Synthesize,
    Transcribe,
)
from ..settings import Settings
from .exchange import Exchanges
from .process import SidecarProcess, command
from .queue import Queue
from .watchdog import Watchdog

log = logging.getLogger(__name__)

WATCH_S = 0.1
BACK_OFF_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)  # by failures in a row: a sidecar that cannot live is no fork bomb
SETTLED_S = 60.0  # a process that lived this long starts the count of failures anew


class State(StrEnum):
    """Where a sidecar is; `busy` is a ready one with a request in it."""

    UNLOADED = "unloaded"
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    STALLED = "stalled"
    RESTARTING = "restarting"
    FAILED = "failed"  # the last load did not succeed


class Sidecar:
    """Outlives its processes. Use `async with sidecar.place()` for a slot, then `exchange` once or more."""

    def __init__(self, model: str, spec: ModelSpec, settings: Settings, folder: RunFolder) -> None:
        self.model = model
        self.spec = spec
        self.queue = Queue(settings.queue_limit, spec.slots or 1)
        self.hello: Hello | None = None  # of the process that can serve now
        self.known: Hello | None = None  # of the last one that could
        self.loading: Loading | None = None
        self.last_failure: StentorError | None = None
        self.always = False  # load it again after a failed load without being asked
        self.restarts = 0
        self.noise = 0
        self._settings = settings
        self._keep_alive = settings.keep_alive if spec.keep_alive is None else spec.keep_alive
        self._page_path = folder.shared / f"{quote(model, safe='')}.status"
        self._page = StatusPage.create(self._page_path)
        self._exchanges = Exchanges(folder.spool)
        self._process: SidecarProcess | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._state = State.UNLOADED
        self._closed = False
        self._served = False  # the running process has said hello
        self._failures = 0
        self._not_before = 0.0  # monotonic time before which a failed load is not tried again
        self._change = asyncio.Event()
        self._lifecycle = asyncio.Lock()  # a start waits for an end that is under way
        self._idle_timer: asyncio.TimerHandle | None = None
        self._unloading: set[asyncio.Task[None]] = set()

    # --- what others see ----------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return State.BUSY if self._state is State.READY and self._exchanges.open else self._state

    @property
    def in_use(self) -> bool:
        return bool(self.queue.running or self.queue.waiting)

    @property
    def capabilities(self) -> list[str]:
        """Of the last process that could serve; empty where none has."""
        return self.known.capabilities if self.known else []

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def status(self) -> Status:
        """What the driver last wrote on its status page."""
        return self._page.read()

    # --- requests -----------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[Hello]:
        """A slot, and what the sidecar says of itself. Raises Busy where the queue is full, LoadFailed."""
        self._stay()
        try:
            async with self.queue.place():
                yield await self.ready()
        finally:
            self._rest()

    async def exchange(self, request: Synthesize | Transcribe) -> AsyncGenerator[FromSidecar, None]:
        """Everything the sidecar says to one request, up to `done`; close it early to cancel.

        Raises the error that the sidecar reported, SidecarDied or SidecarStalled.
        """
        started = False
        try:
            async with contextlib.aclosing(self._attempt(request)) as messages:
                async for message in messages:
                    started = True
                    yield message
        except (SidecarDied, SidecarStalled):
            if started:
                raise
            # it ended before it took the request up: nothing is lost by asking its successor, once
            async with contextlib.aclosing(self._attempt(request)) as messages:
                async for message in messages:
                    yield message

    async def _attempt(self, request: Synthesize | Transcribe) -> AsyncGenerator[FromSidecar, None]:
        """The exchange with one process."""
        await self.ready()
        assert self._process is not None  # there is no pause between `hello` and here in which it could go
        async with contextlib.aclosing(self._exchanges.run(self._process, request)) as messages:
            async for message in messages:
                yield message

    # --- loading and unloading ----------------------------------------------------------------------------------------

    async def ready(self) -> Hello:
        """The hello of a process that can serve, started if need be.

        Raises LoadFailed, at once while a failed load backs off; a death after that is waited for.
        """
        while self.hello is None:
            if self._state is State.FAILED and self.last_failure and time.monotonic() < self._not_before:
                raise self.last_failure
            await self.start()
            if self.hello is None:
                await self._change.wait()
        return self.hello

    async def start(self) -> None:
        """Begin to load, if that has not begun; does not wait for the end of it. Raises Unavailable at the very end."""
        async with self._lifecycle:
            if self._closed:
                raise Unavailable("The server is shutting down.")
            if self._keeper is None:
                self._enter(State.STARTING)
                self._keeper = asyncio.create_task(self._keep(), name=f"keep {self.model}")

    async def close(self) -> None:
        """The end of the server: whoever waits is told, and nothing starts any more."""
        self._closed = True
        self._stay()
        await self.unload()
        self._enter(State.UNLOADED)
        self._page.close()

    async def unload(self, *, only_if_idle: bool = False) -> None:
        """End the process, politely first; open requests end with an error. An ended process gives all memory back."""
        async with self._lifecycle:
            if self._keeper is None or (only_if_idle and self.in_use):
                return
            keeper, self._keeper = self._keeper, None
            self.hello = None  # whoever comes now waits for the next process, and is not sent into this one
            self._exchanges.fail(Unavailable(f"The model {self.model} is being unloaded."))
            if self._process is not None:
                await self._process.stop()
            keeper.cancel()
            await asyncio.wait({keeper})
            self._process = self.hello = self.loading = None
            self._enter(State.UNLOADED)

    def _stay(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def _rest(self) -> None:
        """Nothing to do: unload after `keep_alive` seconds; -1 keeps the model for ever."""
        self._stay()
        if self._keep_alive >= 0 and not self.in_use:
            self._idle_timer = asyncio.get_running_loop().call_later(self._keep_alive, self._unload_idle)

    def _unload_idle(self) -> None:
        task = asyncio.create_task(self.unload(only_if_idle=True), name=f"unload {self.model}")
        self._unloading.add(task)  # the loop itself keeps no strong reference to a task
        task.add_done_callback(self._unloading.discard)

    # --- the life of processes ----------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """One process after another. Ends where a load failed for a model nobody waits for."""
        while True:
            started = time.monotonic()
            failure = await self._guarded_life()
            if self._keeper is None:  # it is being unloaded
                return
            proved = self._exchanges.proved or time.monotonic() - started > SETTLED_S
            self._failures = 1 if proved else self._failures + 1
            pause = BACK_OFF_S[min(self._failures - 1, len(BACK_OFF_S) - 1)]
            self._not_before = time.monotonic() + pause
            self._mourn(failure)
            if self._state is State.FAILED and not self.always:
                self._keeper = None  # the next request tries again, once the back-off is over
                return
            await asyncio.sleep(pause)
            self.restarts += 1
            self._enter(State.RESTARTING)

    async def _guarded_life(self) -> StentorError:
        self._served = False
        self._exchanges.begin_process()
        try:
            return await self._life()
        except Exception as error:  # the supervisor's edge: a fault of ours must not end the keeping
            log.exception("the keeper of %s failed", self.model)
            return LoadFailed(f"The sidecar of {self.model} could not be run: {error}. The log of the server has more.")

    async def _life(self) -> StentorError:
        """One process, from spawn to its last byte. Returns why it ended."""
        self._page.write("starting", 0, ())  # a fresh record: the last process may have left a torn one
        try:
            process = await SidecarProcess.spawn(command(self.model, self.spec, self._page_path))
        except OSError as error:
            return LoadFailed(f"The sidecar of {self.model} could not be started: {error}.")
        self._process = process
        watch = asyncio.create_task(self._watch(process), name=f"watch {self.model}")
        try:
            async for message in process.messages():
                self._receive(message, process)
        except ProtocolError as error:
            process.verdict = process.verdict or error
        finally:
            self.hello = None  # whoever comes now waits for the next process
            watch.cancel()
            process.kill()
            self.noise += process.noise
        code = await process.ended()
        return process.verdict or self._death(process, code)

    def _receive(self, message: FromSidecar, process: SidecarProcess) -> None:
        """Route one message."""
        match message:
            case Loading():
                self.loading = message
            case Hello():
                self._welcome(message, process)
            case Error(id=None):
                log.warning("%s: %s", self.model, message.message)
                if self.hello is None:  # why the load fails; the process is about to end
                    process.verdict = from_code(message.code, message.message, detail=message.detail)
            case _:
                self._exchanges.deliver(message)

    def _welcome(self, hello: Hello, process: SidecarProcess) -> None:
        if hello.protocol != PROTOCOL:
            reason = f"speaks protocol {hello.protocol}, this host {PROTOCOL}"
            process.verdict = LoadFailed(f"The sidecar of {self.model} {reason}: install one Stentor version in both.")
            process.kill()
            return
        self.loading = None
        self._served = True
        self.hello = self.known = hello
        self.queue.resize(hello.slots)
        self._enter(State.READY)
        self._rest()
        log.info("%s is ready: %s on %s, numerics %s", self.model, hello.engine, hello.device.name, hello.numerics)

    async def _watch(self, process: SidecarProcess) -> None:
        """Kill the process when it stalls. The kill ends its stdout, and that ends everything else."""
        watchdog = Watchdog(self._settings.frame_timeout, self._settings.load_timeout)
        while True:
            await asyncio.sleep(WATCH_S)
            if self.hello is None:
                stall = watchdog.check_load(self.loading, time.monotonic())
            else:
                stall = watchdog.check(self._page.read(), self._exchanges.owed, time.monotonic())
            if stall:
                process.verdict = SidecarStalled(f"The sidecar of {self.model} stalled ({stall}) and was killed.")
                self._enter(State.STALLED)
                process.kill()
                return

    def _death(self, process: SidecarProcess, code: int) -> StentorError:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        kind = SidecarDied if self._served else LoadFailed
        words = "\n".join(process.last_words)
        return kind(f"The sidecar of {self.model} ended unexpectedly ({how}). It is being restarted.", detail=words)

    def _mourn(self, failure: StentorError) -> None:
        """Tell everyone who waits that this process is gone."""
        log.error("%s%s", failure.message, f"\n{failure.detail}" if failure.detail else "")
        self.last_failure = failure
        self._process = self.hello = self.loading = None
        self._exchanges.fail(failure)
        self._enter(State.RESTARTING if self._served else State.FAILED)

    def _enter(self, state: State) -> None:
        """Change state and wake everyone who waits in `ready`."""
        self._state = state
        self._change.set()
        self._change = asyncio.Event()
