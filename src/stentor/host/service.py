"""One model as this host serves it: its queue, its ladder, and the sidecars on the rungs of it.

Decides which process a request goes to, and which processes there are. Knows no HTTP, no audio and no text.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Protocol

from ..catalog import ModelSpec
from ..errors import StentorError, Unavailable
from ..journal import Status
from ..machine.gpu import find_gpus
from ..machine.profile import Profile, ladder
from ..platform import RunFolder, data_folder
from ..protocol import Hello, Loading
from ..settings import Settings
from .incidents import Incident
from .ladder import Ladder, Rung
from .life import NOTHING_YET, Death, Life
from .queue import Queue
from .sidecar import Sidecar, State

log = logging.getLogger(__name__)


class Registry(Protocol):
    """What a service needs of the host around it (supervisor.py)."""

    async def make_room(self, wanted: Service) -> None:
        """Unload what is idle, where the memory budget asks for it."""

    def mourn(self, service: Service, rung: Rung, death: Death) -> Incident:
        """Write down how a process ended."""

    def recovered(self, incident: Incident) -> None:
        """Add to it what came after."""


class Service:
    """Use `async with service.place()` for a slot, then `life` for the process to talk to, once or more."""

    def __init__(self, model: str, spec: ModelSpec, settings: Settings, folder: RunFolder, registry: Registry) -> None:
        self.model = model
        self.spec = spec
        self.queue = Queue(settings.queue_limit, spec.slots or 1)
        self.suspects = asyncio.Lock()  # one at a time of the requests under which processes keep dying
        self.known: Hello | None = None  # of the last process that could serve
        self.always = False  # load it again after a failed load without being asked
        self.used_at = 0.0  # monotonic
        self.settings = settings
        self.folder = folder
        self.incident: Incident | None = None  # the last one
        self.known_memory = 0  # bytes that its process took when it was last ready
        self._registry = registry
        self._keep_alive = settings.keep_alive if spec.keep_alive is None else spec.keep_alive
        self.ladder = Ladder(
            _profiles(spec, settings),
            most=settings.breaker_incidents,
            window=settings.breaker_window,
            pause=settings.breaker_pause,
        )
        self._sidecars = [self._make(rung) for rung in self.ladder.rungs]
        self._spare = self._make(self.ladder.rungs[-1])  # of the last rung, below which there is none
        self._closed = False
        self._loaded = False  # it is wanted now
        self._change = asyncio.Event()
        self._lifecycle = asyncio.Lock()  # a start waits for an end that is under way
        self._idle_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # --- what others see ----------------------------------------------------------------------------------------------

    @property
    def sidecars(self) -> list[Sidecar]:
        """On every rung, best first; the spare of the last rung behind them."""
        return [*self._sidecars, self._spare]

    @property
    def primary(self) -> Sidecar:
        """The sidecar that is to serve."""
        return self._sidecars[self.ladder.rungs.index(self.ladder.current)]

    @property
    def standby(self) -> Sidecar | None:
        """The sidecar kept warm to take over, where that is set."""
        if not (self.settings.standby and self.always if self.spec.standby is None else self.spec.standby):
            return None
        below = self._sidecars[self.ladder.rungs.index(self.ladder.below(self.ladder.current))]
        return self._spare if below is self.primary else below

    @property
    def hello(self) -> Hello | None:
        """Of the process that would serve now."""
        life = self._best()
        return life.hello if life else None

    @property
    def state(self) -> State:
        life = self._best()
        if life is None:
            return self.primary.state
        if life.exchanges.open:
            return State.BUSY
        return State.READY if life.profile is self.ladder.rungs[0].profile else State.DEGRADED

    @property
    def in_use(self) -> bool:
        return bool(self.queue.running or self.queue.waiting)

    @property
    def changing(self) -> bool:
        """It is being loaded or unloaded right now."""
        return self._lifecycle.locked()

    @property
    def capabilities(self) -> list[str]:
        """Of the last process that could serve; empty where none has."""
        return self.known.capabilities if self.known else []

    @property
    def loading(self) -> Loading | None:
        return self.primary.life.loading if self.primary.life else None

    @property
    def pid(self) -> int | None:
        life = self._best() or self.primary.life
        return life.pid if life else None

    @property
    def status(self) -> Status:
        """What the driver of the process of now last wrote on its status page."""
        life = self._best() or self.primary.life
        return life.status if life else NOTHING_YET

    @property
    def restarts(self) -> int:
        return sum(one.restarts for one in self.sidecars)

    @property
    def noise(self) -> int:
        return sum(one.noise for one in self.sidecars)

    @property
    def last_failure(self) -> StentorError | None:
        died = [one for one in self.sidecars if one.last_failure]
        return max(died, key=lambda one: one.not_before).last_failure if died else None

    @property
    def serves_now(self) -> str | None:
        """What serves, or will when it is loaded again; None where nothing does until somebody asks."""
        return f"{self.model} on {self.primary.rung.profile.name}" if self._loaded else None

    @property
    def memory(self) -> int:
        """Bytes resident in all of its processes."""
        return sum(one.life.memory for one in self.sidecars if one.life)

    # --- requests -----------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[Hello]:
        """A slot, and what the sidecar says of itself. Raises Busy where the queue is full, LoadFailed."""
        self._stay()
        try:
            async with self.queue.place():
                yield await self.ready()
        finally:
            self.used_at = time.monotonic()
            self._rest()

    async def ready(self) -> Hello:
        """The hello of a process that can serve, started if need be. Raises as `life`."""
        hello = (await self.life()).hello
        assert hello is not None
        return hello

    async def life(self, *, patient: bool = False) -> Life:
        """The process for a request, started if need be; a death is waited for, and so is a load.

        Raises LoadFailed where no rung loads: at once while that backs off, unless `patient`. Raises Unavailable at
        the end of the server.
        """
        known = self.primary.last_failure
        while (life := self._best()) is None:
            if self.ladder.bottom:
                await self._face_failure(known, patient)
            await self.start()
            await self._changed_within(0.25)  # `max_gap` passes without any news
        return life

    async def _face_failure(self, known: StentorError | None, patient: bool) -> None:
        """Where the last rung does not load: raise it, or wait until it may be tried again."""
        primary = self.primary
        failure = primary.last_failure
        if failure is None or primary.state not in (State.FAILED, State.LOST):
            return
        left = primary.not_before - time.monotonic()
        if primary.rung.lost or (failure is not known if patient else left > 0):
            raise failure
        if left > 0:
            await asyncio.sleep(left)

    async def _changed_within(self, seconds: float) -> None:
        if self._best() is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._change.wait(), seconds)

    def _best(self) -> Life | None:
        """The process that serves: the primary's, or while that one is away, another that is warm.

        While the primary is being restarted a lower rung waits for `max_gap`: the same numerics are worth a pause.
        """
        primary = self.primary
        if primary.ready:
            return primary.ready
        away = None if primary.died_at is None else time.monotonic() - primary.died_at
        for other in self.sidecars:
            if other.ready and (other.rung is primary.rung or away is None or away >= self.settings.max_gap):
                return other.ready
        return None

    # --- loading and unloading ----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to load, if that has not begun; does not wait for the end of it. Raises Unavailable at the very end."""
        async with self._lifecycle:
            if self._closed:
                raise Unavailable("The server is shutting down.")
            if not self.primary.running:
                await self._registry.make_room(self)
            self._loaded = True
            self._start_wanted()

    async def close(self) -> None:
        """The end of the server: whoever waits is told, and nothing starts any more."""
        self._closed = True
        self._stay()
        await self.unload()
        for task in self._tasks:
            task.cancel()

    async def unload(self, *, only_if_idle: bool = False) -> None:
        """End the processes, politely first; open requests end with an error. Only an ended process gives all back."""
        async with self._lifecycle:
            if only_if_idle and self.in_use:
                return
            self._loaded = False
            for sidecar in self.sidecars:
                if sidecar.life:
                    sidecar.life.hello = None  # whoever comes now is not sent into this process
                    sidecar.life.exchanges.fail(Unavailable(f"The model {self.model} is being unloaded."))
            await asyncio.gather(*(sidecar.stop() for sidecar in self.sidecars))
            self._on_change()

    async def recycle(self, sidecar: Sidecar) -> None:
        """A fresh process for an idle sidecar that has grown."""
        async with self._lifecycle:
            if sidecar.ready and not sidecar.ready.exchanges.owed and not self.in_use:
                await sidecar.recycle()

    def _stay(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def _rest(self) -> None:
        """Nothing to do: unload after `keep_alive` seconds; -1 keeps the model for ever."""
        self._stay()
        if self._keep_alive >= 0 and not self.in_use:
            self._idle_timer = asyncio.get_running_loop().call_later(
                self._keep_alive, lambda: self._in_background(self.unload(only_if_idle=True))
            )

    # --- the sidecars on the rungs ------------------------------------------------------------------------------------

    def _make(self, rung: Rung) -> Sidecar:
        return Sidecar(
            self.model, self.spec, rung, self.settings, self.folder, changed=self._on_change, died=self._on_death
        )

    def _start_wanted(self) -> None:
        self.primary.start()
        standby = self.standby
        if standby and (self.primary.ready or standby.rung is not self.primary.rung):
            standby.start()  # of the same rung: after the primary, so that a start is not slower with a standby

    def _on_change(self) -> None:
        """News of a sidecar: everyone who waits in `life` looks again."""
        life = self._best()
        if life and life.hello and life.hello is not self.known:
            self.known = life.hello
            self.known_memory = life.first_memory
            self.queue.resize(life.hello.slots)
            self._rest()
            self._recovered()
        if self._loaded and not self._closed:
            self._start_wanted()
            self._stop_unwanted()
        self._change.set()
        self._change = asyncio.Event()

    def _stop_unwanted(self) -> None:
        """After a rise: the rung that served meanwhile, once it has nothing to do."""
        if not self.primary.ready:
            return
        for one in self.sidecars:
            if one not in (self.primary, self.standby) and one.ready and not one.ready.exchanges.owed:
                self._in_background(one.stop())

    def _on_death(self, sidecar: Sidecar, death: Death) -> bool:
        """One process has ended. Whether this sidecar is to start another without being asked."""
        if death.kind == "lost":
            self.ladder.lost(sidecar.rung)
        else:
            self.ladder.failed(sidecar.rung, time.monotonic())
        again = sidecar in (self.primary, self.standby) and self._deserves_another(sidecar, death)
        if sidecar is self.primary and not again:
            self._loaded = False  # until the next request asks for it
        self.incident = self._registry.mourn(self, sidecar.rung, death)
        return again

    def _deserves_another(self, sidecar: Sidecar, death: Death) -> bool:
        return not sidecar.rung.lost and (death.served or self.always or not self.ladder.bottom)

    def went_on(self, pause: float) -> None:
        """A request that a death had interrupted has gone on after `pause` seconds."""
        if self.incident:
            self.incident.pause_s = max(pause, self.incident.pause_s or 0.0)
            self.incident.recovered = True
            self._registry.recovered(self.incident)

    def _recovered(self) -> None:
        """A process is ready again; where requests were open, the incident is over when they go on (`went_on`)."""
        if self.incident and not self.incident.recovered and not self.incident.open_requests:
            self.incident.recovered = True
            self._registry.recovered(self.incident)

    def settle(self) -> None:
        """Look again which sidecars there should be: a rung has been requalified, or a request has ended."""
        self._on_change()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop itself keeps no strong reference to a task
        task.add_done_callback(self._tasks.discard)


def _profiles(spec: ModelSpec, settings: Settings) -> tuple[Profile, ...]:
    gpus = find_gpus() if spec.device != "cpu" else []
    return ladder(spec.device, spec.rungs, gpus[0] if gpus else None, data_folder(settings.data_dir) / "cache")
