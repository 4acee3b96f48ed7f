"""What holds for every text: the same when repeated, no error, no word lost, each switch its own, linear time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from stentor.text.normalise import Normalization, normalise
from stentor.text.split import segments, sentences, split
from stentor.text.tables import words

NASTY = words(
    "* ** _ __ ` ``` # - > | [ ] ( ) ]( ![ <b> </b> < > <think> </think> &amp; &lt; & amp; $ € ￥ 元 1 2 10 0 3.14 "
    "1,234 2024 – / : 7:30 p.m. % ℃ °C km km/h st s x × = ≥ → -> ~ ^ + @ #tag http:// a.com www. e.g. Dr. No. v2.1.3 v "
    "rc1 May Jan. call 911 C++ C# .NET 你好 我 年 月 日 点 第 个 。 ， …… “ ” ’ ' \" 👍 🏽 \u200d \ufe0f 1️⃣ \u0301 e "
    "\ud800 \x00 \u200f が 한 д Z T \\ ~~~ --- === [pause 1s] [^1] <!-- --> . .. … ! ? , ; I U.S. ½ ² ① A$ k M "
    "million ２ ： 24/7 1/2 192.168.1.1 /usr/ C:\\ a@b.co"
)
TEXTS = st.one_of(
    st.lists(st.sampled_from([*NASTY, "[pause ", " ", "\n", "\t", "\u3000", " pm", "March "]), max_size=14).map(
        "".join
    ),
    st.text(max_size=40),
)
OPTIONS = st.one_of(
    st.just(Normalization()),
    st.builds(Normalization, **{name: st.booleans() for name in Normalization.model_fields}),
)
LANGUAGES = st.sampled_from([None, "en", "zh", "ja", "de", "auto", "Chinese"])
ANY_SIZE = settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])

CORPUS = [
    "Dr. Smith paid $42.50 on 3/5/2024, at 7:30 p.m. Then he left (for good). See https://a.com/b_c?d=1!",
    "## Plan\n\n1. **Buy** 2 kg of `flour`\n2. Call 555-1234\n\n| a | 1/2 |\n|---|---|\n\n> “No.” 5 ≥ 3 → ok 👍",
    "我用GPT-4o花了$3.50，在2024年3月5日下午3:30，气温25℃，比分3:2。No. 5是v2.13.0！",
    "Schönen Tag! 3,50 € für 2 Äpfel. Ça va? 5 % d’eau. ¿Qué? 東京は5時です。한국 3개. Привет 5.",
]
UNITS = (
    *words("* [ < 1, a.a.a. a 1 ` <think> &amp; [a]( | a@ /a 1- $1 www. _ # ' 好1 。 👍 e\u0301 \u0591\u05a0 <b v1."),
    *(" ", "\n", "```\n", "[pause ", "<b ", "Dr. ", "1 March "),
)


@ANY_SIZE
@given(TEXTS, LANGUAGES, OPTIONS)
@example("`<think>`", None, Normalization())
@example("/-²a/b.py", "en", Normalization())
def test_normalising_twice_changes_nothing(text: str, language: str | None, options: Normalization) -> None:
    once = normalise(text, language, options)
    assert normalise(once, language, options) == once


@pytest.mark.parametrize("text", CORPUS)
def test_real_text_is_the_same_after_a_second_time(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@ANY_SIZE
@given(TEXTS, LANGUAGES)
def test_what_comes_out_can_be_written_as_utf8(text: str, language: str | None) -> None:
    normalise(text, language).encode("utf-8")


WORDS = st.lists(st.sampled_from(words("apple Pear was running don't café 你好 世界 naïve well-known I'm")), min_size=1)


@settings(max_examples=200, deadline=None)
@given(
    WORDS,
    st.lists(st.sampled_from([" ", ", ", ". ", " 5 ", " $3 ", " 7:30 ", " **", "** ", " _", "\n- ", " 👍 ", " → "])),
)
def test_no_word_is_lost(said: list[str], between: list[str]) -> None:
    joints = [*between, *[" "] * len(said)]
    text = "".join(word + joint for word, joint in zip(said, joints, strict=False))
    spoken = normalise(text)
    at = 0
    for word in said:
        at = spoken.find(word, at)
        assert at >= 0, (text, spoken, word)
        at += len(word)


SWITCHED = {
    "think": "<think>a</think> b",
    "code": "`a`",
    "markdown": "**a**",
    "emoji": "a 👍",
    "urls": "https://a.com/b",
    "emails": "a.b@c.com",
    "units": "5 km/h",
    "money": "$4.50",
    "dates": "2024-03-05",
    "times": "7:30 pm",
    "phones": "555-1234",
    "versions": "v2.13.0",
    "numbers": "1,234",
    "abbreviations": "Dr. Smith",
    "chinese": "3个",
}


@pytest.mark.parametrize(("switch", "text"), SWITCHED.items())
def test_each_switch_turns_off_its_own_step_and_no_other(switch: str, text: str) -> None:
    on, off = Normalization(), Normalization.model_validate({switch: False})
    assert normalise(text, None, on) != text
    assert normalise(text, None, off) == text
    others = [other for name, other in SWITCHED.items() if name not in (switch, "chinese")]
    assert [normalise(other, None, off) for other in others] == [normalise(other, None, on) for other in others]


def test_every_switch_has_a_row() -> None:
    assert SWITCHED.keys() == Normalization.model_fields.keys()


def test_an_unknown_switch_is_refused() -> None:
    with pytest.raises(ValidationError, match="emojis"):
        Normalization.model_validate({"emojis": False})


@pytest.mark.parametrize("language", ["ja", "ko", "de", "fr", "Japanese"])
def test_other_languages_get_no_english_words(language: str) -> None:
    assert normalise("**5** € → v2.0 👍 `x`", language) == "5 € → v2.0 x"


def test_japanese_is_recognised_and_left_alone() -> None:
    assert normalise("東京は5時です。") == "東京は5時です。"


def test_numbers_in_other_scripts_are_left_alone() -> None:
    assert normalise("Привет 5. 한국 3개.") == "Привет 5. 한국 3개."


def _seconds(work: Callable[[str], object], text: str) -> float:
    started = time.perf_counter()
    work(text)
    return time.perf_counter() - started


def _everything(text: str) -> None:
    normalise(text)
    sentences(text)
    split(text, 300)
    segments(text)


@pytest.mark.parametrize("unit", UNITS)
def test_four_times_the_text_takes_about_four_times_as_long(unit: str) -> None:
    """Quadratic work takes 16 times, each time it is tried; a neighbour's load or the collector does so only once."""
    short = (unit * 40_000)[:40_000]
    _everything(short[:1000])

    def growth() -> float:
        return _seconds(_everything, short * 4) / max(_seconds(_everything, short), 0.05)

    assert any(growth() < 9 for _ in range(4))


def test_a_hundred_thousand_characters_without_a_stop_pass() -> None:
    text = "word " * 20_000
    assert normalise(text) == text.strip()
    assert normalise("好" * 100_000) == "好" * 100_000
    assert len(normalise("9" * 100_000).split()) == 100_000
