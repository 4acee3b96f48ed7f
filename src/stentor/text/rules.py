"""What a reading rule is: a switch, a pattern, and a function from the match to the words. Shared by all rule files.

Patterns are tried at one position at a time (`pattern.match(text, position)`), so each must fail fast where it does
not belong and must begin with a look-behind that forbids the middle of a run: that keeps the scan linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

Reader = Callable[[re.Match[str]], str | None]

NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])|[0-9]++)(?:\.[0-9]++)?"
"""1,234,567.89: commas only where they part thousands."""

DASH = r"[ ]?[-–~～][ ]?"


class Rule(NamedTuple):
    """`switch` names the field of Normalization that turns it on; None keeps what matches as it is written, always.

    `read` gives None where a second look says that the match is something else; the next rule is then tried.
    """

    switch: str | None
    pattern: re.Pattern[str]
    read: Reader


def rule(switch: str | None, pattern: str, read: Reader, flags: int = 0) -> Rule:
    """A rule with its pattern compiled for ASCII: `\\w` and `\\b` see Latin words, so that 我GPT is two."""
    return Rule(switch, re.compile(pattern, flags | re.ASCII), read)


def alternatives(words: Iterable[str]) -> str:
    """A pattern for any of the words, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def as_written(match: re.Match[str]) -> str:
    return match[0]
