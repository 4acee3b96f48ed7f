"""English numbers that are nothing more special, and signs: 1,234.5, -3, 21st, 1990s, 1/2, 3:2, 5-10, 5 ≥ 3, A → B.

Tried last: what a date, a price or a unit is has been taken before. Output has no digits, so nothing here fires twice.
"""

from __future__ import annotations

import re
from functools import cache

from .numerals import amount, decade, digits, fraction, number, ordinal
from .rules import DASH, NUMBER, Reader, Rule, alternatives, rule
from .tables import SCALES, SIGNS

_ALONE = r"(?<![\w./,])"
_CONDITIONAL = frozenset("<>+=~^@")  # signs that mean something only between the right neighbours
_SIGN = alternatives(sign for sign in SIGNS if sign not in _CONDITIONAL)
_SPACED = r"(?<![\w.,])[1-9][0-9]{0,2}(?: 000)++(?![\w.])"
_MIXED = rf"{_ALONE}(?:(?P<whole>[0-9]{{1,4}})[ ])?(?P<over>[0-9]{{1,4}})/(?P<under>[0-9]{{1,4}})(?![\w/]|[.,][0-9])"
_RANGE = rf"(?<![\w.,-])(?P<first>{NUMBER})(?P<dash>{DASH})(?P<second>{NUMBER})(?![\w-]|[.,][0-9])"
_NUMBER = (
    rf"(?P<sign>-)?(?P<number>{NUMBER}|(?<![\w)])\.[0-9]++)"
    r"(?:[eE](?P<power>[-+]?[0-9]{1,4})(?![A-Za-z0-9]))?"
)


@cache
def decade_rule() -> Rule:
    """Before units, because 1990s are no seconds."""
    return rule("numbers", r"(?<![\w.])(?P<tick>')?(?P<decade>[0-9]{1,3}0)'?s(?!\w)", _decade)


@cache
def number_rules() -> tuple[Rule, ...]:
    return (
        rule("numbers", r"(?<!\w)0x(?P<digits>[0-9A-Fa-f]+)(?!\w)", lambda match: f"zero x {_each(match['digits'])}"),
        rule("numbers", _SPACED, lambda match: amount(match[0].replace(" ", ""))),
        rule("numbers", rf"(?P<number>{NUMBER})(?:st|nd|rd|th)(?![A-Za-z0-9])", _ordinal),
        rule("numbers", rf"{_ALONE}24/7(?![\w/])", lambda match: "twenty-four seven"),
        rule("numbers", _MIXED, _fraction),
        rule("numbers", rf"{_ALONE}(?P<first>{NUMBER})/(?P<second>{NUMBER})(?![\w/])", _joined("out of")),
        rule("numbers", r"(?P<first>[0-9]{1,6})[ ]?(?P<part>[½¼¾⅓⅔⅛])", _with_part),
        rule("numbers", rf"(?P<first>{NUMBER})[ ]?x[ ]?(?P<second>{NUMBER})", _joined("by")),
        rule("numbers", rf"(?P<first>{NUMBER})[ ]?×[ ]?(?P<second>{NUMBER})", _joined("times")),
        rule("numbers", rf"(?P<number>{NUMBER})[x×](?![A-Za-z0-9])", lambda match: f"{amount(match['number'])} times"),
        rule("numbers", rf"(?P<number>{NUMBER})(?P<scale>bn|mn|tn|[kKMB])(?![A-Za-z0-9])", _scaled),
        rule("numbers", r"(?<![\w:.])(?P<first>[0-9]{1,4}):(?P<second>[0-9]{1,3})(?![\w:])", _joined("to")),
        rule("numbers", r"(?<![\w:.])(?P<first>[0-9]{1,6}):(?P<second>[0-9]{4})(?![\w:])", _joined("")),
        rule("numbers", r"(?<![\w.-])[0-9]++(?:-[0-9]++){2,}+(?![\w-])", _groups),
        rule("numbers", _RANGE, _range),
        rule("numbers", _NUMBER, _number),
    )


@cache
def sign_rules() -> tuple[Rule, ...]:
    return (
        rule("numbers", rf"(?:--?|=)>|{_SIGN}", _sign),
        rule("numbers", r"[<>](?=[ ]?[-$€£¥]?[0-9])|(?<=[\w)][ ])[<>](?=[ ][\w(])", _sign),
        rule("numbers", r"(?<=[\w)\]²³ ])=(?=[\w(\[ -])|=(?=[0-9])", _sign),
        rule("numbers", r"\+(?=[ ]?[\w(])|(?<=[\w)])\+", _sign),
        rule("numbers", r"~(?=[ ]?[0-9$€£¥])|(?<=[\w)])\^(?=[\w(-])|@(?=[ ]|[0-9$])", _sign),
        rule("numbers", r"_+", lambda match: " "),
        rule("numbers", r",(?=[0-9])", lambda match: ", "),
        rule("numbers", r"#(?=[0-9])", lambda match: "number "),
    )


def _decade(match: re.Match[str]) -> str | None:
    before = match.string[max(0, match.start() - 7) : match.start()].lower()
    said = match["tick"] or re.search(r"\b(?:the|his|her|their|my|mid|early|late|your|our)[ -]\Z", before)
    size = len(match["decade"])
    if size == 3 or (size == 2 and not said):
        return None  # "30s" alone is thirty seconds
    return decade(int(match["decade"]))


def _ordinal(match: re.Match[str]) -> str:
    whole = match["number"].replace(",", "")
    return ordinal(int(whole)) if whole.isdigit() and len(whole) <= 12 else f"{amount(whole)} th"


def _fraction(match: re.Match[str]) -> str:
    over, under = int(match["over"]), int(match["under"])
    whole = f"{amount(match['whole'])} and " if match["whole"] else ""
    proper = 0 < over < under
    if (proper and (under <= 9 or under in (12, 16, 20, 32, 64, 1000))) or (over == 1 and under in (10, 100)):
        return whole + fraction(over, under)
    if over == under > 1 and under not in (5, 10, 100):
        return f"{whole}{number(match['over'])} {number(match['under'])}"  # 50/50
    between = "out of" if under in (5, 10, 100) and over <= under else "slash"
    return f"{whole}{number(match['over'])} {between} {number(match['under'])}"


def _joined(word: str) -> Reader:
    return lambda match: f"{number(match['first'])} {word} {number(match['second'])}"


def _with_part(match: re.Match[str]) -> str:
    return f"{amount(match['first'])} and {SIGNS[match['part']][0]}"


def _scaled(match: re.Match[str]) -> str:
    if match["scale"] == "K" and len(match["number"]) == 1:
        return f"{amount(match['number'])} K"  # 4K and 8K are resolutions
    return f"{amount(match['number'])} {SCALES[match['scale'].lower()]}"


def _each(text: str) -> str:
    return " ".join(digits(sign) or sign for sign in text)


def _groups(match: re.Match[str]) -> str:
    return ", ".join(digits(group) for group in match[0].split("-"))


def _range(match: re.Match[str]) -> str:
    first, second = match["first"], match["second"]
    apart = match["dash"] == " - " and float(first.replace(",", "")) >= float(second.replace(",", ""))
    return f"{number(first)} {'minus' if apart else 'to'} {number(second)}"


def _number(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 1) : match.start()]
    minus = "minus " if match["sign"] and not before.isalnum() else " " if match["sign"] else ""
    spoken = minus + number(match["number"])
    if not match["power"]:
        return spoken
    power = match["power"].lstrip("+")
    return f"{spoken} times ten to the {'minus ' if power[0] == '-' else ''}{amount(power.lstrip('-'))}"


def _sign(match: re.Match[str]) -> str:
    return f" {SIGNS[match[0]][0]} "
