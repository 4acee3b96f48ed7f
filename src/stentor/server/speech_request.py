"""The body of POST /v1/audio/speech: OpenAI's fields, ours, and those of the Qwen3-TTS-FastAPI servers.

Owns what each spelling means. Knows no sidecar: what a model lacks is refused where the model is (engines/base.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

from ..text.normalise import Normalization

# "tts-1-zh" of those servers: OpenAI's name and a language (facts/qwen3-tts.md 2.2)
_WITH_LANGUAGE = re.compile(r"(tts-1(?:-hd)?)-(en|zh|ja|ko|de|fr|es|ru|pt|it)")

# normalization_options as Kokoro-FastAPI and the Qwen3-TTS-FastAPI servers spell them. What has no counterpart here
# (plurals in brackets) is None: accepted, without effect.
_NORMALIZATION_NAMES: Mapping[str, str | None] = {
    "unit": "units",
    "unit_normalization": "units",
    "url": "urls",
    "url_normalization": "urls",
    "email": "emails",
    "email_normalization": "emails",
    "phone": "phones",
    "phone_normalization": "phones",
    "replace_remaining_symbols": "numbers",
    "optional_pluralization": None,
    "optional_pluralization_normalization": None,
}


class VoiceId(BaseModel):
    """OpenAI's form for a custom voice."""

    id: str


class SpeechRequest(BaseModel):
    """A field that is not here is ignored, logged once and named in X-Stentor-Ignored; with `strict` it is a 400."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    input: str = Field(description="The text to speak; [pause 0.5s] is silence.")
    model: str | None = Field(None, description="A model id of /v1/models; OpenAI's names mean the default.")
    voice: str | VoiceId | None = Field(None, description="A voice of /v1/audio/voices; OpenAI's mean the default.")
    instructions: str | None = Field(
        None,
        validation_alias=AliasChoices("instructions", "instruct"),
        description="How to speak, for models that take it.",
    )
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    speed: float = Field(1.0, ge=0.25, le=4.0, description="The pitch is kept.")
    stream_format: Literal["audio", "sse"] = "audio"
    stream: bool = Field(True, description="false: one body with Content-Length and exact sizes in its header.")
    language: str | None = Field(None, description="ISO code or English name; absent: the model decides.")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Drawn and returned in X-Stentor-Seed when absent.")
    normalization_options: Normalization = Field(
        default_factory=Normalization, description="What is rewritten before the voice sees the text."
    )
    task_type: Literal["CustomVoice", "VoiceDesign", "Base"] | None = Field(
        None, description="Of the Qwen3-TTS servers; the model that is named decides, so this only has to agree."
    )
    ref_audio: str | None = Field(None, description="A recording to clone, as base64 or a data: URI.")
    ref_text: str | None = Field(None, description="What is said in ref_audio.")
    x_vector_only_mode: bool = Field(False, description="Clone the timbre only, without ref_text.")
    fault: str | None = Field(None, description="For drills alone: a fault to be injected, as crash@3.")

    @model_validator(mode="before")
    @classmethod
    def _language_in_the_model_name(cls, body: Any) -> Any:
        if not isinstance(body, dict) or not isinstance(body.get("model"), str):
            return body
        named = _WITH_LANGUAGE.fullmatch(body["model"])
        return {**body, "model": named[1], "language": body.get("language") or named[2]} if named else body

    @model_validator(mode="before")
    @classmethod
    def _the_spelling_that_says_something(cls, body: Any) -> Any:
        """`instruct` beside an empty `instructions`: a client that knows both leaves one of them empty."""
        if not isinstance(body, dict) or "instruct" not in body or "instructions" not in body:
            return body
        rest = {name: value for name, value in body.items() if name != "instruct"}
        return {**rest, "instructions": body["instructions"] or body["instruct"]}

    @field_validator(
        *("model", "voice", "instructions", "language", "task_type", "ref_audio", "ref_text", "seed"), mode="before"
    )
    @classmethod
    def _empty_means_absent(cls, value: Any) -> Any:
        # Home Assistant sends the text "None" for instructions that were not given (facts/serving-anchors.md A.1)
        if isinstance(value, dict) and set(value) == {"id"}:
            value = value["id"]
        return None if isinstance(value, str) and value.strip() in ("", "None") else value

    @field_validator(
        *("response_format", "stream_format", "stream", "speed", "normalization_options", "x_vector_only_mode"),
        mode="before",
    )
    @classmethod
    def _null_means_default(cls, value: Any, info: Any) -> Any:
        if value is None or value == "":
            return cls.model_fields[info.field_name].get_default(call_default_factory=True)
        return (
            value.lower()
            if info.field_name in ("response_format", "stream_format") and hasattr(value, "lower")
            else value
        )

    @field_validator("normalization_options", mode="before")
    @classmethod
    def _names_of_other_servers(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value.get("normalize") is False:
            return dict.fromkeys(Normalization.model_fields, False)
        names = {name: _NORMALIZATION_NAMES.get(name, name) for name in value if name != "normalize"}
        return {ours: value[theirs] for theirs, ours in names.items() if ours and value[theirs] is not None}

    @property
    def unknown_fields(self) -> list[str]:
        return sorted(self.model_extra or {})
