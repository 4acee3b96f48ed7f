"""A transcript in OpenAI's formats: json, text, srt, verbose_json, vtt.

Owns the shapes and keeps every time inside the recording and in order, whatever the engine gave. Knows no engine and
no request.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, Literal, TypeVar

from ..host.utterance import Transcript
from ..protocol import Segment, Word
from ..text import captions, languages

Format = Literal["json", "text", "srt", "verbose_json", "vtt"]
Task = Literal["transcribe", "translate"]
Piece = TypeVar("Piece", Segment, Word)

# OpenAI sends subtitles as plain text too, and its SDK gives a `str` for whatever is not JSON.
MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "srt": "text/plain; charset=utf-8",
    "verbose_json": "application/json",
    "vtt": "text/plain; charset=utf-8",
}


def render(
    transcript: Transcript, format: Format, *, task: Task = "transcribe", words: bool = False, candidates: bool = False
) -> str:
    """The body of a response. `words`: with word times; `candidates`: with the languages that were found."""
    match format:
        case "text":
            return f"{transcript.text.strip()}\n"
        case "srt":
            return captions.srt(cues(transcript))
        case "vtt":
            return captions.vtt(cues(transcript))
        case "verbose_json":
            return _json(verbose(transcript, task, words))
    return _json(plain(transcript, candidates))


def plain(transcript: Transcript, candidates: bool) -> dict[str, Any]:
    """The json format. `languages` is in it where the request named candidates, as gpt-transcribe does it."""
    body: dict[str, Any] = {"text": transcript.text.strip()}
    if candidates:
        body["languages"] = [{"code": transcript.language}] if transcript.language else []
    return {**body, "usage": usage(transcript)}


def verbose(transcript: Transcript, task: Task, words: bool) -> dict[str, Any]:
    """The verbose_json format, each segment with all of OpenAI's keys."""
    segments = ordered(transcript.segments, transcript.seconds)
    body = {
        "task": task,
        "language": "english" if task == "translate" else languages.name(transcript.language or "unknown"),
        "duration": round(transcript.seconds, 3),
        "text": transcript.text.strip(),
        "segments": [_segment(number, one) for number, one in enumerate(segments)],
    }
    if words:
        spoken = ordered(transcript.words, transcript.seconds)
        body["words"] = [{"word": one.word.strip(), "start": one.start, "end": one.end} for one in spoken]
    return {**body, "usage": usage(transcript)}


def usage(transcript: Transcript) -> dict[str, Any]:
    """What OpenAI would bill: begun seconds."""
    return {"type": "duration", "seconds": math.ceil(transcript.seconds)}


def cues(transcript: Transcript) -> list[captions.Cue]:
    """Subtitles from words, which can be cut where a reader needs it; from whole segments where there are none."""
    if transcript.words:
        words = ordered(transcript.words, transcript.seconds)
        return captions.cues_from_words((one.start, one.end, one.word) for one in words)
    return [captions.Cue(one.start, one.end, one.text) for one in ordered(transcript.segments, transcript.seconds)]


def ordered(pieces: list[Piece], seconds: float) -> list[Piece]:
    """The pieces with times inside the recording, none before the one ahead of it, none into the next.

    Models give times past the end and times that cross (facts/qwen3-asr.md 5 rows 6, 32, 33); players drop such cues.
    """
    last = round(seconds, 3) or math.inf
    found: list[Piece] = []
    for one in pieces:
        start = min(max(_time(one.start), found[-1].start if found else 0.0), last)
        if found:
            found[-1].end = min(found[-1].end, start)
        found.append(replace(one, start=start, end=min(max(_time(one.end), start), last)))
    return found


def _time(seconds: float) -> float:
    return round(seconds, 3) if math.isfinite(seconds) else 0.0


def _segment(number: int, one: Segment) -> dict[str, Any]:
    return {
        "id": number,
        "seek": round(one.start * 100),  # Whisper counts in frames of 10 ms
        "start": one.start,
        "end": one.end,
        "text": one.text,
        "tokens": one.tokens,
        "temperature": one.temperature,
        "avg_logprob": one.avg_logprob or 0.0,
        "compression_ratio": one.compression_ratio or 0.0,
        "no_speech_prob": one.no_speech_prob or 0.0,
    }


def _json(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
