"""The application: routes, the mapping of errors, and the life of the host side behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from .. import __version__
from ..errors import StentorError
from ..platform import RunFolder
from ..settings import Settings
from . import health, metrics, response, speech, transcription, voices
from .auth import RequireKey
from .middleware import CountRequests, LimitBody
from .state import running

MOST_BODY = 32 * 2**20  # bytes of JSON: the longest text, and a recording of some minutes to clone


class ErrorFacts(BaseModel):
    """OpenAI's error object."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(BaseModel):
    error: ErrorFacts


def create_app(settings: Settings, folder: RunFolder) -> FastAPI:
    """The ASGI application. Its sidecars start and end with its lifespan; the folder outlives it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running(settings, folder, preload=settings.preload) as state:
            app.state.stentor = state
            yield

    app = FastAPI(title="Stentor", version=__version__, lifespan=lifespan, root_path=settings.root_path)
    for module in (speech, transcription, voices, health, metrics):
        app.include_router(module.router, responses={"default": {"model": ErrorAnswer, "description": "An error."}})
    describe_without_422(app)
    app.add_exception_handler(StentorError, response.on_stentor_error)
    app.add_exception_handler(RequestValidationError, response.on_invalid_body)
    app.add_exception_handler(HTTPException, response.on_http_error)
    app.add_exception_handler(Exception, response.on_unexpected)
    app.add_middleware(LimitBody, limit=MOST_BODY, patience=settings.client_timeout)
    app.add_middleware(CountRequests)
    app.add_middleware(RequireKey, settings=settings)
    if settings.cors_origins:  # outermost, so that a browser's preflight, which brings no key, is answered
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.cors_origins, allow_methods=["*"], allow_headers=["*"]
        )
    return app


def describe_without_422(app: FastAPI) -> None:
    """FastAPI documents its own 422 for every body; here that answer is a 400 in OpenAI's shape."""
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        schema = generated()
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # the place FastAPI documents for it
