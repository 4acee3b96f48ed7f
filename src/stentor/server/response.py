"""Responses that are still to be made while the client may leave. The edge where an error becomes HTTP.

Starlette's StreamingResponse notices a lost client only between two chunks, and a plain route not at all; here the
work and the watch for the client run side by side from the first moment, so that a slot is free within one block
(facts/serving-anchors.md 0.4).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from urllib.parse import quote

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ..errors import Busy, InvalidRequest, StentorError, Unavailable

log = logging.getLogger(__name__)


class Watched(Response):
    """Makes a response and sends it; all of it is cancelled in the moment the client is gone."""

    def __init__(self, make: Callable[[], Awaitable[Response]]) -> None:
        super().__init__()
        self._make = make
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._work(scope, receive, send))
        leave = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({work, leave}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        except asyncio.CancelledError:  # the server ends and waits no longer
            await _end(work, leave)
            if not self._started:
                await error_answer(Unavailable("The server is shutting down; try again."))(scope, receive, send)
        finally:
            await _end(work, leave)

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._make()
        self._started = True
        await response(scope, receive, send)


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


class Stream(Response):
    """Chunks as they are made, behind a first one that exists already. A failure never ends the stream cleanly.

    `timeout`: seconds a client may take nothing before it is cut off, or it would hold its slot for ever.
    """

    def __init__(
        self,
        first: bytes,
        rest: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str],
        timeout: float,
    ) -> None:
        super().__init__(media_type=media_type, headers={**headers, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._first = first
        self._rest = rest
        self._timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["http_version"] == "1.0":
            await self._as_a_whole(scope, receive, send)
            return
        async with contextlib.aclosing(self._rest):
            try:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await self._chunk(send, self._first)
                async for chunk in self._rest:
                    await self._chunk(send, chunk)
            except (StentorError, TimeoutError) as error:
                # No last chunk is sent, so that the client sees a broken transfer and never takes this for the whole.
                log.error("stream broken off: %s", error or f"the client took nothing for {self._timeout:g} s")
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _as_a_whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        """HTTP/1.0 has no chunks: a stream that broke off would look whole, so it gets a length or an error."""
        body = self._first + b"".join([chunk async for chunk in self._rest])
        headers = {name: value for name, value in self.headers.items() if name != "content-length"}
        await Response(body, headers=headers)(scope, receive, send)

    async def _chunk(self, send: Send, data: bytes) -> None:
        async with asyncio.timeout(self._timeout):
            await send({"type": "http.response.body", "body": data, "more_body": True})


def ignored_fields(names: list[str]) -> dict[str, str]:
    """The header that names what was ignored, escaped: a client's own text could break it or add another."""
    shown = ", ".join(quote(name[:64], safe="[]") for name in names[:16])
    return {"x-stentor-ignored": shown} if shown else {}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def error_body(error: StentorError) -> dict[str, object]:
    """OpenAI's error shape, which its SDK and Open WebUI read (facts/qwen3-asr.md 3.1)."""
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}


async def on_stentor_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StentorError)
    return error_answer(error)


def error_answer(error: StentorError) -> JSONResponse:
    """An error as the response that carries it."""
    headers = {"retry-after": str(error.retry_after)} if isinstance(error, Busy) else {}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(error_body(error), status_code=error.status, headers=headers)


async def on_invalid_body(request: Request, error: Exception) -> JSONResponse:
    """FastAPI's validation errors as one sentence that names the field."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = [str(part) for part in first["loc"] if part != "body"]
    field = "voice" if where[:1] == ["voice"] else ".".join(where) or None  # the rest names branches of its union
    malformed = first["type"] == "json_invalid"
    message = (
        f"The request is not valid JSON: {first.get('ctx', {}).get('error', first['msg'])}."
        if malformed
        else (f"{field}: {first['msg']}." if field else f"{first['msg']}.")
    )
    return await on_stentor_error(request, InvalidRequest(message, param=None if malformed else field))


async def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """404 and 405 of the router in the same shape as every other error; and ours that FastAPI wrapped."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, StentorError):  # raised while the body was read (middleware.LimitBody)
        return await on_stentor_error(request, error.__cause__)
    body = {"message": str(error.detail), "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": body}, status_code=error.status_code, headers=error.headers)


async def on_unexpected(request: Request, error: Exception) -> JSONResponse:
    """The request edge: a fault of ours is logged whole and answered without its inside."""
    log.error("unexpected error in %s %s", request.method, request.url.path, exc_info=error)
    return JSONResponse(error_body(StentorError("Stentor failed on this request; its log has the reason.")), 500)
