"""What every route needs: settings, supervisor, metrics, the run's folders; and the one check of a key."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import Request

from ..errors import Unauthorized
from ..host.supervisor import Supervisor
from ..platform import RunFolder
from ..settings import Settings
from .metrics import Metrics


@dataclass(slots=True)
class State:
    settings: Settings
    supervisor: Supervisor
    metrics: Metrics
    folder: RunFolder

    def require_key(self, request: Request) -> None:
        """Raises Unauthorized. Compares in constant time, every key, whatever the first one said."""
        keys = [key.get_secret_value().encode() for key in self.settings.api_keys]
        if not keys:  # no key is asked for; SillyTavern's empty Bearer is welcome
            return
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        matches = [hmac.compare_digest(sent.strip().encode(), key) for key in keys]
        if scheme.lower() != "bearer" or not any(matches):
            raise Unauthorized("This server asks for an API key; send it as 'Authorization: Bearer KEY'.")


@asynccontextmanager
async def running(settings: Settings, *, preload: bool = True) -> AsyncIterator[State]:
    """The host side, alive: behind the server, and behind a command that has no server to ask."""
    folder = RunFolder()
    supervisor = Supervisor(settings, folder)
    if preload:
        supervisor.start()
    try:
        yield State(settings, supervisor, Metrics(supervisor), folder)
    finally:
        await supervisor.close()
        folder.close()
