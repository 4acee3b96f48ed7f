"""The bundled English voice: hibari-tts, one sentence a unit, about a hundred times faster than real time on one core.

Owns what hibari lacks as a server's voice: a bounded unit of work, trimmed padding, the common loudness, and an answer
for text that it would drop without a word (it is silent on Chinese; facts/bundled-voices.md).
"""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import platform
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..audio import pcm
from ..errors import NothingToSay, UnspeakableText
from ..protocol import FromSidecar, Hello, Started, Synthesize, VoiceFacts
from ..text.split import sentences, split
from .base import Launch, Progress, Rotation, Stopwatch, audio_messages, cpu, numerics

if TYPE_CHECKING:
    from hibari import Hibari

Samples = NDArray[np.float32]

VOICE = "heart"  # the one voice inside the wheel; hibari would download any other
LANGUAGES = ("en",)
SLOTS = 32  # a slot costs a generator; with 32, as many clients hear their first sentence within half a second
UNIT_CHARS = 240  # hibari's cost grows faster than its text: 400 characters take 0.17 s, 4,000 take 6.3 s (measured)
OWN_SPEED = (0.5, 2.0)  # beyond, hibari's durations saturate (4.0 gives 2.2); FFmpeg's atempo does the rest
GAIN = 1.6  # hibari speaks at 0.05 RMS, peaks 0.55; this brings it to the -22 dBFS that all voices share
LEAD_S = 0.02  # hibari pads 0.3 s before and 0.5 s behind; the lead is first-audio latency
GAP_S = 0.25
SILENCE_DB = -50.0

# Signs that carry meaning, so that dropping one changes what is said. Emoji, arrows and ornaments may be skipped.
MEANINGFUL = re.compile(r"[±×÷≈≠≤≥∞√∑∏∂∫∆°%‰½⅓⅔¼¾⅛⅜⅝⅞]")
# Greek and micro signs that hibari reads by name when they stand alone, as in "10 µm" or "2 π".
READ_ALONE = frozenset("µμπΩωαβγδθλσ")


class HibariEngine(Rotation):
    """Speaks English. Each sentence has a noise seed of its own, so that a resumed utterance is the same bytes."""

    def __init__(self, launch: Launch, progress: Progress) -> None:
        super().__init__()
        progress("importing", 0.0)
        from hibari import Hibari

        progress("loading", 0.3)
        self._voice = Hibari(voice=VOICE, threads=1)
        progress("warming", 0.6)  # the first call reads the lexicons: 0.36 s (measured)
        self._voice("Ready.", seed=0)
        self.hello = Hello(
            pid=os.getpid(),
            kind="tts",
            engine="hibari",
            model=launch.model,
            backend="onnx",
            numerics=_numerics(self._voice),
            device=cpu(),
            versions={name: importlib.metadata.version(name) for name in ("hibari-tts", "onnxruntime", "numpy")},
            voices=[VoiceFacts(id=VOICE, name="Heart", languages=list(LANGUAGES))],
            languages=list(LANGUAGES),
            slots=launch.slots or SLOTS,
            capabilities=["speed", "seed"],
        )

    def submit(self, request: Synthesize) -> None:  # type: ignore[override]
        """Raises UnspeakableText where a span of the text is not hibari's."""
        require_speakable(request.text)
        super().submit(request)

    def work(self, request: Synthesize) -> Iterator[list[FromSidecar]]:
        watch = Stopwatch()
        rate = self._voice.sample_rate
        out: list[FromSidecar] = [Started(id=request.id, slot=0, sample_rate=rate)]
        first = 0
        for samples in self._speak(request, rate):
            watch.mark("first_audio_s")
            out += audio_messages(request.id, first, samples, rate)
            first += len(samples)
            yield out
            out = []
        if first == 0:
            raise NothingToSay("The text holds nothing that this voice can say.", param="input")
        watch.add("audio_s", first / rate)
        yield [*out, watch.done(request.id)]

    def _speak(self, request: Synthesize, rate: int) -> Iterator[Samples]:
        """The utterance, one unit's samples at a time; the last is what the speed filter still held."""
        low, high = OWN_SPEED
        own = min(max(request.speed, low), high)
        tempo = pcm.Tempo(request.speed / own, rate)
        for index, sentence in enumerate(units(request.text)):
            yield tempo.push(self._sentence(sentence, own, (request.seed, index)))
        rest = tempo.finish()
        if len(rest):
            yield rest

    def _sentence(self, text: str, speed: float, seed: tuple[int, int]) -> Samples:
        phonemes = [one for one in phonemize(self._voice, text) if _sounds([one])]  # "…" alone would be a sigh
        noise = np.random.default_rng(seed)
        parts = [self._voice.from_ids(self._voice.ids(one), speed, noise) for one in phonemes]
        rate = self._voice.sample_rate
        trimmed = [pcm.trim_silence(one, rate, threshold_db=SILENCE_DB, lead_s=LEAD_S, tail_s=LEAD_S) for one in parts]
        gap = np.zeros(int(GAP_S * rate / speed), np.float32)
        spoken = [piece for part in trimmed if len(part) for piece in (pcm.apply_gain(part, GAIN), gap)]
        return np.concatenate(spoken) if spoken else np.zeros(0, np.float32)


def units(text: str) -> Iterator[str]:
    """Sentences, the overlong ones in pieces, so that no unit of work is long."""
    for sentence in sentences(text):
        yield from split(sentence, UNIT_CHARS)


def require_speakable(text: str) -> None:
    """Raises UnspeakableText that names the first span hibari would drop or spell as noise.

    hibari's lexicon and its net for unknown words know Latin letters; other scripts come out as nothing (Han, Kana,
    Arabic) or as letter names (Cyrillic).
    """
    foreign = next(_foreign_spans(text), None)
    if foreign:
        raise UnspeakableText(
            f"This English voice cannot say {foreign[:40]!r}. Use a model that speaks the language of that text "
            "(Qwen3-TTS speaks ten, Chinese among them; see docs), or leave the span out.",
            param="input",
        )


def phonemize(voice: Hibari, text: str) -> list[str]:
    """Phonemes by sentence. Raises UnspeakableText where hibari fails on the text or drops a part of it."""
    try:
        phonemes: list[str] = voice.phonemize(text)
        dropped = _dropped_sign(voice, text, phonemes) or _dropped_word(voice, text)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        # hibari 0.2.1 fails on some digits, such as "⑴": an error of the text, not of the server
        raise UnspeakableText(
            f"This voice cannot read the sentence {text[:60]!r} ({error}); rephrase it.", param="input"
        ) from error
    if dropped:
        raise UnspeakableText(f"This voice has no words for {dropped!r} in {text[:60]!r}; write it out.", param="input")
    return phonemes


def _foreign_spans(text: str) -> Iterator[str]:
    for match in re.finditer(r"[^\W\d_a-zA-Z]+", text):
        letters = match.group()
        if letters in READ_ALONE:
            continue
        for foreign, span in itertools.groupby(letters, key=_is_foreign):
            if foreign:
                yield "".join(span)


def _is_foreign(letter: str) -> bool:
    """A letter of a script other than Latin; full-width and ligature forms count as what they stand for."""
    plain = unicodedata.normalize("NFKC", letter)[0]
    return unicodedata.category(letter).startswith("L") and "LATIN" not in unicodedata.name(plain, "")


def _dropped_sign(voice: Hibari, text: str, phonemes: list[str]) -> str | None:
    """A sign of meaning whose absence would sound the same: hibari dropped it ("100€", "3 ≥ 2")."""
    signs = {one for one in text if unicodedata.category(one) in ("Sc", "No") or MEANINGFUL.match(one)}
    spoken = _sounds(phonemes)
    return next((one for one in sorted(signs) if _sounds(voice.phonemize(text.replace(one, " "))) == spoken), None)


def _sounds(phonemes: list[str]) -> str:
    """What is heard of phonemes: letters, without stress, spaces and punctuation."""
    return "".join(filter(str.isalpha, "".join(phonemes)))


def _dropped_word(voice: Hibari, text: str) -> str | None:
    """A token with letters or digits that came out silent."""
    from hibari.g2p import normalize

    tokens = voice.g2p.phonemize_tokens(voice.g2p.tokenize(normalize(text)))
    return next((one.text for one in tokens if not one.phonemes and any(map(str.isalnum, one.text))), None)


def _numerics(voice: Hibari) -> str:
    from hibari import dsp

    from ..models.store import sha256

    return numerics(
        engine="hibari",
        weights=sha256(Path(voice.model_path)),
        threads=1,
        fft=dsp.FFT_BACKEND,
        machine=platform.machine(),
        versions=[importlib.metadata.version(name) for name in ("hibari-tts", "onnxruntime", "numpy")],
        settings=[GAIN, LEAD_S, GAP_S, SILENCE_DB, UNIT_CHARS],
    )
