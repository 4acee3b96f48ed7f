"""Who does the work of `say` and `transcribe`: the server at the configured address, else a sidecar of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import httpx

from ..catalog import resolve
from ..errors import StentorError, from_code
from ..host.utterance import Hearing, draw_seed, new_id
from ..protocol import Hello, Transcribe
from ..server.speech import encoded, speakable
from ..server.speech_request import SpeechRequest
from ..server.state import running
from ..settings import Settings

PROBE_S = 0.5


def running_server(settings: Settings) -> str | None:
    """The address of a live Stentor, if one answers where the settings say."""
    base = f"http://{settings.host}:{settings.port}"
    try:
        answer = httpx.get(f"{base}/live", timeout=PROBE_S, trust_env=False)
        return base if answer.status_code == 200 and answer.json() == {"status": "alive"} else None
    except (httpx.HTTPError, json.JSONDecodeError, httpx.InvalidURL):
        return None


async def speech(settings: Settings, body: SpeechRequest) -> AsyncGenerator[bytes, None]:
    """The encoded audio as it is made. Raises what the server or the sidecar reports."""
    base = running_server(settings)
    source = _remote_speech(base, settings, body) if base else _own_speech(settings, body)
    async with contextlib.aclosing(source):
        async for chunk in source:
            yield chunk


async def transcription(settings: Settings, paths: list[Path], fields: dict[str, str]) -> AsyncIterator[str]:
    """The text of each file, in order. Raises what the server or the sidecar reports."""
    base = running_server(settings)
    source = _remote_texts(base, settings, paths, fields) if base else _own_texts(settings, paths, fields)
    async with contextlib.aclosing(source):
        async for text in source:
            yield text


async def _remote_speech(base: str, settings: Settings, body: SpeechRequest) -> AsyncGenerator[bytes, None]:
    async with _client(base, settings) as client:
        request = body.model_dump(mode="json", exclude_none=True)
        async with client.stream("POST", "/v1/audio/speech", json=request) as response:
            await _require_ok(response)
            async for chunk in response.aiter_bytes():
                yield chunk


async def _own_speech(settings: Settings, body: SpeechRequest) -> AsyncGenerator[bytes, None]:
    text = speakable(body, settings.max_input_chars)
    model = resolve(body.model, "tts", settings.offered, settings.speech_model)
    seed = draw_seed() if body.seed is None else body.seed
    async with running(settings, preload=False) as state:
        sidecar = state.supervisor.sidecars[model]
        async with contextlib.aclosing(encoded(body, text, seed, sidecar, state)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _remote_texts(
    base: str, settings: Settings, paths: list[Path], fields: dict[str, str]
) -> AsyncGenerator[str, None]:
    async with _client(base, settings) as client:
        for path in paths:
            with path.open("rb") as file:
                response = await client.post("/v1/audio/transcriptions", data=fields, files={"file": (path.name, file)})
            await _require_ok(response)
            yield str(response.json()["text"])


async def _own_texts(settings: Settings, paths: list[Path], fields: dict[str, str]) -> AsyncGenerator[str, None]:
    model = resolve(fields.get("model"), "stt", settings.offered, settings.transcription_model)
    async with running(settings, preload=False) as state:
        for path in paths:
            request = Transcribe(
                id=new_id(),
                path=str(path.resolve()),
                language=fields.get("language"),
                context=fields.get("prompt"),
                options={"limits": {"max_seconds": settings.max_audio_seconds}},
            )
            transcript = await Hearing(state.supervisor.sidecars[model], _always(request)).whole()
            yield transcript.text.strip()


def _always(request: Transcribe) -> Callable[[Hello], Transcribe]:
    return lambda _: request


def _client(base: str, settings: Settings) -> httpx.AsyncClient:
    keys = settings.api_keys
    headers = {"authorization": f"Bearer {keys[0].get_secret_value()}"} if keys else {}
    return httpx.AsyncClient(base_url=base, headers=headers, timeout=None, trust_env=False)


async def _require_ok(response: httpx.Response) -> None:
    """Raises the server's error as the class it was there."""
    if response.status_code == 200:
        return
    body = await response.aread()
    try:
        error = json.loads(body)["error"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise StentorError(f"the server answered {response.status_code}: {body[:200]!r}") from None
    raise from_code(str(error.get("code")), str(error.get("message")), param=error.get("param"))


def drain(source: AsyncIterator[bytes], sink: Path) -> int:
    """Write a stream to a file that appears under its name only when it is whole. Returns its bytes."""

    async def copy() -> int:
        part = sink.with_name(f"{sink.name}.part")
        written = 0
        try:
            with part.open("wb") as file:
                async for chunk in source:
                    written += file.write(chunk)
            part.replace(sink)
        finally:
            part.unlink(missing_ok=True)
        return written

    return asyncio.run(copy())
