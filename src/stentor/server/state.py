"""What every route needs: settings, supervisor, metrics, the run's folders."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ..errors import InvalidRequest, UnsupportedOption
from ..host.supervisor import Supervisor
from ..platform import RunFolder
from ..settings import Settings
from .metrics import Metrics

log = logging.getLogger(__name__)

MOST_NOTED = 256  # names remembered, so that a hostile client cannot fill the memory with them


@dataclass(slots=True)
class ServerState:
    settings: Settings
    supervisor: Supervisor
    metrics: Metrics
    folder: RunFolder
    noted_fields: set[str] = field(default_factory=set)

    def note_unknown_fields(self, fields: list[str]) -> None:
        """Fields nobody here knows: a 400 with `strict`, else one line in the log for each name, once."""
        if fields and self.settings.strict:
            raise InvalidRequest(f"unknown field {fields[0]!r} (setting strict is on).", param=fields[0])
        for name in set(fields) - self.noted_fields:
            if len(self.noted_fields) < MOST_NOTED:
                self.noted_fields.add(name)
                log.warning("a client sent the field %r, which is ignored", name[:80])


def require_drills(fault: str | None, settings: Settings) -> None:
    """Raises UnsupportedOption for a fault that is asked of a server in earnest."""
    if fault and not settings.drills:
        raise UnsupportedOption("fault is for drills: start the server with --drills.", param="fault")


@asynccontextmanager
async def running(settings: Settings, folder: RunFolder, *, preload: bool) -> AsyncIterator[ServerState]:
    """The host side, alive: behind the server, and behind a command that has no server to ask."""
    supervisor = Supervisor(settings, folder)
    try:
        supervisor.watch()
        if preload:
            await supervisor.preload()
        yield ServerState(settings, supervisor, Metrics(supervisor), folder)
    finally:
        await supervisor.close()
