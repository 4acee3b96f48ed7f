"""POST /v1/audio/speech: from a request body to a stream of one encoder's bytes. The main path of DESIGN.md 4."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import AsyncGenerator
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.responses import Response

from ..audio.write import FORMATS, Encoder
from ..catalog import OPENAI_VOICES, resolve
from ..errors import DeadlinePassed, NothingToSay, TooLarge, UnknownVoice
from ..host.supervisor import Sidecar
from ..host.utterance import Utterance, draw_seed, new_id
from ..protocol import Hello, Synthesize
from ..text import languages
from ..text.normalise import Normalization, normalise
from ..text.split import is_speakable
from .response import Stream, Watched
from .state import State

log = logging.getLogger(__name__)
router = APIRouter()

PIECE_S = 0.25  # encoded at a time, so that one long sentence does not hold the event loop


class VoiceId(BaseModel):
    """OpenAI's form for a custom voice."""

    id: str


class SpeechRequest(BaseModel):
    """OpenAI's fields, and language, seed and stream beside them."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": True})

    input: str = Field(description="The text to speak.")
    model: str | None = Field(None, description="A model id of /v1/models; OpenAI's names mean the default.")
    voice: str | VoiceId | None = Field(None, description="A voice of /v1/audio/voices; OpenAI's mean the default.")
    instructions: str | None = Field(None, description="How to speak, for models that take it.")
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    speed: float = Field(1.0, ge=0.25, le=4.0)
    stream_format: Literal["audio", "sse"] = "audio"
    stream: bool = Field(True, description="false: one body with Content-Length and exact sizes in its header.")
    language: str | None = Field(None, description="ISO code or English name; absent: the model decides.")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Drawn and returned in X-Stentor-Seed when absent.")
    normalization_options: Normalization = Field(default_factory=Normalization)

    @field_validator("model", "voice", "instructions", "language", mode="before")
    @classmethod
    def _empty_means_absent(cls, value: Any) -> Any:
        # Home Assistant sends the text "None" for instructions that were not given (facts/serving-anchors.md A.1)
        return None if isinstance(value, str) and value.strip() in ("", "None") else value


@router.post("/v1/audio/speech", response_class=Response)
async def speech(body: SpeechRequest, request: Request) -> Response:
    """Speak a text; the audio is streamed as it is made."""
    state: State = request.app.state.stentor
    state.require_key(request)
    # in a thread: the grammars for Chinese take milliseconds a line, and /live must answer meanwhile
    text = await asyncio.to_thread(speakable, body, state.settings.max_input_chars)
    model = resolve(body.model, "tts", state.settings.offered, state.settings.speech_model)
    sidecar = state.supervisor.sidecars[model]
    return Watched(lambda: respond(body, text, sidecar, state))


def speakable(body: SpeechRequest, limit: int) -> str:
    """The text as it will be spoken. Raises TooLarge or NothingToSay."""
    if len(body.input) > limit:
        raise TooLarge(
            f"input has {len(body.input)} characters, the limit is {limit}; send it in parts.", param="input"
        )
    text = normalise(body.input, languages.code(body.language), body.normalization_options)
    if not is_speakable(text):
        raise NothingToSay("input holds nothing that can be spoken: no letter and no digit is left.", param="input")
    return text


async def respond(body: SpeechRequest, text: str, sidecar: Sidecar, state: State) -> Response:
    """The response, opened once the first audible block is encoded. Raises DeadlinePassed before that."""
    seed = draw_seed() if body.seed is None else body.seed
    utterance = Utterance(sidecar, lambda hello: message(body, text, seed, hello))
    chunks = encoded(utterance, body.response_format, body.stream, state)
    if body.stream_format == "sse":
        chunks = events(chunks)
    started = time.perf_counter()
    try:
        async with asyncio.timeout(state.settings.first_byte_timeout):
            first = await anext(chunks)
    except TimeoutError as error:
        await chunks.aclose()
        raise DeadlinePassed(
            f"No audio after {state.settings.first_byte_timeout:g} s (setting first_byte_timeout)."
        ) from error
    state.metrics.first_byte.labels(sidecar.model).observe(time.perf_counter() - started)
    headers = {"x-stentor-seed": str(seed), "x-stentor-model": sidecar.model}
    media_type = "text/event-stream" if body.stream_format == "sse" else FORMATS[body.response_format].media_type
    if body.stream:
        return Stream(first, chunks, media_type, headers, state.settings.client_timeout)
    return Response(first + b"".join([chunk async for chunk in chunks]), media_type=media_type, headers=headers)


def message(body: SpeechRequest, text: str, seed: int, hello: Hello) -> Synthesize:
    """The protocol's request, its voice resolved against what the sidecar has."""
    return Synthesize(
        id=new_id(),
        text=text,
        seed=seed,
        voice=resolve_voice(body.voice, hello),
        language=languages.code(body.language),
        instructions=body.instructions,
        speed=body.speed,
    )


def resolve_voice(voice: str | VoiceId | None, hello: Hello) -> str | None:
    """The voice's id. Raises UnknownVoice with the list: never a silent substitute but for OpenAI's own names."""
    wanted = voice.id if isinstance(voice, VoiceId) else voice
    names = [one.id for one in hello.voices]
    if wanted in names:
        return wanted
    if wanted is None or wanted in OPENAI_VOICES:
        return names[0] if names else None
    raise UnknownVoice(
        f"The model {hello.model} has no voice {wanted!r}. It has: {', '.join(names)}; "
        "OpenAI's voice names mean the first of them.",
        param="voice",
    )


async def encoded(utterance: Utterance, format: str, streamed: bool, state: State) -> AsyncGenerator[bytes, None]:
    """The bytes of one encoder, from the first audible block on; closing it stops the work in the sidecar."""
    try:
        await utterance.start()
        with Encoder(format, utterance.sample_rate, streamed=streamed) as encoder:
            size = int(PIECE_S * utterance.sample_rate)
            async for block in utterance.blocks():
                state.metrics.audio_seconds.inc(len(block) / utterance.sample_rate)
                for at in range(0, len(block), size):
                    if data := encoder.encode(block[at : at + size]):
                        yield data
                    await asyncio.sleep(0)
            yield encoder.finish()
    finally:
        await utterance.close()


async def events(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """OpenAI's server-sent events around the same bytes (LiveKit asks for them)."""
    try:
        async for chunk in chunks:
            audio = base64.b64encode(chunk).decode()
            yield _event({"type": "speech.audio.delta", "audio": audio})
    finally:
        await chunks.aclose()
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    yield _event({"type": "speech.audio.done", "usage": usage})


def _event(body: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
