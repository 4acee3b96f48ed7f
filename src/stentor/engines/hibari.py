"""The bundled English voice: hibari-tts, one sentence a unit, about a hundred times faster than real time on one core.

Owns what hibari lacks as a server's voice: a bounded unit of work, trimmed padding, the common loudness, and an answer
for text that it would drop without a word (it is silent on Chinese; facts/bundled-voices.md).
"""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import json
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
from ..journal import Journal
from ..models.store import package_folder
from ..protocol import FromSidecar, Hello, Resume, Started, Synthesize, VoiceFacts
from ..text.split import sentences, split
from .base import Launch, Progress, Rotation, Stopwatch, audio_messages, cpu, numerics, require_cpu

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

# Letters that neither hibari's net for unknown words knows nor Unicode decomposes, each with how English writes it.
_SPELLINGS = """
ĐD ÐD ĦH ħh ĸk ŊN ŦT ŧt ƀb ƁB ƂB ƃb ƇC ƈc ƉD ƊD ƋD ƌd ƑF ƓG ƗI ƘK ƙk ƚl ƝN ƞn ƟO ƤP ƥp ƫt ƬT ƭt ƮT ƲV ƳY ƴy ƵZ ƶz ǝe
ǤG ǥg ȤZ ȥz ȺA ȻC ȼc ȽL ȾT ȿs ɀz ɃB ɄU ɆE ɇe ɈJ ɉj ɊQ ɋq ɌR ɍr ɎY ɏy ßss ẞSS ǢAE ǣae ǼAE ǽae ǾO ǿo ƆO ɔo ƏA ƐE ƔG
ƩSH ƷZH ʒzh ǮZH ǯzh ŉn
"""
_SPELLED = {pair[0]: pair[1:] for pair in _SPELLINGS.split()}
# Signs that change what is said. hibari drops many of them; arrows, bullets, emoji and trademarks may be skipped.
_SIGNS = re.compile("[‰‱′″٪℃℉№♯♭°]")
_ARROWS = re.compile(r"[\u2190-\u21ff\u27f0-\u297f]")
# Greek and micro signs that hibari reads by name when they stand alone, as in "10 µm" or "2 π".
READ_ALONE = frozenset("µμπΩωαβγδθλσ")


class HibariEngine(Rotation):
    """Speaks English. Each sentence has a noise seed of its own, so that a resumed utterance is the same bytes."""

    def __init__(self, launch: Launch, progress: Progress) -> None:
        super().__init__()
        require_cpu(launch)
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
            capabilities=["speed", "seed", "resume"],
        )

    def submit(self, request: Synthesize) -> None:  # type: ignore[override]
        """Raises UnspeakableText where a span of the text is not hibari's."""
        require_speakable(request.text)
        super().submit(request)

    def work(self, request: Synthesize) -> Iterator[list[FromSidecar]]:
        """Sentence by sentence. A resumed one begins with the one that was being said, and drops what was delivered."""
        watch = Stopwatch()
        rate = self._voice.sample_rate
        resume = request.resume or Resume()
        out: list[FromSidecar] = [Started(id=request.id, slot=0, sample_rate=rate)]
        first = resume.first_sample
        for first, samples in self._speak(request, resume, rate):
            watch.mark("first_audio_s")
            known = min(max(0, resume.samples - first), len(samples))
            out += audio_messages(request.id, first + known, samples[known:], rate)
            first += len(samples)
            yield out
            out = []
        if first == 0:
            raise NothingToSay("The text holds nothing that this voice can say.", param="input")
        watch.add("audio_s", first / rate)
        yield [*out, watch.done(request.id)]

    def _speak(self, request: Synthesize, resume: Resume, rate: int) -> Iterator[tuple[int, Samples]]:
        """(first sample, samples) of one unit after the other; the last is what the speed filter still held."""
        low, high = OWN_SPEED
        own = min(max(request.speed, low), high)
        tempo = pcm.Tempo(request.speed / own, rate)
        if own != request.speed:  # the filter's state is in no journal: say all of it again, which is quick
            resume = Resume(samples=resume.samples)
        journal = Journal.open(Path(request.journal)) if request.journal and own == request.speed else None
        first = resume.first_sample
        for index, sentence in enumerate(units(request.text)):
            if index < resume.frames:
                continue
            samples = tempo.push(self._sentence(sentence, own, (request.seed, index)))
            yield first, samples
            first += len(samples)
            if journal:
                journal.commit(index + 1, first)
        rest = tempo.finish()
        if len(rest):
            yield first, rest

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

    hibari knows Latin letters; other scripts come out as nothing (Han, Kana, Arabic) or as letter names (Cyrillic).
    """
    foreign = next(_foreign_spans(text), None)
    if foreign:
        raise UnspeakableText(
            f"This English voice cannot say {foreign[:40]!r}. It speaks English only, and no model for other "
            "languages is configured here (GET /v1/models); leave that span out or write it in English.",
            param="input",
        )


def spell(text: str) -> str:
    """The text in letters that hibari hears: of the Latin letters, 520 came out as nothing at all (measured)."""
    return "".join(_spelled(one) or one for one in text)


def phonemize(voice: Hibari, text: str) -> list[str]:
    """Phonemes by sentence. Raises UnspeakableText where hibari fails on the text or drops a part of it."""
    spelled = spell(text)
    try:
        phonemes: list[str] = voice.phonemize(spelled)
        dropped = _dropped_sign(voice, spelled, phonemes) or _dropped_word(voice, spelled)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        # hibari 0.2.1 fails on some digits, such as "⑴": an error of the text, not of the server
        raise UnspeakableText(
            f"This voice cannot read the sentence {text[:60]!r} ({error}); rephrase it.", param="input"
        ) from error
    if dropped:
        raise UnspeakableText(f"This voice has no words for {dropped!r} in {text[:60]!r}; write it out.", param="input")
    return phonemes


@functools.cache
def _known_letters() -> frozenset[str]:
    """The letters of hibari's net for unknown words; each of them is heard in any word (measured)."""
    net = package_folder("hibari") / "assets" / "oov.json"
    return frozenset(json.loads(net.read_text(encoding="utf-8"))["in"])


@functools.lru_cache(maxsize=4096)
def _spelled(letter: str) -> str | None:
    """A Latin letter in letters that hibari hears; None where it is none, or nobody knows how to write it."""
    if letter.isascii() or not unicodedata.category(letter).startswith("L"):
        return letter
    plain = unicodedata.normalize("NFKC", letter)
    if "LATIN" not in unicodedata.name(plain[0], ""):
        return None
    if all(one in _known_letters() for one in plain):
        return plain
    base = "".join(one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one))
    written = "".join(one if one.isascii() else _SPELLED.get(one, "?") for one in base)
    return None if "?" in written else written


def _foreign_spans(text: str) -> Iterator[str]:
    for match in re.finditer(r"[^\W\d_a-zA-Z]+", text):
        letters = match.group()
        if letters in READ_ALONE:
            continue
        for foreign, span in itertools.groupby(letters, key=lambda letter: _spelled(letter) is None):
            if foreign:
                yield "".join(span)


def _dropped_sign(voice: Hibari, text: str, phonemes: list[str]) -> str | None:
    """A sign of meaning whose absence would sound the same: hibari dropped it ("100€", "3 ≥ 2")."""
    spoken = _sounds(phonemes)
    for at, sign in enumerate(text):
        if _has_meaning(sign) and _sounds(voice.phonemize(f"{text[:at]} {text[at + 1 :]}")) == spoken:
            return sign
    return None


def _has_meaning(sign: str) -> bool:
    category = unicodedata.category(sign)
    if category == "Sm":
        return not sign.isascii() and not _ARROWS.match(sign)
    return category in ("Sc", "No", "Nl") or bool(_SIGNS.match(sign))


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
