"""Whisper through faster-whisper (CTranslate2): the bundled tiny.en, or any converted Whisper folder.

One window of at most 30 s is one unit of work, so that a file of hours takes flat memory, a cancel is obeyed within a
window, and a retry goes on from `committed_samples`. Knows CTranslate2; must not know where an upload came from.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from ..audio import read
from ..audio.windows import windows
from ..errors import LoadFailed, UnsupportedLanguage, UnsupportedOption
from ..models import store
from ..protocol import FromSidecar, Hello, Segment, Started, Text, Transcribe, Word
from ..text import languages
from .base import Launch, Progress, Rotation, Stopwatch, cpu, numerics, require_cpu

Samples = NDArray[np.float32]

RATE = 16_000
SLOTS = 4
# Whisper invents sentences for silence ("thanks for watching"; facts/qwen3-asr.md 5 row 29), so Silero gates it. A
# command of one second must pass: no least length of speech, generous padding. Speech is cut at longer silences and
# each piece is heard by itself: faster-whisper's own filter joins them, and its times then cross the gaps (row 32).
VAD = {"threshold": 0.4, "min_speech_duration_ms": 0, "min_silence_duration_ms": 2000, "speech_pad_ms": 300}
BEAM = 5
CAPABILITIES = ("language", "languages", "context", "temperature", "vad", "segment_timestamps", "word_timestamps")
VAD_OPTIONS = {
    "threshold": "threshold",
    "prefix_padding_ms": "speech_pad_ms",
    "silence_duration_ms": "min_silence_duration_ms",
}
"""OpenAI's names in `chunking_strategy`, and Silero's."""

OPTIONS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task": {"enum": ["transcribe", "translate"]},
        "temperature": {"type": "number", "minimum": 0, "maximum": 1},
        "languages": {"type": "array", "items": {"type": "string"}},
        "vad": {"type": "object", "properties": {name: {"type": "number"} for name in VAD_OPTIONS}},
        "limits": {"type": "object", "properties": {"max_seconds": {"type": "number"}}},
    },
}


class WhisperEngine(Rotation):
    """Understands what its checkpoint understands; asked for a language it does not have, it refuses."""

    phase = "window"

    def __init__(self, launch: Launch, progress: Progress) -> None:
        super().__init__()
        require_cpu(launch)
        progress("verifying", 0.0)
        folder = store.model_folder(launch.path, "model.bin") if launch.path else store.bundled_whisper()
        progress("importing", 0.2)
        from faster_whisper import WhisperModel

        progress("loading", 0.5)
        compute_type = str(launch.options.get("compute_type", "int8"))
        threads = int(launch.options.get("threads", psutil.cpu_count(logical=False) or 1))
        try:
            self._model: Any = WhisperModel(
                str(folder), device="cpu", compute_type=compute_type, cpu_threads=threads, local_files_only=True
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise LoadFailed(f"{folder} could not be loaded as a CTranslate2 Whisper model: {error}") from error
        progress("warming", 0.9)
        list(self._model.transcribe(np.zeros(RATE, np.float32), language="en", beam_size=1)[0])
        versions = {name: importlib.metadata.version(name) for name in ("faster-whisper", "ctranslate2")}
        self.hello = Hello(
            pid=os.getpid(),
            kind="stt",
            engine="whisper",
            model=launch.model,
            backend="ctranslate2",
            numerics=numerics(
                engine="whisper",
                weights=store.sha256(folder / "model.bin"),
                compute_type=compute_type,
                threads=threads,
                machine=platform.machine(),
                versions=versions,
                settings=[VAD, BEAM],
            ),
            device=cpu(),
            versions=versions,
            languages=list(self._model.supported_languages),
            slots=launch.slots or SLOTS,
            capabilities=[*CAPABILITIES, *(["translate"] if self._model.model.is_multilingual else [])],
            options=OPTIONS,
        )

    def submit(self, request: Transcribe) -> None:  # type: ignore[override]
        """Raises UnsupportedLanguage, or UnsupportedOption for live audio, which Whisper cannot do in one pass."""
        self._candidates(request)
        if request.path is None:
            raise UnsupportedOption("Whisper does not take live audio; send a file.", param="model")
        if request.options.get("task") == "translate" and "translate" not in self.hello.capabilities:
            raise UnsupportedOption(f"The model {self.hello.model} does not translate; it is English only.")
        super().submit(request)

    def work(self, request: Transcribe) -> Iterator[list[FromSidecar]]:
        watch = Stopwatch()
        candidates = self._candidates(request)
        limits = read.ReadLimits(**request.options.get("limits", {}))
        read.require_length(request.path or "", limits)
        yield [Started(id=request.id, slot=0)]
        heard = committed = request.committed_samples
        rest = _without_first(read.blocks(request.path or "", RATE, limits), committed)
        for at, samples in windows(rest, RATE):  # a window begins where the one before was cut, so a retry has the same
            first = committed + at
            watch.mark("decoded_s")
            text = self._listen(request, candidates, first, samples)
            watch.mark("first_text_s")
            if text.language:
                candidates = [text.language]  # one language a file: what the first speech was in
            heard = first + len(samples)
            yield [text]
        watch.add("audio_s", heard / RATE)
        yield [watch.done(request.id)]

    def _candidates(self, request: Transcribe) -> list[str]:
        """The languages it may be; none: any. Raises UnsupportedLanguage where this model has none of them."""
        param = "language" if request.language else "languages[]"
        named = [request.language] if request.language else list(request.options.get("languages", []))
        asked = [code for one in named if (code := languages.code(one))]
        found = [code for code in asked if code in self.hello.languages]
        if asked and not found:
            have = ", ".join(self.hello.languages[:12])
            raise UnsupportedLanguage(
                f"The model {self.hello.model} does not understand {', '.join(asked)}; it has: {have}. "
                'Configure a multilingual Whisper folder (models = { NAME = "whisper:/path" }) or leave language out.',
                param=param,
            )
        return found or (self.hello.languages if len(self.hello.languages) == 1 else [])

    def _listen(self, request: Transcribe, candidates: list[str], first: int, samples: Samples) -> Text:
        """One window: each stretch of speech in it, with times of the whole file."""
        text = Text(id=request.id, delta="", committed_samples=first + len(samples), segments=[], words=[])
        temperature = request.options.get("temperature")
        for start, end in self._speech(samples, request.options.get("vad", {})):
            found, info = self._model.transcribe(
                samples[start:end],
                language=self._language(samples[start:end], candidates),
                task=request.options.get("task", "transcribe"),
                beam_size=BEAM,
                initial_prompt=request.context or None,
                condition_on_previous_text=False,  # context over silence repeats for minutes (same facts, row 31)
                word_timestamps=request.timestamps == "word",
                **({"temperature": [temperature]} if temperature else {}),  # else Whisper's ladder from 0 upwards
            )
            segments = list(found)
            if segments:  # a stretch without words says nothing of its language
                text.language = info.language
            _add(text, segments, (first + start) / RATE, (first + end) / RATE)
        if len(self.hello.languages) == 1:
            text.language = self.hello.languages[0]
        if first == 0:
            text.delta = text.delta.lstrip()
        return text

    def _language(self, samples: Samples, candidates: list[str]) -> str | None:
        """The likeliest of the candidates; None leaves it to Whisper, among all it has."""
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        probabilities = dict(self._model.detect_language(samples)[2])
        return max(candidates, key=lambda one: probabilities.get(one, 0.0))

    def _speech(self, samples: Samples, asked: dict[str, float]) -> list[tuple[int, int]]:
        from faster_whisper.vad import VadOptions, get_speech_timestamps

        options = VadOptions(**VAD | {VAD_OPTIONS[name]: value for name, value in asked.items()})
        return [(one["start"], one["end"]) for one in get_speech_timestamps(samples, options)]


def _without_first(blocks: Iterable[Samples], count: int) -> Iterator[Samples]:
    """The stream behind its first `count` samples."""
    for block in blocks:
        skipped = min(count, len(block))
        count -= skipped
        if skipped < len(block):
            yield block[skipped:]


def _add(text: Text, segments: list[Any], start: float, end: float) -> None:
    """Append what was heard between `start` and `end`; Whisper's last time may lie past the audio."""
    assert text.segments is not None
    assert text.words is not None
    for one in segments:
        text.delta += re.sub(r"\s+", " ", one.text)  # Whisper brings the space where the script has one
        text.segments.append(_segment(one, start, end))
        text.words += [_word(word, start, end) for word in one.words or []]


def _segment(one: Any, offset: float, end: float) -> Segment:
    return Segment(
        start=min(offset + one.start, end),
        end=min(offset + one.end, end),
        text=one.text.strip(),
        tokens=list(one.tokens),
        temperature=float(one.temperature or 0.0),
        avg_logprob=float(one.avg_logprob),
        compression_ratio=float(one.compression_ratio),
        no_speech_prob=float(one.no_speech_prob),
    )


def _word(one: Any, offset: float, end: float) -> Word:
    return Word(
        word=one.word,  # with its space, or subtitles could not tell "well-known" from "well - known"
        start=min(offset + one.start, end),
        end=min(offset + one.end, end),
        probability=float(one.probability),
    )
