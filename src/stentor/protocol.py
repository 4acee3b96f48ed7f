"""Protocol v1: what host and sidecar say to each other, one JSON object a line (DESIGN.md 5, docs/protocol.md).

Owns the messages and their encoding. Knows nothing of processes, pipes or engines, so that both sides import it and
every message is tested byte for byte without a process. Numbers that only one engine needs go into `options`, `stats`
or `capabilities`; a new message type or a changed field is a new PROTOCOL number.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter, ValidationError

from .errors import ProtocolError

PROTOCOL = 1
MAX_LINE = 8 * 1024 * 1024
QUOTED = 200  # characters of a bad line that an error repeats

Message = TypeVar("Message")


def _from_base64(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


def _to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


Pcm = Annotated[bytes, BeforeValidator(_from_base64), PlainSerializer(_to_base64, return_type=str)]
"""Mono PCM: little-endian float32 in memory, base64 on the wire."""


def new_id() -> str:
    """An id that no other request has."""
    return uuid.uuid4().hex


RequestId = Annotated[str, Field(min_length=1, max_length=64)]


@dataclass(kw_only=True, slots=True)
class Reference:
    """A recording whose voice is to be spoken with, by path or as samples."""

    path: str | None = None
    pcm: Pcm | None = None
    sample_rate: int | None = None
    text: str | None = None
    language: str | None = None


@dataclass(kw_only=True, slots=True)
class Resume:
    """Where a killed utterance goes on: after `frames`, whose next begins at `first_sample`; `samples` are delivered.

    What lies between the two is computed again and not sent again.
    """

    frames: int = 0
    first_sample: int = 0
    samples: int = 0


# --- host → sidecar ---------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class Synthesize:
    type: Literal["synthesize"] = "synthesize"
    id: RequestId
    text: str
    seed: int  # always drawn by the host, so that a retry on another sidecar says the same
    voice: str | None = None
    language: str | None = None
    instructions: str | None = None
    speed: float = 1.0
    attempt: int = 0
    sampling: dict[str, Any] = field(default_factory=dict)
    max_frames: int | None = None
    references: list[Reference] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    more: bool = False  # `append` and `end` will follow; the text is not complete
    journal: str | None = None
    resume: Resume | None = None


@dataclass(kw_only=True, slots=True)
class Append:
    type: Literal["append"] = "append"
    id: RequestId
    text: str


@dataclass(kw_only=True, slots=True)
class End:
    type: Literal["end"] = "end"
    id: RequestId
    text: str = ""


@dataclass(kw_only=True, slots=True)
class Transcribe:
    """A file by `path`, or live audio by `audio_in` where `path` is absent."""

    type: Literal["transcribe"] = "transcribe"
    id: RequestId
    path: str | None = None
    language: str | None = None
    context: str | None = None
    timestamps: Literal["none", "segment", "word"] = "none"
    options: dict[str, Any] = field(default_factory=dict)
    committed_samples: int = 0  # of `text`: a retry goes on from there


@dataclass(kw_only=True, slots=True)
class AudioIn:
    type: Literal["audio_in"] = "audio_in"
    id: RequestId
    first_sample: int
    pcm: Pcm
    final: bool = False


@dataclass(kw_only=True, slots=True)
class Cancel:
    type: Literal["cancel"] = "cancel"
    id: RequestId


@dataclass(kw_only=True, slots=True)
class Ping:
    type: Literal["ping"] = "ping"


@dataclass(kw_only=True, slots=True)
class StatsRequest:
    type: Literal["stats"] = "stats"


@dataclass(kw_only=True, slots=True)
class Shutdown:
    type: Literal["shutdown"] = "shutdown"


# --- sidecar → host ---------------------------------------------------------------------------------------------------


@dataclass(kw_only=True, slots=True)
class Loading:
    """Progress of a start or a conversion; each one resets the load deadline."""

    type: Literal["loading"] = "loading"
    stage: str
    fraction: float


@dataclass(kw_only=True, slots=True)
class Device:
    name: str
    gfx: str | None = None
    memory: int | None = None  # bytes


@dataclass(kw_only=True, slots=True)
class VoiceFacts:
    id: str
    name: str
    languages: list[str] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class Hello:
    """The first message of a sidecar that can serve: what it is and what it accepts."""

    type: Literal["hello"] = "hello"
    pid: int
    kind: Literal["tts", "stt"]
    engine: str
    model: str
    backend: str
    numerics: str
    device: Device
    slots: int
    versions: dict[str, str] = field(default_factory=dict)
    voices: list[VoiceFacts] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)  # empty: the model does not say
    capabilities: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)  # JSON schema of Synthesize/Transcribe.options
    protocol: int = PROTOCOL


@dataclass(kw_only=True, slots=True)
class Started:
    type: Literal["started"] = "started"
    id: RequestId
    slot: int
    sample_rate: int | None = None  # per utterance, models differ; absent for a transcription


@dataclass(kw_only=True, slots=True)
class Frames:
    type: Literal["frames"] = "frames"
    id: RequestId
    first: int
    codes: list[list[int]]


@dataclass(kw_only=True, slots=True)
class Audio:
    type: Literal["audio"] = "audio"
    id: RequestId
    first_sample: int
    pcm: Pcm


@dataclass(kw_only=True, slots=True)
class Word:
    word: str
    start: float  # seconds from the start of the audio
    end: float
    probability: float | None = None


@dataclass(kw_only=True, slots=True)
class Segment:
    start: float
    end: float
    text: str
    tokens: list[int] = field(default_factory=list)
    temperature: float = 0.0
    avg_logprob: float | None = None
    compression_ratio: float | None = None
    no_speech_prob: float | None = None


@dataclass(kw_only=True, slots=True)
class Text:
    """A piece of a transcript. `committed_samples` (16 kHz): a retry goes on from there."""

    type: Literal["text"] = "text"
    id: RequestId
    delta: str
    committed_samples: int
    language: str | None = None
    segments: list[Segment] | None = None
    words: list[Word] | None = None


@dataclass(kw_only=True, slots=True)
class Event:
    type: Literal["event"] = "event"
    id: RequestId
    event: Literal["speech_started", "speech_stopped"]
    at: float


FinishReason = Literal["stop", "silence", "length", "loop"]


@dataclass(kw_only=True, slots=True)
class Done:
    type: Literal["done"] = "done"
    id: RequestId
    finish_reason: FinishReason = "stop"
    stats: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Cancelled:
    type: Literal["cancelled"] = "cancelled"
    id: RequestId


@dataclass(kw_only=True, slots=True)
class Error:
    type: Literal["error"] = "error"
    code: str
    message: str
    retryable: bool = False
    id: RequestId | None = None
    param: str | None = None
    detail: str | None = None


@dataclass(kw_only=True, slots=True)
class Pong:
    type: Literal["pong"] = "pong"


@dataclass(kw_only=True, slots=True)
class StatsReport:
    type: Literal["stats"] = "stats"
    values: dict[str, float]


ToSidecar = Synthesize | Append | End | Transcribe | AudioIn | Cancel | Ping | StatsRequest | Shutdown
FromSidecar = Loading | Hello | Started | Frames | Audio | Text | Event | Done | Cancelled | Error | Pong | StatsReport
Ending = Done | Cancelled | Error
"""The three messages after which a request is over."""

_to_sidecar: TypeAdapter[ToSidecar] = TypeAdapter(Annotated[ToSidecar, Field(discriminator="type")])
_from_sidecar: TypeAdapter[FromSidecar] = TypeAdapter(Annotated[FromSidecar, Field(discriminator="type")])


def encode(message: ToSidecar | FromSidecar) -> bytes:
    """One line with its newline; ASCII only, so that no code page on the way can damage Chinese text.

    Raises ProtocolError where the line would be longer than the other side reads.
    """
    adapter: TypeAdapter[Any] = _to_sidecar if isinstance(message, ToSidecar) else _from_sidecar
    line = adapter.dump_json(message, ensure_ascii=True, exclude_none=True) + b"\n"
    if len(line) > MAX_LINE:
        raise ProtocolError(
            f"a {message.type} message of {len(line)} bytes is over the {MAX_LINE} byte limit of a line"
        )
    return line


def decode_request(line: bytes) -> ToSidecar:
    """A line the host wrote. Raises ProtocolError that quotes the line."""
    return _decode(_to_sidecar, line)


def decode_reply(line: bytes) -> FromSidecar:
    """A line a sidecar wrote. Raises ProtocolError that quotes the line."""
    return _decode(_from_sidecar, line)


def request_id(line: bytes) -> str | None:
    """The id in a line that could not be decoded, so that its sender can be told; None where there is none."""
    try:
        value = json.loads(line)
    except ValueError:  # UnicodeDecodeError is one
        return None
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) and 0 < len(found) <= 64 else None


def _decode(adapter: TypeAdapter[Message], line: bytes) -> Message:
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        raise ProtocolError(f"{_reasons(error)} in the line {_quote(line)}") from error


def _reasons(error: ValidationError) -> str:
    found = (f"{'.'.join(map(str, one['loc'])) or 'line'}: {one['msg']}" for one in error.errors(include_url=False))
    return "; ".join(list(found)[:3])


def _quote(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").strip()
    return repr(text if len(text) <= QUOTED else text[:QUOTED] + "…")
