"""API keys: which routes ask for one, and how it is compared."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import Unauthorized
from ..settings import Settings
from .response import error_answer

ALWAYS_OPEN = ("/live", "/ready")
DISCOVERY = ("/v1/models", "/v1/audio/models", "/v1/audio/voices", "/v1/voices", "/health", "/metrics")


class RequireKey:
    """Asks for the key before a byte of the body is read. Without keys everyone is welcome, an empty Bearer too.

    What restart policies ask is always open; discovery is, unless locked, since Open WebUI asks without its key.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._keys = [key.get_secret_value().encode() for key in settings.api_keys]
        self._open = ALWAYS_OPEN if settings.lock_discovery else ALWAYS_OPEN + DISCOVERY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._keys or self._is_open(scope) or self._has_key(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        answer = error_answer(Unauthorized("This server asks for an API key; send it as 'Authorization: Bearer KEY'."))
        await answer(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        looks = scope["method"] in ("GET", "HEAD")
        return looks and (path in self._open or ("/v1/models" in self._open and path.startswith("/v1/models/")))

    def _has_key(self, headers: Headers) -> bool:
        """Compares in constant time, every key, whatever the first one said."""
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        matches = [hmac.compare_digest(sent.strip().encode(), key) for key in self._keys]
        return scheme.lower() == "bearer" and any(matches)
