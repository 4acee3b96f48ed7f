"""The English rules in the order they are tried, with telephone numbers, versions and abbreviations.

Roman numerals stay as they are: `II` is too often a name, and "ai ai" is what a wrong guess sounds like
(hexgrad/kokoro#108).
"""

from __future__ import annotations

import re
from functools import cache

from .amounts import money_rules, unit_rules
from .clock import clock_rules, ends_here, month_rule
from .figures import decade_rule, number_rules
from .numerals import amount, cardinal, digits
from .rules import Rule, alternatives, rule
from .tables import ABBREVIATIONS, BEFORE_NUMBER, SHORT_CODES, TITLES, VERSIONED

_VERSION_TAG = r"(?P<tag>[-.+]?(?:rc|alpha|beta|dev|post|pre|[ab])[-.]?[0-9]*+(?![A-Za-z]))?"
_PARTS = r"(?P<parts>[0-9]{1,9}(?:\.[0-9]{1,9})+)"
_DIALLED = (
    r"(?<!\w)(?P<word>call|dial|text|phone|tel|ring|hotline)(?P<gap>[:.]?[ ])"
    r"(?P<digits>[0-9]{3,15})(?![\w:/%-]|[.,][0-9])"
)
_GROUPED = r"(?<![\w.+-])(?:\+?[0-9]{1,3}[ .-])?(?:\([0-9]{3}\)[ ]?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}(?![\w-])"
_ABROAD = r"(?<![\w.+-])\+[0-9]{1,3}(?:[ -]?[0-9]{2,4}){2,5}(?![\w-])"
_LOCAL = r"(?<![\w.-])[0-9]{3}-[0-9]{4}(?![\w-]|\.[0-9])"


@cache
def letter_rules() -> tuple[Rule, ...]:
    """Rules for what begins with a letter."""
    return (
        month_rule(),
        rule("versions", rf"(?<!\w)(?P<word>{'|'.join(VERSIONED)})[ ][vV]?{_PARTS}{_VERSION_TAG}(?!\w)", _version),
        rule("versions", rf"(?<!\w)(?P<word>[vV])\.?{_PARTS}{_VERSION_TAG}", _version),
        rule("versions", r"(?<!\w)(?P<word>[vV])(?P<parts>[0-9]{1,4})(?P<tag>)(?![\w.])", _version),
        rule("phones", _DIALLED, _dialled, re.IGNORECASE),
        money_rules()[0],
        rule("abbreviations", rf"(?<!\w)(?P<title>{'|'.join(TITLES)})\. (?=[A-Z]|and [A-Z])", _title),
        rule("abbreviations", rf"(?<![\w.])(?P<word>{'|'.join(BEFORE_NUMBER)})\.[ ]?(?=[0-9])", _before_number),
        rule("abbreviations", rf"(?<![\w.])(?P<word>{alternatives(ABBREVIATIONS)})", _abbreviation, re.IGNORECASE),
        rule("abbreviations", r"(?<![\w.])vs(?![\w.])", lambda match: "versus"),
        rule("abbreviations", r"(?<!\w)(?P<name>[CFJAQ])#(?!\w)", lambda match: f"{match['name']} sharp"),
        rule("abbreviations", r"(?<!\w)(?P<name>[A-Za-z])\+\+(?!\w)", lambda match: f"{match['name']} plus plus"),
    )


@cache
def figure_rules() -> tuple[Rule, ...]:
    """Rules for what begins with a digit or a sign: the most telling first, the bare number last."""
    return (
        rule("phones", _GROUPED, _phone),
        rule("phones", _ABROAD, _phone),
        rule("phones", _LOCAL, _local),
        *clock_rules(),
        *money_rules(),
        decade_rule(),
        *unit_rules(),
        rule("versions", rf"(?<![\w.]){_PARTS}{_VERSION_TAG}(?!\w)", _bare_version),
        *number_rules(),
        rule("abbreviations", r"\.(?=(?:NET|js|io)\b)", lambda match: " dot "),
    )


def _phone(match: re.Match[str]) -> str:
    plus = "plus " if match[0].startswith("+") else ""
    return plus + ", ".join(digits(group) for group in re.findall(r"[0-9]+", match[0]))


def _local(match: re.Match[str]) -> str | None:
    rounded = match[0][2] == match[0][-1] == "0"
    return None if rounded else _phone(match)  # 500-1000 is a range


def _dialled(match: re.Match[str]) -> str | None:
    if len(match["digits"]) < 5 and match["digits"] not in SHORT_CODES:
        return None  # "call 200 people"
    return f"{match['word']}{match['gap']}{digits(match['digits'])}"


def _bare_version(match: re.Match[str]) -> str | None:
    return _version(match) if match["parts"].count(".") > 1 or match["tag"] else None


def _version(match: re.Match[str]) -> str:
    word = match.groupdict().get("word") or ""
    name = "version " if word in ("v", "V") else f"{word} " if word else ""
    parts = [_part(part) for part in match["parts"].split(".")]
    tag = re.match(r"[-.+]?([a-z]+)[-.]?([0-9]*)", match["tag"] or "")
    if not tag:
        return name + " point ".join(parts)
    label = "RC" if tag[1] == "rc" else tag[1]
    return f"{name}{' point '.join(parts)} {label} {amount(tag[2]) if tag[2] else ''}".rstrip()


def _part(part: str) -> str:
    return digits(part) if part[0] == "0" or len(part) > 4 else cardinal(int(part))


def _title(match: re.Match[str]) -> str | None:
    before = match.string[max(0, match.start() - 24) : match.start()]
    if match["title"] == "St" and re.search(r"\b[A-Z][a-z]+ \Z", before):
        return None  # "Main St. The end."
    return TITLES[match["title"]] + " "


def _before_number(match: re.Match[str]) -> str:
    return BEFORE_NUMBER[match["word"]] + " "


def _abbreviation(match: re.Match[str]) -> str:
    return ABBREVIATIONS[match["word"].lower()] + ("." if match[0].endswith(".") and ends_here(match) else "")
