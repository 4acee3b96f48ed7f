"""Every setting of Stentor: one strict model whose field names are the CLI flags, the variables and the TOML keys.

Later sources win: file, then environment (STENTOR_*), then flags.

Owns where a value came from, too, so that a message can name the place to change it. Knows nothing of what uses them.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from .catalog import BUNDLED, Kind, ModelSpec
from .errors import SettingsError

PREFIX = "STENTOR_"
FILE_VARIABLE = "STENTOR_SETTINGS"  # where the TOML file is; the one variable that is no setting


def _model_table(value: object) -> object:
    """`{"id": "ENGINE:PATH"}` or a table per id; from a flag or a variable as JSON or `id=ENGINE:PATH,id=…`."""
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("{") else _pairs(value)
    if not isinstance(value, dict):
        return value
    return {name: ModelSpec.parse(spec) if isinstance(spec, str) else spec for name, spec in value.items()}


def _pairs(text: str) -> dict[str, str]:
    items = [item.partition("=") for item in text.split(",") if item.strip()]
    if any(not equals for _, equals, _ in items):
        raise ValueError("write id=ENGINE:PATH, several with commas between, or a JSON object")
    return {name.strip(): spec.strip() for name, _, spec in items}


def _comma_list(value: object) -> object:
    return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value


class Settings(BaseModel):
    """The effective settings. The description of a field is its `--help` line and its row in docs/settings.md."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    host: str = Field("127.0.0.1", description="Address to listen on; other than loopback only with an API key.")
    port: int = Field(8300, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    server: str = Field(
        "", description="URL at which commands such as say find the server; none: they look at host and port."
    )
    api_keys: Annotated[list[SecretStr], BeforeValidator(_comma_list)] = Field(
        default_factory=list, description="Keys that clients must send as Bearer; none means no key is asked for."
    )
    insecure: bool = Field(False, description="Listen on any address without a key. For networks you trust.")
    strict: bool = Field(False, description="Answer 400 to request fields this server does not know.")
    lock_discovery: bool = Field(False, description="Ask for the key on model, voice, health and metrics routes too.")
    cors_origins: Annotated[list[str], BeforeValidator(_comma_list)] = Field(
        default_factory=list, description="Web origins that may call this server from a browser; none by default."
    )
    root_path: str = Field("", description="Path under which a reverse proxy serves this server, as /speech.")
    models: Annotated[dict[str, ModelSpec], BeforeValidator(_model_table)] = Field(
        default_factory=dict, description="More models to offer: id=ENGINE:PATH, several with commas between."
    )
    speech_model: str = Field("hibari", description="Model that speaks where a request names OpenAI's or none.")
    transcription_model: str = Field("whisper-tiny.en", description="Model that listens where a request names none.")
    preload: bool = Field(True, description="Load the two default models at start instead of at the first request.")
    keep_alive: float = Field(
        -1.0, ge=-1, description="Seconds an idle model stays loaded; 0 unloads at once, -1 never. Also per model."
    )
    queue_limit: int = Field(64, ge=0, description="Requests that may wait for one model; more get 429.")
    max_input_chars: int = Field(100_000, ge=1, description="Longest text of one speech request.")
    max_upload_mb: int = Field(512, ge=1, description="Largest upload of one transcription, in MiB.")
    max_audio_seconds: float = Field(4 * 3600, gt=0, description="Longest audio of one transcription.")
    first_byte_timeout: float = Field(120.0, gt=0, description="Seconds a request may wait for its first audio.")
    client_timeout: float = Field(60.0, gt=0, description="Seconds a client may take nothing before it is cut off.")
    load_timeout: float = Field(300.0, gt=0, description="Seconds without progress after which a load has failed.")
    frame_timeout: float = Field(
        5.0, gt=0, description="Seconds a frame may take before it is a stall; raised where this machine is slower."
    )
    attempts: int = Field(
        4, ge=1, le=20, description="Processes that one request may use up before it ends in an error."
    )
    standby: bool = Field(False, description="Keep a second process of each default model, to take over at once.")
    max_gap: float = Field(10.0, ge=0, description="Seconds to wait for the same device before a standby takes over.")
    breaker_incidents: int = Field(2, ge=1, description="Incidents within breaker_window that put a profile aside.")
    breaker_window: float = Field(600.0, gt=0, description="Seconds over which breaker_incidents are counted.")
    breaker_pause: float = Field(
        900.0, gt=0, description="Seconds until a profile put aside is probed again; doubled each time, to a day."
    )
    memory_budget_mb: int = Field(
        0, ge=0, description="MiB that all loaded models may take; an idle one is unloaded for the next. 0: no limit."
    )
    recycle_mb: int = Field(
        1024, ge=0, description="MiB by which an idle process may have grown before a fresh one replaces it; 0: never."
    )
    data_dir: str = Field("", description="Folder for incidents; by default the system's folder for user data.")
    notify_url: SecretStr = Field(
        SecretStr(""), description="URL to which each incident is posted as one sentence (ntfy and the like)."
    )
    drills: bool = Field(False, description="Obey the faults that a request asks for. For drills only.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="How much the log tells.")

    @field_validator("api_keys")
    @classmethod
    def _keys_fit_into_a_header(cls, keys: list[SecretStr]) -> list[SecretStr]:
        if not all(key.get_secret_value().isascii() and key.get_secret_value().isprintable() for key in keys):
            raise ValueError("a key must be of ASCII letters, digits and signs: clients send it in an HTTP header")
        return keys

    @field_validator("server")
    @classmethod
    def _server_is_a_url(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError(f"write the scheme, too: http://{value}")
        return value

    @model_validator(mode="after")
    def _defaults_are_offered(self) -> Settings:
        for field, kind in (("speech_model", "tts"), ("transcription_model", "stt")):
            name = getattr(self, field)
            if name not in self.offered or self.offered[name].kind != kind:
                raise ValueError(f"{field} = {name!r} is not among the models: {', '.join(self.offered)}")
        return self

    @property
    def offered(self) -> dict[str, ModelSpec]:
        """Every model by id: the bundled ones and the configured ones, which win where an id is both."""
        return {**BUNDLED, **self.models}

    def default_model(self, kind: Kind) -> str:
        return self.speech_model if kind == "tts" else self.transcription_model


class Loaded(BaseModel):
    """Settings together with the origin of each value: `default`, a file, a variable or a flag."""

    settings: Settings
    origins: dict[str, str]


def load(flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ, file: Path | None = None) -> Loaded:
    """Settings from all sources. Raises SettingsError that names the source, the key and the nearest valid name."""
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    for origin, source in _sources(flags, environ, file):
        for key, value in source.items():
            _require_known(key, origin)
            values[key] = value
            origins[key] = origin
    try:
        return Loaded(settings=Settings(**values), origins=origins)
    except ValidationError as error:
        raise SettingsError(_explain(error, origins)) from error


def _sources(
    flags: Mapping[str, Any], environ: Mapping[str, str], file: Path | None
) -> list[tuple[str, Mapping[str, Any]]]:
    path = file or (Path(environ[FILE_VARIABLE]) if environ.get(FILE_VARIABLE) else None)
    sources: list[tuple[str, Mapping[str, Any]]] = [(str(path), _read_toml(path))] if path else []
    variables = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(PREFIX) and name != FILE_VARIABLE and value != ""
    }
    sources.append(("environment", variables))
    sources.append(("flag", {key: value for key, value in flags.items() if value is not None}))
    return sources


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {path} is not TOML: {error}") from error


def _require_known(key: str, origin: str) -> None:
    if key in Settings.model_fields:
        return
    shown = f"{PREFIX}{key.upper()}" if origin == "environment" else key
    near = difflib.get_close_matches(key, Settings.model_fields, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; settings are: {', '.join(Settings.model_fields)}"
    raise SettingsError(f"unknown setting {shown!r} ({origin}){hint}")


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    reasons = []
    for one in error.errors(include_url=False):
        key = ".".join(map(str, one["loc"]))
        place = origins.get(str(one["loc"][0]), "") if one["loc"] else ""
        message = one["msg"].removeprefix("Value error, ")
        reasons.append(f"{key} ({place}): {message}" if key else message)
    return "; ".join(reasons)
