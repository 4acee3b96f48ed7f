"""What stands around every route: counting responses, bounding bodies. Plain ASGI, since a wrapper that reads or
collects bodies would buffer the streams.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InvalidRequest, TooLarge


class CountRequests:
    """Counts every response by route and status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "other")
                scope["app"].state.stentor.metrics.requests.labels(route, message["status"]).inc()
            await send(message)

        await self._app(scope, receive, counted)


UPLOADS = ("/v1/audio/transcriptions", "/v1/audio/translations")


class LimitBody:
    """Bounds how large a body may be and how long a client may pause in it; uploads are bounded by upload.py instead.

    Without it a JSON body would be read whole into memory, or be waited for without end. Raises inside `receive`, so
    that the route's own error handling answers.
    """

    def __init__(self, app: ASGIApp, limit: int, patience: float) -> None:
        self._app = app
        self._limit = limit
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_upload(scope):
            await self._app(scope, receive, send)
            return
        received = 0
        complete = False

        async def bounded() -> Message:
            nonlocal received, complete
            if complete:  # what comes now is the news that the client left, which may be waited for
                return await receive()
            message = await self._arrival(receive)
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > self._limit:
                raise TooLarge(f"The body is over {self._limit // 2**20} MiB; send the text in parts.")
            return message

        await self._app(scope, bounded, send)

    async def _arrival(self, receive: Receive) -> Message:
        try:
            async with asyncio.timeout(self._patience):
                return await receive()
        except TimeoutError as error:
            raise InvalidRequest(f"Nothing of the body arrived for {self._patience:g} s.") from error


def _is_upload(scope: Scope) -> bool:
    """By the route, never by the content type: a form sent to another route is read by nobody who bounds it."""
    return bool(scope["path"].removeprefix(scope.get("root_path", "")) in UPLOADS)
