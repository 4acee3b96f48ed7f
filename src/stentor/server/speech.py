"""POST /v1/audio/speech: from a request body to a stream of one encoder's bytes. The main path of DESIGN.md 4."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from ..audio.pcm import Tempo
from ..audio.write import FORMATS, Encoder
from ..catalog import OPENAI_VOICES, resolve
from ..errors import DeadlinePassed, InvalidRequest, NothingToSay, TooLarge, UnknownVoice, UnsupportedOption
from ..host.service import Service
from ..host.utterance import Part, Utterance, draw_seed
from ..protocol import Hello, Reference, Synthesize, new_id
from ..text import languages
from ..text.normalise import normalise
from ..text.split import PAUSE_TAG, Pause, is_speakable, segments
from .response import Stream, Watched, ignored_fields
from .speech_request import SpeechRequest, VoiceId
from .state import ServerState, require_drills

log = logging.getLogger(__name__)
router = APIRouter()

MEDIA_TYPES: dict[str, dict[str, object]] = {kind: {} for kind in sorted({one.media_type for one in FORMATS.values()})}
MEDIA_TYPES["text/event-stream"] = {}
PIECE_S = 0.25  # encoded at a time, so that one long sentence does not hold the event loop


@router.post("/v1/audio/speech", response_class=Response, responses={200: {"content": MEDIA_TYPES}})
async def speech(body: SpeechRequest, request: Request) -> Response:
    """Speak a text; the audio is streamed as it is made."""
    state: ServerState = request.app.state.stentor
    state.note_unknown_fields(body.unknown_fields)
    require_drills(body.fault, state.settings)
    # in a thread: the grammars for Chinese take milliseconds a line, and /live must answer meanwhile
    text = await asyncio.to_thread(speakable, body, state.settings.max_input_chars)
    model = resolve(body.model, "tts", state.settings.offered, state.settings.speech_model)
    return Watched(lambda: respond(body, text, state.supervisor.services[model], state))


def speakable(body: SpeechRequest, limit: int) -> str:
    """The text as it will be spoken, pause tags included. Raises TooLarge or NothingToSay."""
    if len(body.input) > limit:
        raise TooLarge(
            f"input has {len(body.input)} characters, over the limit of {limit} (setting max_input_chars).",
            param="input",
        )
    text = normalise(body.input, languages.code(body.language), body.normalization_options)
    if not is_speakable(PAUSE_TAG.sub("", text)):
        raise NothingToSay("input holds nothing that can be spoken: no letter and no digit is left.", param="input")
    return text


async def respond(body: SpeechRequest, text: str, service: Service, state: ServerState) -> Response:
    """The response, opened once the first audible block is encoded. Raises DeadlinePassed before that."""
    seed = draw_seed() if body.seed is None else body.seed
    resumed: dict[str, str] = {}
    chunks = encoded(body, text, seed, service, state, resumed)
    if body.stream_format == "sse":
        chunks = events(chunks)
    first = await first_chunk(chunks, service, state)
    headers = {"x-stentor-seed": str(seed), "x-stentor-model": service.model, **ignored_fields(body.unknown_fields)}
    if service.known and not body.ref_audio:
        headers["x-stentor-voice"] = quote(resolve_voice(body.voice, service.known) or "")
    media_type = "text/event-stream" if body.stream_format == "sse" else FORMATS[body.response_format].media_type
    if body.stream:
        return Stream(first, chunks, media_type, headers, state.settings.client_timeout)
    content = first + b"".join([chunk async for chunk in chunks])
    return Response(content, media_type=media_type, headers={**headers, **resumed})


async def first_chunk(chunks: AsyncGenerator[bytes, None], service: Service, state: ServerState) -> bytes:
    """The first bytes of the answer. Raises DeadlinePassed, or whatever ended the work before them."""
    started = time.perf_counter()
    limit = state.settings.first_byte_timeout
    try:
        async with asyncio.timeout(limit):
            first = await anext(chunks)
    except TimeoutError as error:
        raise DeadlinePassed(f"No audio after {limit:g} s (setting first_byte_timeout); try again.") from error
    state.metrics.first_byte.labels(service.model).observe(time.perf_counter() - started)
    return first


async def encoded(
    body: SpeechRequest,
    text: str,
    seed: int,
    service: Service,
    state: ServerState,
    resumed: dict[str, str] | None = None,
) -> AsyncGenerator[bytes, None]:
    """The bytes of one encoder, from the first audible block on; closing it stops the work in the sidecar.

    Where another process had to go on, `resumed` gets the header that says so, at the end.
    """
    with spooled_reference(body, state.folder.spool) as reference:
        utterance = Utterance(service, lambda hello: parts(body, text, seed, reference, hello))
        try:
            await utterance.start()
            own_speed = "speed" in service.capabilities
            tempo = Tempo(1.0 if own_speed else body.speed, utterance.sample_rate)
            with Encoder(body.response_format, utterance.sample_rate, streamed=body.stream) as encoder:
                size = int(PIECE_S * utterance.sample_rate)
                async for block in utterance.blocks():
                    state.metrics.audio_seconds.inc(len(block) / utterance.sample_rate)
                    for at in range(0, len(block), size):
                        if data := encoder.encode(tempo.push(block[at : at + size])):
                            yield data
                        await asyncio.sleep(0)
                yield encoder.encode(tempo.finish()) + encoder.finish()
        finally:
            await utterance.close()
            if utterance.resumed:
                state.metrics.resumed.labels(str(utterance.exact).lower()).inc(utterance.resumed)
                if resumed is not None:
                    resumed["x-stentor-resumed"] = "exact" if utterance.exact else "approximate"


def parts(body: SpeechRequest, text: str, seed: int, reference: Reference | None, hello: Hello) -> list[Part]:
    """The protocol's requests between the pauses of the text, the voice resolved against what the sidecar has."""
    require_offered(body, hello)
    voice = None if reference else resolve_voice(body.voice, hello)
    speed = body.speed if "speed" in hello.capabilities else 1.0  # else `encoded` changes the tempo
    options: dict[str, object] = {"x_vector_only_mode": True} if body.x_vector_only_mode else {}
    options |= {"fault": body.fault} if body.fault else {}
    return [
        piece
        if isinstance(piece, Pause)
        else Synthesize(
            id=new_id(),
            text=piece,
            seed=seed,
            voice=voice,
            language=languages.code(body.language),
            instructions=body.instructions,
            speed=speed,
            references=[reference] if reference else [],
            options=options,
        )
        for piece in segments(text)
        if isinstance(piece, Pause) or is_speakable(piece)
    ]


def require_offered(body: SpeechRequest, hello: Hello) -> None:
    """Raises UnsupportedOption that names the field this model lacks, before the protocol's own check."""
    for field, capability, asked in (
        ("ref_audio", "clone", body.ref_audio),
        ("ref_text", "clone", body.ref_text),
        ("x_vector_only_mode", "clone", body.x_vector_only_mode),
        ("task_type", "clone", body.task_type == "Base"),
        ("task_type", "voice_design", body.task_type == "VoiceDesign"),
    ):
        if asked and capability not in hello.capabilities:
            raise UnsupportedOption(f"The model {hello.model} cannot do {field}; leave it out.", param=field)


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


@contextmanager
def spooled_reference(body: SpeechRequest, folder: Path) -> Iterator[Reference | None]:
    """The recording to clone, as a file that the sidecar decodes. Raises InvalidRequest where it is no base64."""
    if body.ref_audio is None:
        yield None
        return
    encoded_audio = body.ref_audio.partition(",")[2] if body.ref_audio.startswith("data:") else body.ref_audio
    path = folder / new_id()
    try:
        path.write_bytes(base64.b64decode(encoded_audio, validate=True))
        yield Reference(path=str(path), text=body.ref_text, language=languages.code(body.language))
    except ValueError as error:  # binascii.Error is one; text that is not ASCII raises its parent
        raise InvalidRequest(f"ref_audio is not base64: {error}.", param="ref_audio") from error
    finally:
        path.unlink(missing_ok=True)


async def events(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """OpenAI's server-sent events around the same bytes (LiveKit asks for them)."""
    try:
        async for chunk in chunks:
            if chunk:
                yield event({"type": "speech.audio.delta", "audio": base64.b64encode(chunk).decode()})
    finally:
        await chunks.aclose()
    usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    yield event({"type": "speech.audio.done", "usage": usage})


def event(body: dict[str, object]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(body).encode() + b"\n\n"
