"""What every route needs: settings, supervisor, metrics, the run's folders; and the one check of a key."""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fastapi import Request

from ..errors import InvalidRequest, Unauthorized
from ..host.supervisor import Supervisor
from ..platform import RunFolder
from ..settings import Settings
from .metrics import Metrics

log = logging.getLogger(__name__)

MOST_NOTED = 256  # names remembered, so that a hostile client cannot fill the memory with them


@dataclass(slots=True)
class State:
    settings: Settings
    supervisor: Supervisor
    metrics: Metrics
    folder: RunFolder
    noted_fields: set[str] = field(default_factory=set)

    def require_key(self, request: Request) -> None:
        """Raises Unauthorized. Compares in constant time, every key, whatever the first one said."""
        keys = [key.get_secret_value().encode() for key in self.settings.api_keys]
        if not keys:  # no key is asked for; SillyTavern's empty Bearer is welcome
            return
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        matches = [hmac.compare_digest(sent.strip().encode(), key) for key in keys]
        if scheme.lower() != "bearer" or not any(matches):
            raise Unauthorized("This server asks for an API key; send it as 'Authorization: Bearer KEY'.")

    def require_key_to_look(self, request: Request) -> None:
        """The same for routes that only tell; open unless `lock_discovery`, since Open WebUI asks without its key."""
        if self.settings.lock_discovery:
            self.require_key(request)

    def note_unknown_fields(self, fields: list[str]) -> None:
        """Fields nobody here knows: a 400 with `strict`, else one line in the log for each name, once."""
        if fields and self.settings.strict:
            raise InvalidRequest(f"unknown field {fields[0]!r} (setting strict is on).", param=fields[0])
        for name in set(fields) - self.noted_fields:
            if len(self.noted_fields) < MOST_NOTED:
                self.noted_fields.add(name)
                log.warning("a client sent the field %r, which is ignored", name[:80])


@asynccontextmanager
async def running(settings: Settings, *, preload: bool) -> AsyncIterator[State]:
    """The host side, alive: behind the server, and behind a command that has no server to ask."""
    folder = RunFolder()
    supervisor = Supervisor(settings, folder)
    if preload:
        await supervisor.preload()
    try:
        yield State(settings, supervisor, Metrics(supervisor), folder)
    finally:
        await supervisor.close()
        folder.close()
