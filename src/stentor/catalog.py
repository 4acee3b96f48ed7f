"""What Stentor can offer: engines, bundled models, the names OpenAI's clients use. Torch-free data, imported by all.

A model is offered under an id; `ModelSpec` says which engine runs it and from which folder. Nothing here touches the
disk or imports an engine: the host reads this table, the sidecar imports the class it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from .errors import UnknownModel

Kind = Literal["tts", "stt"]
KIND_WORDS: Mapping[Kind, str] = {"tts": "speech", "stt": "transcription"}


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One engine: where its class is, and what it needs to be installed."""

    kind: Kind
    path: str  # module:Class, imported in the sidecar only
    needs: str  # the pip requirement that an import error names


ENGINES: Mapping[str, EngineEntry] = {
    "hibari": EngineEntry("tts", "stentor.engines.hibari:HibariEngine", "hibari-tts==0.2.1"),
    "whisper": EngineEntry("stt", "stentor.engines.whisper:WhisperEngine", "faster-whisper"),
}


class RungSpec(BaseModel):
    """One step of a model's ladder, where the user writes the ladder instead of having it made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    device: str = "cpu"
    environment: dict[str, str] = Field(default_factory=dict)
    options: dict[str, JsonValue] = Field(default_factory=dict)  # laid over the model's own
    python: str | None = None


class ModelSpec(BaseModel):
    """One model that this server offers: a row of the `[models]` table of the settings file.

    `engine` is a name of ENGINES, or `module:Class` for an engine of the user's own, which then needs `kind`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str
    kind: Kind
    path: str | None = None
    slots: int | None = Field(default=None, ge=1, le=64)
    keep_alive: float | None = Field(default=None, ge=-1)  # seconds; None: the setting of the same name
    python: str | None = None  # an interpreter of its own for this sidecar
    device: str = "cpu"  # cpu, rocm, cuda, cuda:1, mps: the top of the ladder; its last rung is the CPU
    rungs: list[RungSpec] = Field(default_factory=list)  # a ladder of the user's own, best first
    standby: bool | None = None  # None: the setting of the same name
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _kind_of_the_engine(cls, row: Any) -> Any:
        """An engine of the table says its kind; another must come with it."""
        if not isinstance(row, dict) or not isinstance(row.get("engine"), str):
            return row
        entry = ENGINES.get(row["engine"])
        if entry is None and not row.get("kind"):
            raise ValueError(
                f"unknown engine {row['engine']!r}: use one of {', '.join(ENGINES)}, "
                "or module:Class together with kind = tts or stt"
            )
        return {**row, "kind": entry.kind} if entry else row

    @classmethod
    def parse(cls, text: str) -> dict[str, str | None]:
        """`ENGINE` or `ENGINE:PATH`, the short form for flags and variables, as a row."""
        engine, _, path = text.partition(":")
        return {"engine": engine.strip(), "path": path.strip() or None}


BUNDLED: Mapping[str, ModelSpec] = {
    "hibari": ModelSpec(engine="hibari", kind="tts"),
    "whisper-tiny.en": ModelSpec(engine="whisper", kind="stt"),
}

OPENAI_MODELS: Mapping[Kind, frozenset[str]] = {
    "tts": frozenset({"tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"}),
    "stt": frozenset(
        {
            "whisper-1",
            "gpt-transcribe",
            "gpt-4o-transcribe",
            "gpt-4o-mini-transcribe",
            "gpt-4o-mini-transcribe-2025-12-15",
        }
    ),
}
"""Names that mean "your default model" (facts/qwen3-asr.md 3.1)."""

OPENAI_VOICES = (
    "alloy",
    "ash",
    "ballad",
    "cedar",
    "coral",
    "echo",
    "fable",
    "marin",
    "nova",
    "onyx",
    "sage",
    "shimmer",
    "verse",
)
"""Names that mean "the model's default voice", since clients such as pipecat refuse to send any other."""


def resolve(name: str | None, kind: Kind, offered: Mapping[str, ModelSpec], default: str) -> str:
    """The id of the model a request means. Raises UnknownModel that lists what there is; never a download."""
    if not name or name in OPENAI_MODELS[kind]:
        return default
    if name in offered and offered[name].kind == kind:
        return name
    raise UnknownModel(_unknown_model(name, kind, offered), param="model")


def _unknown_model(name: str, kind: Kind, offered: Mapping[str, ModelSpec]) -> str:
    names = ", ".join(sorted(one for one, spec in offered.items() if spec.kind == kind))
    what = KIND_WORDS[kind]
    if name in offered:
        return f"The model {name!r} is not a {what} model. {what.capitalize()} models here: {names}."
    return f"There is no {what} model {name!r} here. Use one of: {names}; OpenAI's names mean the default."
