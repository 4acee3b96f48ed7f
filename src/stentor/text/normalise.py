"""From text as people and language models write it to text as a voice says it: `normalise` and its switches.

Owns the order of the steps. Each step knows one thing: clean (characters), markup (thoughts, code, Markdown), scan
(numbers and what is like them, English and Chinese). The work is repeated until nothing changes, which makes the whole
idempotent: a client may send text through here twice and hear the same.
"""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field

from .clean import clean, drop_emoji
from .languages import code
from .markup import drop_code, drop_thoughts, strip_markdown

_MOST_ROUNDS = 8  # ordinary text needs two; more is markup nested to be difficult
_NESTED = re.compile(r"[<>\[\]()&;`\\]+")
_SPACES = re.compile(r"[ \t]+")
_LINE_ENDS = re.compile(r" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")
_KANA = re.compile(r"[\u3041-\u30ff]")


class Normalization(BaseModel):
    """What is rewritten before a voice sees the text. The request field `normalization_options`, and settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    think: bool = Field(default=True, description="Drop <think>…</think>, also where it is not closed.")
    code: bool = Field(default=True, description="Drop fenced code blocks; inline code keeps its words.")
    markdown: bool = Field(default=True, description="Drop the marks of Markdown and HTML tags, keep the words.")
    emoji: bool = Field(default=True, description="Drop emoji.")
    urls: bool = Field(default=True, description="Spell URLs, IP addresses, paths, file names, @handles and #hashtags.")
    emails: bool = Field(default=True, description="Spell e-mail addresses.")
    units: bool = Field(default=True, description="Read units in full: 5 km/h, 25 °C, 50%.")
    money: bool = Field(default=True, description="Read amounts of money: $4.5 million, €3k, ￥99.80.")
    dates: bool = Field(default=True, description="Read dates: 2024-03-05, March 5, 2024年3月5日.")
    times: bool = Field(default=True, description="Read times of day: 7:30 pm, 下午3:30.")
    phones: bool = Field(default=True, description="Read telephone numbers digit by digit.")
    versions: bool = Field(default=True, description="Read versions: v2.13.0, 1.2.3-rc1.")
    numbers: bool = Field(default=True, description="Read all other numbers, and signs such as + = ≥ → &.")
    abbreviations: bool = Field(default=True, description="Read Dr., No. 5, e.g., i.e., C++ and C# in full.")
    chinese: bool = Field(default=True, description="Read the above in Chinese where it stands in Chinese text.")


_EVERYTHING = Normalization()


def normalise(text: str, language: str | None = None, options: Normalization = _EVERYTHING) -> str:
    """The text in words that can be spoken; total on `str`, idempotent, linear in the length of the text.

    `language` is a code or a name. None decides between English and Chinese at each place; other languages get the
    steps that need no words (think, code, markdown, emoji, characters). `[pause 0.5s]` stays (see split.segments).

    >>> normalise("**Dr. Smith** paid $42.50 at 7:30 pm.")
    'Doctor Smith paid forty-two dollars and fifty cents at seven thirty PM.'
    >>> normalise("我用GPT-4o花了$3.50")
    '我用GPT四o花了三点五美元'
    """
    spoken = code(language)
    for _ in range(_MOST_ROUNDS):
        before, text = text, _round(text, spoken, options)
        if text == before:
            return text
    flat = _NESTED.sub(" ", text)
    return flat if flat == text else normalise(flat, language, options)


def _round(text: str, language: str | None, options: Normalization) -> str:
    text = _SPACES.sub(" ", clean(text))
    if options.think:
        text = drop_thoughts(text)
    if options.code:
        text = drop_code(text)
    if options.markdown:
        text = strip_markdown(text)
    if options.emoji:
        text = drop_emoji(text)
    if _is_read(text, language):
        from .scan import speak  # the rules: 30 ms of patterns that a `--help` need not wait for

        text = speak(text, "zh" if language == "yue" else language, lambda switch: bool(getattr(options, switch)))
    return _tidy(text)


def _is_read(text: str, language: str | None) -> bool:
    """Whether numbers can be put in words: not in a language without words here, nor in what is plainly Japanese."""
    return language in ("en", "zh", "yue") or (language is None and not _KANA.search(text))


def _tidy(text: str) -> str:
    text = _LINE_ENDS.sub("\n", _SPACES.sub(" ", text))
    return _BLANK_LINES.sub("\n\n", text).strip()
