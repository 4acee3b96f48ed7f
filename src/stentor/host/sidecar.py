"""One model on one rung of its ladder, through all of its processes: started, restarted with back-off, stopped.

Owns no policy: after each death its owner says whether to go on (service.py). Knows no request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from enum import StrEnum

from ..catalog import ModelSpec
from ..errors import LoadFailed, StentorError
from ..platform import RunFolder
from ..settings import Settings
from .ladder import Rung
from .life import Death, Life
from .watchdog import Deadlines

log = logging.getLogger(__name__)

BACK_OFF_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)  # by failures in a row: a sidecar that cannot live is no fork bomb
SETTLED_S = 60.0  # a process that lived this long starts the count of failures anew


class State(StrEnum):
    """Where a sidecar is; `busy` is a ready one with a request in it, `degraded` one below the best rung."""

    UNLOADED = "unloaded"
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    DEGRADED = "degraded"
    STALLED = "stalled"
    RESTARTING = "restarting"
    FAILED = "failed"  # the last load did not succeed
    LOST = "lost"  # its last process does not end


class Sidecar:
    """`life` is the process of now. `changed()` is called when there is news, `died(self, death)` after each end; it
    returns whether another process is to follow."""

    def __init__(
        self,
        model: str,
        spec: ModelSpec,
        rung: Rung,
        settings: Settings,
        folder: RunFolder,
        *,
        changed: Callable[[], None],
        died: Callable[[Sidecar, Death], bool],
    ) -> None:
        self.rung = rung
        self.life: Life | None = None
        self.last_failure: StentorError | None = None
        self.died_at: float | None = None  # monotonic; None once a process is ready again
        self.not_before = 0.0  # monotonic: a failed load is not tried again before
        self.restarts = 0
        self.noise = 0
        self._model = model
        self._spec = spec
        self._settings = settings
        self._folder = folder
        self._deadlines = Deadlines(settings.frame_timeout, settings.load_timeout)
        self._changed = changed
        self._died = died
        self._keeper: asyncio.Task[None] | None = None
        self._state = State.UNLOADED
        self._failures = 0

    @property
    def running(self) -> bool:
        """It has a process, or will have one again without being asked."""
        return self._keeper is not None

    @property
    def ready(self) -> Life | None:
        """The process, where it can serve."""
        return self.life if self.life is not None and self.life.hello is not None else None

    @property
    def state(self) -> State:
        if self.life is not None and self.life.stalled:
            return State.STALLED
        if self.ready:
            return State.BUSY if self.ready.exchanges.open else State.READY
        return self._state

    def start(self) -> None:
        """Begin to load, if that has not begun; does not wait for the end of it."""
        if self._keeper is None:
            self._state = State.STARTING
            self._keeper = asyncio.create_task(self._keep(), name=f"keep {self._model} on {self.rung.profile.name}")
            self._changed()

    async def stop(self) -> None:
        """End the process, politely first, and start none after it."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        if self.life is not None:
            await self.life.stop()
        keeper.cancel()
        await asyncio.wait({keeper})
        self._end_life()
        self._state = State.UNLOADED
        self.died_at = None
        self._changed()

    async def recycle(self) -> None:
        """A fresh process in place of one that has grown; whoever comes meanwhile waits for it."""
        await self.stop()
        self.start()

    async def _keep(self) -> None:
        """One process after another, until the owner has had enough."""
        while True:
            started = time.monotonic()
            death = await self._guarded_life()
            if self._keeper is not asyncio.current_task():  # it is being stopped
                return
            settled = death.proved or time.monotonic() - started > SETTLED_S
            self._failures = 1 if settled else self._failures + 1
            pause = BACK_OFF_S[min(self._failures - 1, len(BACK_OFF_S) - 1)]
            if not self._mourn(death, pause):
                self._keeper = None
                self._changed()
                return
            self._changed()
            await asyncio.sleep(pause)
            self.restarts += 1
            self._state = State.RESTARTING

    async def _guarded_life(self) -> Death:
        try:
            self.life = Life(self._model, self._spec, self.rung.profile, self._settings, self._folder, self._deadlines)
            return await self.life.run(self._on_news)
        except Exception as error:  # the supervisor's edge: a fault of ours must not end the keeping
            log.exception("the keeper of %s failed", self._model)
            failure = LoadFailed(
                f"The sidecar of {self._model} could not be run: {error}. The log of the server has more."
            )
            if self.life:
                self.life.exchanges.fail(failure)
            return Death(failure, how=str(error))

    def _on_news(self) -> None:
        if self.ready:
            self.died_at = None
        self._changed()

    def _mourn(self, death: Death, pause: float) -> bool:
        """Note the death and tell the owner. Whether another process is to follow."""
        log.error("%s%s", death.error.message, f"\n{death.error.detail}" if death.error.detail else "")
        self.last_failure = death.error
        self.died_at = death.at
        self.not_before = time.monotonic() + pause
        if self.life is not None and self.life.process is not None:
            self.noise += self.life.process.noise
        self._state = State.LOST if death.kind == "lost" else State.RESTARTING if death.served else State.FAILED
        again = self._died(self, death)
        self._end_life()
        return again

    def _end_life(self) -> None:
        if self.life is not None:
            self.life.close()
            self.life = None
