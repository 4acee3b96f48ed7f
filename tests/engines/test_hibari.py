"""The bundled English voice: bounded units, trimmed padding, the common loudness, and nothing dropped in silence."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from stentor.audio import pcm
from stentor.engines import hibari
from stentor.engines.base import Launch
from stentor.engines.hibari import HibariEngine, require_speakable, units
from stentor.errors import UnspeakableText
from stentor.protocol import Audio, Done, Error, FromSidecar, Started, Synthesize

RATE = 24_000


@pytest.fixture(scope="module")
def engine() -> HibariEngine:
    return HibariEngine(Launch("hibari"), lambda stage, fraction: None)


def speak(engine: HibariEngine, text: str, **fields: object) -> list[FromSidecar]:
    engine.submit(Synthesize(id="a", text=text, **{"seed": 1, **fields}))  # type: ignore[arg-type]
    heard: list[FromSidecar] = []
    while not heard or not isinstance(heard[-1], Done | Error):
        heard += engine.advance()
    return heard


def samples(heard: list[FromSidecar]) -> np.ndarray:
    blocks = [one for one in heard if isinstance(one, Audio)]
    joined = np.concatenate([pcm.from_f32(one.pcm) for one in blocks])
    ends = np.cumsum([len(pcm.from_f32(one.pcm)) for one in blocks])
    assert [one.first_sample for one in blocks] == [0, *ends[:-1]]
    return joined


def test_each_unit_of_work_is_one_sentence(engine: HibariEngine) -> None:
    engine.submit(Synthesize(id="a", text="One sentence. And a second one! Is this the third?", seed=1))
    turns = [engine.advance() for _ in range(5)]
    assert [any(isinstance(one, Audio) for one in turn) for turn in turns] == [True, True, True, False, False]
    assert isinstance(turns[0][0], Started)
    assert isinstance(turns[3][-1], Done)
    assert turns[4] == []


def test_a_long_sentence_is_cut_so_that_no_unit_is_long(engine: HibariEngine) -> None:
    pieces = list(units("and the road goes on " * 200))
    assert max(map(len, pieces)) <= hibari.UNIT_CHARS
    assert " ".join(pieces).split() == ("and the road goes on " * 200).split()


def test_the_padding_that_hibari_adds_is_trimmed(engine: HibariEngine) -> None:
    sound = np.flatnonzero(np.abs(samples(speak(engine, "Hello there."))) > 0.01)
    assert sound[0] / RATE < 0.1


def test_the_loudness_is_the_common_one_and_nothing_clips(engine: HibariEngine) -> None:
    text = "The quick brown fox jumps over the lazy dog. She sells sea shells by the sea shore."
    spoken = samples(speak(engine, text))
    loud = spoken[np.abs(spoken) > 0.005]
    assert -26 < pcm.rms_db(loud) < -18
    assert np.abs(spoken).max() < 1.0


def test_the_same_seed_gives_the_same_bytes_alone_and_in_company(engine: HibariEngine) -> None:
    text = "First we speak. Then we listen."
    alone = samples(speak(engine, text, seed=5))
    engine.submit(Synthesize(id="other", text="Something else goes on here. And on.", seed=9))
    engine.submit(Synthesize(id="a", text=text, seed=5))
    heard: list[FromSidecar] = []
    while sum(isinstance(one, Done) for one in heard) < 2:
        heard += engine.advance()
    assert np.array_equal(alone, samples([one for one in heard if one.id == "a"]))  # type: ignore[union-attr]
    assert not np.array_equal(alone, samples(speak(engine, text, seed=6)))


@pytest.mark.parametrize("speed", [0.25, 0.5, 0.8, 1.5, 2.0, 4.0])
def test_speed_changes_the_duration_as_asked(engine: HibariEngine, speed: float) -> None:
    text = "The weather today is sunny with a light breeze from the south and some clouds."
    normal = len(samples(speak(engine, text)))
    assert len(samples(speak(engine, text, speed=speed))) == pytest.approx(normal / speed, rel=0.25)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("你好", "你好"),
        ("Hello 世界, again.", "世界"),
        ("The word for yes is да.", "да"),
        ("これはテストです", "これはテストです"),
        ("مرحبا", "مرحبا"),
        ("GDP增长3%", "增长"),
        ("안녕 friend", "안녕"),
    ],
)
def test_a_span_in_another_script_is_an_error_that_names_it(text: str, span: str) -> None:
    with pytest.raises(UnspeakableText) as caught:
        require_speakable(text)
    assert repr(span) in caught.value.message
    assert caught.value.param == "input"


@pytest.mark.parametrize(
    "text", ["naïve café", "10 µm", "2 π", "don’t", "Ｈｅｌｌｏ", "ﬁne", "1st & 2nd", "A™ b®", "→ go"]
)
def test_what_hibari_knows_is_spoken(engine: HibariEngine, text: str) -> None:
    assert isinstance(speak(engine, text)[-1], Done)


def test_no_latin_letter_is_dropped_without_a_word(engine: HibariEngine) -> None:
    """Each of them changes what is heard, in most of five invented words, or the text is refused."""
    dropped = []
    for letter in map(chr, [*range(0xC0, 0x250), *range(0x1E00, 0x1F00)]):
        if unicodedata.category(letter).startswith("L") and not list(hibari._foreign_spans(letter)):
            silent = sum(_heard(engine, word, letter) == _heard(engine, word, "") for word in INVENTED)
            if silent > len(INVENTED) // 2:
                dropped.append(letter)
    assert dropped == []


INVENTED = ("b{}t", "zol{}", "{}ank", "mar{}in", "k{}")


def _heard(engine: HibariEngine, word: str, letter: str) -> str:
    return hibari._sounds(engine._voice.phonemize(hibari.spell(word.format(letter))))


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        ("It costs 100€.", "€"),
        ("€100 and 100€", "€"),
        ("3 ≥ 2 holds.", "≥"),
        ("5₽ only", "₽"),
        ("⅔", "⅔"),
        ("50‱", "‱"),
        ("5′ tall", "′"),
        ("C♯ minor", "♯"),
        ("x ∝ y", "∝"),
        ("x − 3", "−"),
        ("3∶4", "∶"),
        ("5 ℃", "℃"),
        ("5٪", "٪"),
        ("see $ now", "$"),
    ],
)
def test_a_sign_that_hibari_drops_is_an_error_and_not_a_changed_meaning(
    engine: HibariEngine, text: str, dropped: str
) -> None:
    error = speak(engine, text)[-1]
    assert isinstance(error, Error)
    assert error.code == "unspeakable_text"
    assert dropped in error.message


def test_an_exception_of_hibari_is_a_clear_error_of_the_text(engine: HibariEngine) -> None:
    error = speak(engine, "Item ⑴ is here.")[-1]
    assert isinstance(error, Error)
    assert (error.code, error.param) == ("unspeakable_text", "input")


@pytest.mark.parametrize("text", ["...", "!?", "🎉"])
def test_text_without_words_is_an_error_and_not_silence(engine: HibariEngine, text: str) -> None:
    error = speak(engine, text)[-1]
    assert isinstance(error, Error)
    assert error.code == "nothing_to_say"


def test_random_text_never_raises_out_of_the_engine(engine: HibariEngine) -> None:
    alphabet = list("abc XYZ 0123456789 .,!?'\"-–—()[]{}<>@#$%^&*_+=/\\|~`éßøñ½²™©•…“”‘’\t\n\u200b\u00ad")
    choose = np.random.default_rng(7)
    for _ in range(150):
        text = "".join(choose.choice(alphabet, choose.integers(1, 60)))
        assert isinstance(speak(engine, text)[-1], Done | Error), text
