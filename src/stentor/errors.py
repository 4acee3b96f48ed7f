"""Every error Stentor raises on purpose, with the HTTP status it maps to and whether a retry can help.

    StentorError
    ├── InvalidRequest 400            the request itself is wrong; `param` names the field
    │   ├── NothingToSay              no speakable text is left after clean-up
    │   ├── UnspeakableText           a span this voice cannot pronounce
    │   ├── UnsupportedLanguage       the model does not have this language
    │   ├── UnsupportedOption         the engine lacks a feature that was asked for
    │   ├── UndecodableAudio          an upload or a reference that holds no readable audio
    │   ├── TooLarge 413              over a documented limit
    │   ├── InUse 409                 something is busy that was to be ended
    │   ├── UnknownModel 404
    │   └── UnknownVoice 404
    ├── Unauthorized 401
    ├── Busy 429                      the queue is full; `retry_after` says when to come back
    ├── Unavailable 503               no sidecar can serve this now
    │   ├── LoadFailed                a sidecar did not reach `hello`
    │   ├── SidecarDied               a sidecar's process ended under the request
    │   └── SidecarStalled            a sidecar made no progress and was killed
    ├── DeadlinePassed 504            nothing audible before the deadline
    ├── EngineFailed 500              the engine raised; its sidecar lives on
    ├── ProtocolError 500             host and sidecar do not understand each other
    ├── NoServer                      a command that needs a running server found none
    └── SettingsError                 a setting that cannot be used; ends the start of a command

Errors cross the process boundary as their `code` (protocol.Error) and are rebuilt with `from_code`.
"""

from __future__ import annotations

from typing import ClassVar


class StentorError(Exception):
    """The root. `message` tells a user what is wrong and what to do next."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    type: ClassVar[str] = "server_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, param: str | None = None, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.detail = detail


class InvalidRequest(StentorError):
    status = 400
    code = "invalid_request"
    type = "invalid_request_error"


class NothingToSay(InvalidRequest):
    code = "nothing_to_say"


class UnspeakableText(InvalidRequest):
    code = "unspeakable_text"


class UnsupportedLanguage(InvalidRequest):
    code = "unsupported_language"


class UnsupportedOption(InvalidRequest):
    code = "unsupported_option"


class UndecodableAudio(InvalidRequest):
    code = "undecodable_audio"


class TooLarge(InvalidRequest):
    status = 413
    code = "too_large"


class InUse(InvalidRequest):
    status = 409
    code = "in_use"


class UnknownModel(InvalidRequest):
    status = 404
    code = "model_not_found"


class UnknownVoice(InvalidRequest):
    status = 404
    code = "voice_not_found"


class Unauthorized(StentorError):
    status = 401
    code = "invalid_api_key"
    type = "authentication_error"


class Busy(StentorError):
    status = 429
    code = "queue_full"
    type = "rate_limit_error"
    retryable = True

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(StentorError):
    status = 503
    code = "unavailable"
    retryable = True


class LoadFailed(Unavailable):
    code = "load_failed"


class SidecarDied(Unavailable):
    code = "sidecar_died"


class SidecarStalled(Unavailable):
    code = "sidecar_stalled"


class OutOfMemory(Unavailable):
    code = "out_of_memory"


class DeadlinePassed(StentorError):
    status = 504
    code = "deadline_passed"
    retryable = True


class EngineFailed(StentorError):
    code = "engine_failed"


class ProtocolError(StentorError):
    code = "protocol_error"


class NoServer(StentorError):
    status = 503
    code = "no_server"
    retryable = True


class SettingsError(StentorError):
    code = "bad_setting"


def from_code(code: str, message: str, *, param: str | None = None, detail: str | None = None) -> StentorError:
    """The error a sidecar reported, as the class that carries its HTTP status; an unknown code is EngineFailed."""
    kind = _by_code(StentorError).get(code, EngineFailed)
    if kind is Busy:
        return Busy(message)
    return kind(message, param=param, detail=detail)


def _by_code(root: type[StentorError]) -> dict[str, type[StentorError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        found |= _by_code(child)
    return found
