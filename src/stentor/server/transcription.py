"""POST /v1/audio/transcriptions: an upload is spooled, decoded and understood in the sidecar, answered as asked."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from python_multipart.exceptions import MultipartParseError
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ..catalog import resolve
from ..errors import InvalidRequest, TooLarge, UndecodableAudio
from ..host.sidecar import Sidecar
from ..host.utterance import Hearing, Transcript, new_id
from ..protocol import Transcribe
from .response import Watched
from .state import State

router = APIRouter()

FORMATS = ("json", "text")


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """OpenAI's fields of the form; empty strings mean absent."""

    model: str | None
    language: str | None
    prompt: str | None
    response_format: str

    @classmethod
    def read(cls, form: FormData) -> TranscriptionRequest:
        """Raises InvalidRequest that names the field."""
        wanted = _text(form, "response_format") or "json"
        if wanted not in FORMATS:
            known = ", ".join(FORMATS)
            raise InvalidRequest(f"response_format must be one of {known}, not {wanted!r}.", param="response_format")
        return cls(_text(form, "model"), _text(form, "language"), _text(form, "prompt"), wanted)


@router.post("/v1/audio/transcriptions", response_class=Response)
async def transcription(request: Request) -> Response:
    """Understand an audio file of any container."""
    state: State = request.app.state.stentor
    state.require_key(request)
    form = await read_form(request, state.settings.max_upload_mb * 2**20)
    wanted = TranscriptionRequest.read(form)
    model = resolve(wanted.model, "stt", state.settings.offered, state.settings.transcription_model)
    sidecar = state.supervisor.sidecars[model]
    return Watched(lambda: respond(form, wanted, sidecar, state))


async def respond(form: FormData, wanted: TranscriptionRequest, sidecar: Sidecar, state: State) -> Response:
    async with spooled(form, state.folder.spool) as path:
        hearing = Hearing(sidecar, lambda _: message(wanted, path, state))
        transcript = await hearing.whole()
    state.metrics.heard_seconds.inc(transcript.seconds)
    return render(transcript, wanted.response_format)


def message(wanted: TranscriptionRequest, path: Path, state: State) -> Transcribe:
    return Transcribe(
        id=new_id(),
        path=str(path),
        language=wanted.language,
        context=wanted.prompt,
        options={"limits": {"max_seconds": state.settings.max_audio_seconds}},
    )


def render(transcript: Transcript, response_format: str) -> Response:
    """The answer in the format that was asked for."""
    text = transcript.text.strip()
    if response_format == "text":
        return PlainTextResponse(f"{text}\n")
    usage = {"type": "duration", "seconds": round(transcript.seconds)}
    return JSONResponse({"text": text, "usage": usage})


async def read_form(request: Request, limit: int) -> FormData:
    """The multipart form. Raises TooLarge past `limit` bytes, InvalidRequest where it is no form."""
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        raise InvalidRequest("Send the audio as multipart/form-data with a field named 'file'.", param="file")
    try:
        form = await MultiPartParser(request.headers, _bounded(request.stream(), limit), max_files=1).parse()
    except (MultiPartException, MultipartParseError, KeyError) as error:
        reason = getattr(error, "message", str(error))
        raise InvalidRequest(f"The multipart form cannot be read: {reason}.") from error
    upload = form.get("file")
    if not isinstance(upload, UploadFile):
        await form.close()
        raise InvalidRequest("The form has no file in the field 'file'.", param="file")
    if not upload.size:
        await form.close()
        raise UndecodableAudio("The uploaded file is empty.", param="file")
    return form


async def _bounded(stream: AsyncIterator[bytes], limit: int) -> AsyncGenerator[bytes, None]:
    received = 0
    async for chunk in stream:
        received += len(chunk)
        if received > limit:
            raise TooLarge(f"The upload is over {limit // 2**20} MiB (setting max_upload_mb).", param="file")
        yield chunk


@contextlib.asynccontextmanager
async def spooled(form: FormData, folder: Path) -> AsyncIterator[Path]:
    """The upload as a file that the sidecar can open, removed afterwards. Its name is ours, never the client's."""
    upload = form["file"]
    assert isinstance(upload, UploadFile)
    path = folder / new_id()
    try:
        await asyncio.to_thread(_copy, upload, path)
        await form.close()
        yield path
    finally:
        path.unlink(missing_ok=True)
        await form.close()


def _copy(upload: UploadFile, path: Path) -> None:
    upload.file.seek(0)
    with path.open("wb") as file:
        shutil.copyfileobj(upload.file, file, 1 << 20)


def _text(form: FormData, field: str) -> str | None:
    value = form.get(field)
    return value.strip() or None if isinstance(value, str) else None
