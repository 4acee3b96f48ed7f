"""Cuts text into sentences, into pieces of a size, and at pause tags. Loses nothing; knows no model and no language.

Every piece is a slice of the input with the white space around it removed, so `"".join(pieces)` is the text again but
for white space. All work is linear in the text: 100k characters without one stop must pass (Kokoro-FastAPI#71, #95).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..errors import SettingsError
from .stops import CLOSERS, is_unspaced, sentence_ends

LONGEST_PAUSE_S = 10.0
LONGEST_SILENCE_S = 600.0
PAUSE_TAG = re.compile(
    r"\[pause[ \t]{1,8}([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})[ \t]{0,8}(ms|s)\]", re.IGNORECASE | re.ASCII
)
"""`[pause 0.5s]` or `[pause 500ms]`, in any case. Anything else in brackets is text."""

_CLAUSE = re.compile(
    rf"[,;:!?…][{re.escape(CLOSERS)}]*(?=\s)|\.(?=\s+[a-z])|[，；：、､]|—+|\s(?=[–-]\s)|[)\]}}”»」』】）》](?=\s)|\n+"
)
_SPACE = re.compile(r"\s+")
_SPOKEN_SIGNS = frozenset("%&+@°§©№℃℉‰")
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0")  # Hangul fillers: letters by category, nothing to see or say


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence that the text asked for."""

    seconds: float


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, none of them blank.

    >>> sentences("Dr. Smith paid $3.50. “Really?” she asked. 好的。再见！")
    ['Dr. Smith paid $3.50.', '“Really?” she asked.', '好的。', '再见！']
    """
    cuts = [0, *sentence_ends(text), len(text)]
    pieces = (text[start:end].strip() for start, end in pairwise(cuts))
    return [piece for piece in pieces if piece]


def split(text: str, budget: int) -> list[str]:
    """Pieces of at most `budget` characters: whole sentences packed greedily, else clauses, words, characters.

    >>> split("One. Two, three. Four.", 12)
    ['One.', 'Two, three.', 'Four.']

    Raises SettingsError where the budget is below 1.
    """
    if budget < 1:
        raise SettingsError(f"the budget of a piece is {budget} characters; it must be at least 1")
    levels = (
        list(sentence_ends(text)),
        [found.end() for found in _CLAUSE.finditer(text)],
        [found.start() for found in _SPACE.finditer(text)],
    )
    pieces, start, end = [], 0, len(text.rstrip())
    while start < end:
        start += len(text[start : start + budget]) - len(text[start : start + budget].lstrip())
        cut = end if end - start <= budget else _cut(text, start, budget, levels)
        if piece := text[start:cut].strip():
            pieces.append(piece)
        start = cut
    return pieces


def segments(text: str) -> list[str | Pause]:
    """The text between pause tags, and the pauses; adjacent pauses add up to LONGEST_PAUSE_S at most, all of them to
    LONGEST_SILENCE_S: 18 KB of tags would be hours of silence.

    >>> segments("One [pause 0.5s] two [PAUSE 500ms][pause 1s]")
    ['One', Pause(seconds=0.5), 'two', Pause(seconds=1.5)]
    """
    parts: list[str | Pause] = []
    last, left = 0, LONGEST_SILENCE_S
    for tag in PAUSE_TAG.finditer(text):
        _add_text(parts, text[last : tag.start()])
        left -= _add_pause(parts, float(tag[1]) / (1000 if tag[2].lower() == "ms" else 1), left)
        last = tag.end()
    _add_text(parts, text[last:])
    return parts


def is_speakable(text: str) -> bool:
    """Whether a voice has anything to say: a letter, a digit or a sign with a name (`%`, `&`, `№`).

    Blank, punctuation, emoji and zero-width characters alone are nothing (TTS.cpp#32, airi#454).
    """
    return any(
        (character.isalnum() and character not in _BLANK_LETTERS) or character in _SPOKEN_SIGNS for character in text
    )


def _add_text(parts: list[str | Pause], text: str) -> None:
    if stripped := text.strip():
        parts.append(stripped)


def _add_pause(parts: list[str | Pause], seconds: float, left: float) -> float:
    """Append a pause, or make the one before longer. Returns by how much there is more silence than before."""
    before = 0.0
    if parts and isinstance(last := parts[-1], Pause):
        before = last.seconds
        parts.pop()
    whole = min(before + seconds, LONGEST_PAUSE_S, before + left)
    if whole > 0:
        parts.append(Pause(whole))
    return whole - before


def _cut(text: str, start: int, budget: int, levels: Sequence[Sequence[int]]) -> int:
    """The best place to end a piece that begins at `start`; always past `start`."""
    limit = start + budget
    for places in levels:
        at = bisect_right(places, limit) - 1
        if at >= 0 and places[at] > start:
            return places[at]
    for at in range(limit, start, -1):
        if _between_words(text, at):
            return at
    for at in range(limit, start, -1):
        if _between_graphemes(text, at):
            return at
    return limit


def _between_words(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` parts no word, no number and no mark from what it closes or opens."""
    before, after = text[at - 1], text[at]
    if not _between_graphemes(text, at) or before in "（「『《“([{«" or after in CLOSERS + "，。！？；：、,.!?;:…%":
        return False
    return is_unspaced(before) or is_unspaced(after) or not (_in_word(before) and _in_word(after))


def _in_word(character: str) -> bool:
    return character.isalnum() or character in "'’.,-_" or unicodedata.category(character)[0] == "M"


def _between_graphemes(text: str, at: int) -> bool:
    """Whether a cut before `text[at]` leaves each visible character whole (marks, joiners, flags, Hangul letters)."""
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return True
    if unicodedata.category(after)[0] == "M" or after in "\u200c\u200d" or before == "\u200d":
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return False
    if _is_flag(before) and _is_flag(after):
        return _flags_before(text, at) % 2 == 0
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    return not ("\u1100" <= before <= "\u11ff" and "\u1160" <= after <= "\u11ff")


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    count = 0
    while count < 64 and count < at and _is_flag(text[at - 1 - count]):
        count += 1
    return count
