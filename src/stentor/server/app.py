"""The application: routes, the mapping of errors, and the life of the host side behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from ..errors import StentorError
from ..settings import Settings
from . import health, metrics, response, speech, transcription, voices
from .state import running


def create_app(settings: Settings) -> FastAPI:
    """The ASGI application. Its sidecars start and end with its lifespan."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running(settings, preload=settings.preload) as state:
            app.state.stentor = state
            yield

    app = FastAPI(title="Stentor", version=__version__, lifespan=lifespan, root_path=settings.root_path)
    for module in (speech, transcription, voices, health, metrics):
        app.include_router(module.router)
    app.add_exception_handler(StentorError, response.on_stentor_error)
    app.add_exception_handler(RequestValidationError, response.on_invalid_body)
    app.add_exception_handler(HTTPException, response.on_http_error)
    app.add_exception_handler(Exception, response.on_unexpected)
    app.add_middleware(CountRequests)
    if settings.cors_origins:  # outermost, so that a browser's preflight, which brings no key, is answered
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.cors_origins, allow_methods=["*"], allow_headers=["*"]
        )
    return app


class CountRequests:
    """Counts every response by route and status. Plain ASGI: a middleware that wraps the body would buffer streams."""

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
