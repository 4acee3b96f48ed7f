"""POST /v1/audio/transcriptions and /translations: an upload is understood in a sidecar and answered as asked.

Owns the fields of OpenAI's form and its events. The upload is received by upload.py and the answer's shape is
transcript.py's; nothing here decodes audio.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from ..catalog import resolve
from ..errors import StentorError, TooLarge, UndecodableAudio
from ..host.service import Service
from ..host.utterance import Hearing, Transcript
from ..protocol import Hello, Transcribe, new_id
from ..settings import Settings
from ..text import languages
from .form import FORM_SCHEMA, TranscriptionRequest
from .response import Stream, Watched, error_body, ignored_fields
from .state import ServerState, require_drills
from .transcript import MEDIA_TYPES, Task, render, usage
from .upload import Upload, receive

router = APIRouter()

SHORTEST_S = 0.1  # OpenAI refuses less, too: nothing can be said in it, and models invent words for it


@router.post("/v1/audio/transcriptions", response_class=Response, openapi_extra=FORM_SCHEMA)
async def transcription(request: Request) -> Response:
    """Understand an audio or video file of any container."""
    return await answer(request, "transcribe")


@router.post("/v1/audio/translations", response_class=Response, openapi_extra=FORM_SCHEMA)
async def translation(request: Request) -> Response:
    """Understand a recording in any language the model has, as English text."""
    return await answer(request, "translate")


async def answer(request: Request, task: Task) -> Response:
    state: ServerState = request.app.state.stentor
    settings = state.settings
    try:
        upload = await receive(request, state.folder.spool, settings.max_upload_mb * 2**20, settings.client_timeout)
    except TooLarge as error:
        return _refusal(error, request)
    with contextlib.ExitStack() as undo:
        undo.enter_context(upload)
        wanted, unknown = TranscriptionRequest.read(upload.fields)
        state.note_unknown_fields(unknown)
        require_drills(wanted.fault, settings)
        model = resolve(wanted.model, "stt", settings.offered, settings.transcription_model)
        service = state.supervisor.services[model]
        headers = {"x-stentor-model": model, **ignored_fields(unknown)}
        undo.pop_all()  # from here on the response removes the file
    return Watched(lambda: respond(upload, wanted, task, service, state, headers))


async def respond(
    upload: Upload,
    wanted: TranscriptionRequest,
    task: Task,
    service: Service,
    state: ServerState,
    headers: dict[str, str],
) -> Response:
    """The response; a stream is opened with its first event, so that what fails before it is an HTTP error."""
    hearing = Hearing(service, lambda hello: message(wanted, task, upload.path, state.settings, hello))
    if wanted.stream:
        chunks = events(hearing, upload, state)
        first = await anext(chunks)
        return Stream(first, chunks, "text/event-stream", headers, state.settings.client_timeout)
    with upload:
        transcript = await hearing.whole()
    require_length(transcript)
    state.metrics.heard_seconds.inc(transcript.seconds)
    headers["x-stentor-audio-seconds"] = f"{transcript.seconds:.3f}"
    body = body_of(transcript, wanted, task)
    return Response(body, media_type=MEDIA_TYPES[wanted.response_format], headers=headers)


def message(wanted: TranscriptionRequest, task: Task, path: Path, settings: Settings, hello: Hello) -> Transcribe:
    """The protocol's request. Raises UnsupportedOption that names what this engine lacks."""
    wanted.require(hello, task)
    options: dict[str, Any] = {"limits": {"max_seconds": settings.max_audio_seconds}, **wanted.options}
    if task == "translate":
        options["task"] = task
    if wanted.fault:
        options["fault"] = wanted.fault
    return Transcribe(
        id=new_id(),
        path=str(path),
        language=wanted.the_language,
        context=wanted.context,
        timestamps=wanted.timestamps(hello),
        options=options,
    )


def body_of(transcript: Transcript, wanted: TranscriptionRequest, task: Task = "transcribe") -> str:
    words = "word" in wanted.timestamp_granularities
    named = replace(transcript, language=transcript.language or languages.code(wanted.the_language))
    return render(named, wanted.response_format, task=task, words=words, candidates=bool(wanted.languages))


def require_length(transcript: Transcript) -> None:
    """Raises UndecodableAudio for a recording in which nothing can be said."""
    if 0 < transcript.seconds < SHORTEST_S:
        raise UndecodableAudio(
            f"The recording has {transcript.seconds:.3f} s of audio; {SHORTEST_S:g} s is the least.", param="file"
        )


async def events(hearing: Hearing, upload: Upload, state: ServerState) -> AsyncGenerator[bytes, None]:
    """OpenAI's server-sent events. The deltas together are the text of `done` exactly.

    A failure after the first event is an event itself and then raised, which breaks the transfer (Stream): neither a
    client that reads events nor one that only waits for the end can take a part for the whole.
    """
    said = 0
    try:
        with upload:
            async with contextlib.aclosing(hearing.deltas()) as deltas:
                async for _ in deltas:
                    text = hearing.transcript.text.strip()
                    if len(text) > said:
                        yield _event({"type": "transcript.text.delta", "delta": text[said:]})
                        said = len(text)
        require_length(hearing.transcript)
    except StentorError as error:
        if said:
            yield _event({"type": "error", **error_body(error)})
        raise
    state.metrics.heard_seconds.inc(hearing.transcript.seconds)
    text = hearing.transcript.text.strip()
    yield _event({"type": "transcript.text.done", "text": text, "usage": usage(hearing.transcript)})


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def _refusal(error: TooLarge, request: Request) -> Response:
    """413. An upload of no announced length may have no end, so its connection is closed; others are read out, since
    a client that is still sending may miss an answer that comes with the end of the connection."""
    response = JSONResponse(error_body(error), error.status)
    if "content-length" not in request.headers:
        response.headers["connection"] = "close"
    return response
