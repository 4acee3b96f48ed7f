"""Who speaks for `say`: the server at the configured address, else a sidecar of its own. Either way a stream of bytes.

Knows no file, no player and no terminal.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from ..catalog import resolve
from ..settings import Settings
from .connection import client, reached, require_ok, running_server

if TYPE_CHECKING:
    from ..host.service import Service
    from ..server.speech_request import SpeechRequest


@dataclass(slots=True)
class Speaking:
    """A text that is being spoken. `voice` is known with the first chunk, where the server says it."""

    model: str | None
    seed: int | None
    voice: str | None
    chunks: AsyncGenerator[bytes, None]


@contextlib.asynccontextmanager
async def speaking(settings: Settings, body: SpeechRequest) -> AsyncIterator[Speaking]:
    """The encoded audio as it is made; leaving ends the work. Raises what the server or the sidecar reports."""
    base = running_server(settings)
    source = _remote_speech(base, settings, body) if base else _own_speech(settings, body)
    async with source as speech, contextlib.aclosing(speech.chunks):
        yield speech


@contextlib.asynccontextmanager
async def _remote_speech(base: str, settings: Settings, body: SpeechRequest) -> AsyncIterator[Speaking]:
    request = body.model_dump(mode="json", exclude_unset=True)
    with reached(base):
        async with client(base, settings) as http, http.stream("POST", "/v1/audio/speech", json=request) as response:
            await require_ok(response)
            said = response.headers
            seed = said.get("x-stentor-seed")
            voice = said.get("x-stentor-voice", body.voice)
            yield Speaking(said.get("x-stentor-model"), int(seed) if seed else None, voice, _bytes(response))


async def _bytes(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    async for chunk in response.aiter_bytes():
        yield chunk


@contextlib.asynccontextmanager
async def _own_speech(settings: Settings, body: SpeechRequest) -> AsyncIterator[Speaking]:
    # the whole host side, which a command that asks a server has no use for
    from ..host.utterance import draw_seed
    from ..platform import RunFolder
    from ..server.speech import encoded, speakable
    from ..server.state import running

    text = speakable(body, settings.max_input_chars)
    model = resolve(body.model, "tts", settings.offered, settings.speech_model)
    seed = draw_seed() if body.seed is None else body.seed
    with RunFolder() as folder:
        async with running(settings, folder, preload=False) as state:
            service = state.supervisor.services[model]
            speech = Speaking(model, seed, None, encoded(body, text, seed, service, state))
            speech.chunks = _naming_the_voice(speech, speech.chunks, body, service)
            yield speech


async def _naming_the_voice(
    speech: Speaking, chunks: AsyncGenerator[bytes, None], body: SpeechRequest, service: Service
) -> AsyncGenerator[bytes, None]:
    """The chunks; with the first one there is a sidecar that has said which voices it has."""
    from ..server.speech import resolve_voice

    async with contextlib.aclosing(chunks):
        async for chunk in chunks:
            if speech.voice is None and service.known is not None:
                speech.voice = resolve_voice(body.voice, service.known)
            yield chunk
