"""The registry of everything this host serves: memory, requalification and incidents across all models.

Knows which models there are, not what is said to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

from ..machine.probe import probe
from ..platform import RunFolder, data_folder
from ..settings import Settings
from . import evidence
from .incidents import Incident, Kind, scrub_all
from .ladder import Rung
from .life import Death
from .notify import notify
from .service import Service
from .sidecar import Sidecar
from .store import IncidentStore

log = logging.getLogger(__name__)

TICK_S = 1.0
PROBE_S = 120.0
SENTENCE_S = 15.0
UNKNOWN_MB = 300  # of a model that was never loaded here: a bundled one takes about that
MIB = 2**20


class Supervisor:
    """All services, by model id; each is there from the start, loaded or not."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        self.settings = settings
        self.store = IncidentStore(data_folder(settings.data_dir))
        self.services = {
            model: Service(model, spec, settings, folder, self) for model, spec in settings.offered.items()
        }
        self._tasks: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Lock()
        self._over: dict[str, asyncio.Event] = {}  # by incident: something serves again

    async def preload(self) -> None:
        """Begin to load the two default models, and keep at it."""
        for model in (self.settings.speech_model, self.settings.transcription_model):
            self.services[model].always = True
            await self.services[model].start()

    def watch(self) -> None:
        """Begin to look after what takes longer than a request: growth, and rungs that may serve again."""
        self.store.open()
        self._in_background(self._look_after())

    async def close(self) -> None:
        """End every process, and wait for what is still being written down."""
        await asyncio.gather(*(service.close() for service in self.services.values()))
        for over in self._over.values():  # nothing will serve again: the sentences are written as they are
            over.set()
        for task in self._tasks:
            if task.get_name() == "look after":
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.store.close()

    # --- memory -------------------------------------------------------------------------------------------------------

    async def make_room(self, wanted: Service) -> None:
        """Unload idle models, the longest unused first, until this one fits into the budget."""
        budget = self.settings.memory_budget_mb * MIB
        while budget and self._memory() + (wanted.known_memory or UNKNOWN_MB * MIB) > budget:
            others = (one for one in self.services.values() if one is not wanted and one.memory)
            idle = [one for one in others if not one.in_use and not one.changing]  # else two could wait for each other
            if not idle:
                log.warning("%s is loaded beyond memory_budget_mb: nothing idle is left to unload", wanted.model)
                return
            oldest = min(idle, key=lambda one: one.used_at)
            log.info("%s is unloaded to make room for %s", oldest.model, wanted.model)
            await oldest.unload(only_if_idle=True)

    def _memory(self) -> int:
        return sum(one.memory for one in self.services.values())

    async def _look_after(self) -> None:
        asyncio.current_task().set_name("look after")  # type: ignore[union-attr]
        while True:
            await asyncio.sleep(TICK_S)
            try:
                for service in self.services.values():
                    await self._recycle_grown(service)
                    await self._requalify(service)
            except Exception:  # the supervisor's edge: looking after must not end
                log.exception("looking after the sidecars failed; it is tried again")

    async def _recycle_grown(self, service: Service) -> None:
        most = self.settings.recycle_mb * MIB
        for sidecar in service.sidecars:
            life = sidecar.ready
            if most and life and not service.in_use and life.first_memory and life.memory > life.first_memory + most:
                grown = (life.memory - life.first_memory) // MIB
                log.warning("the idle process of %s has grown by %d MiB; a fresh one replaces it", service.model, grown)
                await self._note_recycled(service, sidecar, grown)
                await service.recycle(sidecar)

    async def _note_recycled(self, service: Service, sidecar: Sidecar, grown: int) -> None:
        how, pid = f"it had grown by {grown} MiB", sidecar.life.pid if sidecar.life else None
        incident = _incident(service, sidecar.rung, "recycled", how=how, pid=pid, action="replaced while it was idle")
        incident.recovered = True
        self._over[incident.id] = asyncio.Event()
        self._over[incident.id].set()
        await self._write_down(incident)

    # --- the way back up ----------------------------------------------------------------------------------------------

    async def _requalify(self, service: Service) -> None:
        """A rung that was put aside long enough is probed, alone on its device; where that passes it serves again."""
        rung = service.ladder.due(time.monotonic())
        if rung is None or self._others_on(rung.profile.device, service):
            return
        result = await probe(rung.profile, PROBE_S)
        if result.ok:
            log.info("%s passed its probe on %s and serves there again", service.model, rung.profile.name)
            service.ladder.requalified(rung)
            service.settle()
        else:
            log.warning("%s stays off %s: %s", service.model, rung.profile.name, result.why)
            service.ladder.refused(rung, time.monotonic())

    def _others_on(self, device: str, service: Service) -> bool:
        others = (one for one in self.services.values() if one is not service)
        return device != "cpu" and any(
            sidecar.life and sidecar.rung.profile.device == device for one in others for sidecar in one.sidecars
        )

    # --- incidents ----------------------------------------------------------------------------------------------------

    def mourn(self, service: Service, rung: Rung, death: Death) -> Incident:
        """Write down how a process ended; the rest of it is added once it is known."""
        last = service.incident
        if death.kind == "load_failed" and last and last.kind == "load_failed" and not last.recovered:
            return last  # the same one, tried again with back-off: one row and one notification
        incident = _incident(
            service,
            rung,
            death.kind,
            how=death.how,
            pid=death.pid,
            action="killed" if death.kind in ("stalled", "lost") else "",
            engine=death.engine,
            phase=death.status.phase,
            unit=death.status.unit,
            waited_s=death.waited_s,
            open_requests=death.open_requests,
        )
        self._over[incident.id] = asyncio.Event()
        self._in_background(self._tell(incident, death))
        return incident

    def recovered(self, incident: Incident) -> None:
        """A request went on, or a process is ready again: what speaks now is known."""
        if incident.id in self._over:
            self._over[incident.id].set()
        self._in_background(self._update(incident))

    async def _update(self, incident: Incident) -> None:
        async with self._writing:
            await asyncio.to_thread(self.store.update, incident)

    async def _tell(self, incident: Incident, death: Death) -> None:
        secrets = [one.get_secret_value() for one in self.settings.api_keys]
        kernel = await evidence.within_budget(evidence.kernel_log())
        words = death.evidence.get("stderr", [])
        found = {**death.evidence, "kernel_log": kernel, "signatures": evidence.explained(words, "stderr")}
        incident.evidence = scrub_all(found, secrets, death.texts)
        await self._write_down(incident)

    async def _write_down(self, incident: Incident) -> None:
        async with self._writing:  # SQLite waits for the disk and for another host: not on the event loop
            await asyncio.to_thread(self.store.add, incident)
        with contextlib.suppress(TimeoutError):  # the sentence says what speaks now, so it waits until something does
            await asyncio.wait_for(self._over[incident.id].wait(), SENTENCE_S)
        del self._over[incident.id]
        log.warning("%s", incident.sentence())
        url = self.settings.notify_url.get_secret_value()
        if url:
            self._in_background(notify(url, incident))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop itself keeps no strong reference to a task
        task.add_done_callback(self._tasks.discard)


def _incident(service: Service, rung: Rung, kind: Kind, **facts: Any) -> Incident:
    retry_in = service.ladder.retry_in(time.monotonic())
    known = retry_in is not None and retry_in < float("inf")
    return Incident(
        at=datetime.now(UTC),
        model=service.model,
        rung=rung.profile.name,
        device=rung.profile.device,
        kind=kind,
        listens=service.spec.kind == "stt",
        gpu_retry_at=datetime.now(UTC) + timedelta(seconds=retry_in or 0) if known else None,
        speaks_now=service.serves_now,
        **facts,
    )
