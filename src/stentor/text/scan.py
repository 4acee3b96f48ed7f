"""Finds what is not written as it is spoken, decides its language, and puts the words in its place.

One left-to-right pass: at each place where something may begin, the first rule that fits wins, so that a date is never
read as a subtraction, and a rule that is switched off still keeps its text from the rules after it. Knows no rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Literal

from .chinese import chinese_rules, chinese_sign_rules
from .english import figure_rules, letter_rules
from .figures import sign_rules
from .network import network_rules
from .rules import Rule, as_written
from .split import PAUSE_TAG
from .stops import is_unspaced

Script = Literal["en", "zh", "other"]

_START = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]|[0-9]|\[(?=[Pp])|[$€£¥￥₹₩₽₿@#&%°§№©²³½¼¾⅓⅔⅛≥≤≠≈±×÷−√∞→←↔↑↓<>=~+^!_]"
    r"|-(?=[0-9>.$€£¥￥-])|\((?=[0-9]{3}\))|(?<=[0-9]),(?=[0-9])|\.(?=[0-9A-Za-z/])|/(?=[A-Za-z0-9_.])"
)
_CLAUSE_STOPS = "。！？!?\n；;，、"
_REACH = 24  # characters to look for a letter that tells the language; a bound keeps the pass linear
_KEPT = Rule(None, PAUSE_TAG, as_written)


def speak(text: str, language: str | None, enabled: Callable[[str], bool]) -> str:
    """The text with its tokens in words; `enabled` says which switches are on.

    `language` is "en", "zh" or None (each token by the letters around it). Tokens among other letters stay.
    """
    language_at = _languages(text, language, enabled("chinese"))
    parts: list[str] = []
    last = position = 0
    while start := _START.search(text, position):
        at = start.start()
        rules = _rules(language_at(at), text[at])
        position, words = _apply(rules, text, at, enabled)
        if words is not None:
            parts.append(_spaced(text[last:at], words, text[position : position + 1], parts))
            last = position
    return "".join(parts) + text[last:]


def _apply(rules: tuple[Rule, ...], text: str, at: int, enabled: Callable[[str], bool]) -> tuple[int, str | None]:
    """Where to go on, and the words for what was there; None where it stays as it is."""
    for switch, pattern, read in rules:
        match = pattern.match(text, at)
        if match is None or match.end() == at:
            continue
        if switch is None or not enabled(switch):
            return match.end(), None
        words = read(match)
        if words is not None:
            return match.end(), words
    return at + 1, None


@cache
def _rules(script: Script, first: str) -> tuple[Rule, ...]:
    """The rules for what begins with one character: a sign alone need not be compared with every kind of number."""
    if script == "other":
        return (_KEPT,)
    chinese = script == "zh"
    shared = (_KEPT, *network_rules(chinese))
    signs = chinese_sign_rules() if chinese else sign_rules()
    if first.isalpha():
        return (*shared, *(chinese_rules() if chinese else ()), *letter_rules())
    if first.isdigit() or first in "+-.($€£¥￥₹₩₽₿":
        return (*shared, *(chinese_rules() if chinese else figure_rules()), *signs)
    return (*shared, *signs)


def _spaced(before: str, words: str, after: str, parts: list[str]) -> str:
    """The words with a space to each side where they would otherwise grow together with a letter."""
    left = before[-1:] or (parts[-1][-1:] if parts else "")
    space = " " if _touch(left, words[:1]) else ""
    return f"{before}{space}{words}{' ' if _touch(words[-1:], after) else ''}"


def _touch(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and not is_unspaced(left) and not is_unspaced(right)


def _languages(text: str, language: str | None, chinese: bool) -> Callable[[int], Script]:
    """A function from a position to the language its token is read in."""
    if language == "en" or (language is None and text.isascii()):
        return lambda at: "en"
    mostly: Script = "zh" if language == "zh" or _mostly_chinese(text) else "en"

    def language_at(at: int) -> Script:
        figure = text[at].isdigit() or text[at] in "-$€£¥￥"
        start, end = _word(text, at + (text[at] in "$€£¥￥")) if figure else (at, at)
        left, right = _neighbour(text, start - 1, -1), _neighbour(text, end, 1)
        if "zh" in (left, right) or (language == "zh" and None in (left, right)):
            return "zh" if chinese else "other"
        found = right or left or mostly
        return "other" if found == "zh" and not chinese else found

    return language_at


def _word(text: str, at: int) -> tuple[int, int]:
    """The bounds of the code around a digit: in 用GPT-4o写 its letters say nothing of the language, 用 does."""
    start = end = at
    while start > max(0, at - _REACH) and _in_code(text[start - 1]):
        start -= 1
    while end < min(len(text), at + _REACH) and _in_code(text[end]):
        end += 1
    return start, end


def _in_code(character: str) -> bool:
    return character in ".-_/%" or (character.isascii() and character.isalnum())


def _neighbour(text: str, at: int, step: int) -> Script | None:
    """The script of the nearest letter in one direction, within the clause."""
    for position in range(at, at + step * _REACH, step):
        character = text[position : position + 1]
        if position < 0 or not character or character in _CLAUSE_STOPS:
            return None
        if character == "," and not text[position + 1 : position + 2].isdigit():
            return None  # 你好, 3 apples
        if script := _script(character):
            return script
    return None


def _script(character: str) -> Script | None:
    if not character.isalpha():
        return "zh" if character in "〇￥" else None
    if character < "\u0250" or "\u1e00" <= character <= "\u1eff":
        return "en"
    if "\u3400" <= character <= "\u9fff" or "\U00020000" <= character <= "\U0003ffff":
        return "zh"
    return "other"


def _mostly_chinese(text: str) -> bool:
    scripts = [_script(character) for character in text]
    return scripts.count("zh") * 2 > scripts.count("en")  # a Chinese character says as much as a few letters
