"""The fields of a transcription request, as OpenAI's clients spell them in a multipart form.

Owns which spellings mean the same (`field`, `field[]`, repeated, empty) and what an engine must have for each field.
Knows no HTTP: `stentor transcribe` reads its options through the same model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..errors import InvalidRequest, UnsupportedOption
from ..protocol import Hello
from .transcript import Format, Task

Timestamps = Literal["none", "segment", "word"]

# Fields that no engine here has, and what to do instead. Without them a client would get what it did not ask for.
LACKING = {
    "include": "no engine here gives the log probabilities of tokens; verbose_json has avg_logprob per segment",
    "known_speaker_names": "no engine here tells speakers apart; leave it out",
    "known_speaker_references": "no engine here tells speakers apart; leave it out",
}
LISTS = ("languages", "keywords", "timestamp_granularities", *LACKING)
_BRACKETS = re.compile(r"\[\d*\]$")


class Chunking(BaseModel):
    """OpenAI's server_vad: how speech is found in the recording."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["server_vad"]
    threshold: float = Field(0.5, ge=0, le=1)
    prefix_padding_ms: int = Field(300, ge=0, le=10_000)
    silence_duration_ms: int = Field(200, ge=0, le=60_000)


def _chunking(value: object) -> object:
    """`auto` is absent: the engine's own way. Else a JSON object, checked and as a plain dict."""
    if not isinstance(value, str):
        return value
    if value.strip() == "auto":
        return None
    try:
        return Chunking.model_validate_json(value).model_dump(exclude={"type"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f'"auto" or a JSON object of type server_vad is expected; {where}: {first["msg"]}') from error


class TranscriptionRequest(BaseModel):
    """OpenAI's fields. Empty strings mean absent; names and codes of languages are both understood."""

    model_config = ConfigDict(frozen=True)

    model: str | None = Field(None, description="A model id of /v1/models; OpenAI's names mean the default.")
    language: str | None = Field(None, description="ISO code or English name; absent: it is detected.")
    languages: list[str] = Field(default_factory=list, description="Languages it may be, where none is given.")
    prompt: str | None = Field(None, description="Text that comes before, or that has the words to expect.")
    keywords: list[str] = Field(default_factory=list, description="Words that are likely to occur.")
    response_format: Format = "json"
    temperature: float | None = Field(None, ge=0, le=1, description="0 or absent: the engine's own ladder.")
    timestamp_granularities: list[Literal["word", "segment"]] = Field(
        default_factory=list, description="word: verbose_json has words, too. Segments are always in it."
    )
    stream: bool = Field(False, description="true: transcript.text events. With json and text only.")
    fault: str | None = Field(None, description="For drills alone: a fault to be injected, as crash@3.")
    chunking_strategy: Annotated[dict[str, Any] | None, BeforeValidator(_chunking)] = None

    @classmethod
    def read(cls, fields: Iterable[tuple[str, str]]) -> tuple[TranscriptionRequest, list[str]]:
        """The request, and the names of the fields that mean nothing here.

        Raises InvalidRequest or UnsupportedOption that names the field.
        """
        given, unknown = _gathered(fields)
        _require_possible(given)
        values = {name: value if name in LISTS else _single(name, value) for name, value in given.items()}
        try:
            request = cls.model_validate(values)
        except ValidationError as error:
            raise _explained(error) from error
        if request.stream and request.response_format not in ("json", "text"):
            raise InvalidRequest(
                f"stream=true sends events with plain text; {request.response_format} comes as a whole. "
                "Leave stream out, or ask for json.",
                param="stream",
            )
        return request, unknown

    @property
    def the_language(self) -> str | None:
        """The language to listen for; of candidates only where there is one."""
        return self.language or (self.languages[0] if len(self.languages) == 1 else None)

    @property
    def context(self) -> str | None:
        """Prompt and hot words as one: an engine that keeps only the end of it keeps the hot words."""
        return " ".join([*([self.prompt] if self.prompt else []), ", ".join(self.keywords)]).strip() or None

    @property
    def options(self) -> dict[str, Any]:
        """What goes to the engine beside the protocol's own fields."""
        found: dict[str, Any] = {}
        if self.temperature:
            found["temperature"] = self.temperature
        if self.the_language is None and self.languages:
            found["languages"] = self.languages
        if self.chunking_strategy:
            found["vad"] = self.chunking_strategy
        return found

    def timestamps(self, hello: Hello) -> Timestamps:
        """What the format needs: subtitles are cut at words where the engine has their times."""
        subtitles = self.response_format in ("srt", "vtt")
        if subtitles or self.response_format == "verbose_json":
            words = subtitles or "word" in self.timestamp_granularities
            return "word" if words and "word_timestamps" in hello.capabilities else "segment"
        return "none"

    def require(self, hello: Hello, task: Task) -> None:
        """Raises UnsupportedOption that names the first field for which this engine has no capability."""
        times = self.response_format in ("srt", "vtt", "verbose_json")
        words = self.response_format == "verbose_json" and "word" in self.timestamp_granularities
        for asked, capability, field, what in (
            (task == "translate", "translate", "model", "translate"),
            (self.the_language, "language", "language", "be told the language"),
            ("languages" in self.options, "languages", "languages[]", "choose among languages"),
            (self.prompt, "context", "prompt", "take a prompt"),
            (self.keywords, "context", "keywords[]", "take hot words"),
            (self.temperature, "temperature", "temperature", "take a temperature over 0"),
            (self.chunking_strategy, "vad", "chunking_strategy", "be told how to find speech"),
            (times, "segment_timestamps", "response_format", f"give the times that {self.response_format} needs"),
            (words, "word_timestamps", "timestamp_granularities[]", "give the times of words"),
        ):
            if asked and capability not in hello.capabilities:
                raise UnsupportedOption(f"The model {hello.model} cannot {what}; /v1/models has others.", param=field)


EMPTY = ("", "None", "null", "undefined")  # what Python and JavaScript clients write for a value they do not have


def _gathered(fields: Iterable[tuple[str, str]]) -> tuple[dict[str, list[str]], list[str]]:
    """Values by field, without empty ones, and unknown names. `field`, `field[]` and `field[0]` are one."""
    given: dict[str, list[str]] = {}
    unknown: list[str] = []
    for spelled, value in fields:
        name = _BRACKETS.sub("", spelled)
        if name not in TranscriptionRequest.model_fields and name not in LACKING:
            unknown += [spelled] if spelled not in unknown else []
        elif value.strip() not in EMPTY:
            given.setdefault(name, []).extend(_values(name, value.strip()))
    return given, unknown


def _values(name: str, value: str) -> list[str]:
    """One value, or those of a list that was sent as JSON or with commas between."""
    if name not in LISTS:
        return [value]
    if value.startswith("["):
        try:
            return [str(item).strip() for item in json.loads(value) if str(item).strip()]
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidRequest(f"{name} is not a JSON list: {error}.", param=name) from error
    return [item.strip() for item in value.split(",") if item.strip()]


def _single(name: str, values: list[str]) -> str:
    if len(set(values)) > 1:
        raise InvalidRequest(f"{name} was sent {len(values)} times with different values; send it once.", param=name)
    return values[0]


def _require_possible(given: dict[str, list[str]]) -> None:
    for name, reason in LACKING.items():
        if name in given:
            raise UnsupportedOption(f"{name} is not available: {reason}.", param=name)
    if "diarized_json" in given.get("response_format", []):
        raise UnsupportedOption(
            "response_format diarized_json is not available: no engine here tells speakers apart. "
            "Use verbose_json for segments with times.",
            param="response_format",
        )


def _explained(error: ValidationError) -> InvalidRequest:
    first = error.errors(include_url=False)[0]
    field = str(first["loc"][0])
    reason = first["msg"].removeprefix("Value error, ").rstrip(".")
    return InvalidRequest(f"{field}: {reason}, not {str(first['input'])[:80]!r}.", param=field)


def _form_schema() -> dict[str, Any]:
    """The OpenAPI description of the form, which FastAPI cannot find in a route that reads the body itself."""
    schema = TranscriptionRequest.model_json_schema()
    properties = {f"{name}[]" if name in LISTS else name: field for name, field in schema["properties"].items()}
    properties["chunking_strategy"] = {"type": "string", "description": '"auto", or JSON of type server_vad.'}
    properties["file"] = {"type": "string", "format": "binary", "description": "Audio or video of any container."}
    form = {"type": "object", "required": ["file"], "properties": properties}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}}}


FORM_SCHEMA = _form_schema()
