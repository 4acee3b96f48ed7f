"""English money and units: "$4.5 million", "€3k", "5-10 km/h", "25 °C", "5'10\\"". Knows no other rule."""

from __future__ import annotations

import re
from functools import cache

from .numerals import amount, cardinal
from .rules import DASH, NUMBER, Rule, alternatives, rule
from .tables import CURRENCIES, PER, SCALES, UNITS

_SCALE_WORDS = "hundred|thousand|million|billion|trillion"
_SCALE = rf"(?:[ -]?(?P<scale>{_SCALE_WORDS}|(?<=[0-9])(?:mn|mm|bn|tn|[kKmMbB]))(?![A-Za-z0-9]))?"
_PER = rf"(?:[ ]?/[ ]?(?P<per>{alternatives(PER)})(?![A-Za-z0-9²³]))?"
_UNIT = rf"(?P<unit>{alternatives(UNITS)})(?![A-Za-z0-9²³])"
_CURRENCY = alternatives(sign for sign in CURRENCIES if sign != "¢")
_SUFFIX = alternatives(sign for sign in CURRENCIES if len(sign) != 2)
_SIGN = r"(?P<sign>(?<![\w)\]])[-+])?"

_PREFIXED = (
    rf"{_SIGN}(?<![A-Za-z])(?P<money>{_CURRENCY})[ ]?(?P<minus>-)?(?P<number>{NUMBER}|\.[0-9]++)"
    rf"(?:{DASH}(?:(?P=money))?(?P<to>{NUMBER})(?![A-Za-z%]))?(?P<plus>\+)?{_SCALE}{_PER}"
)
_SUFFIXED = rf"{_SIGN}(?P<number>{NUMBER})(?:{DASH}(?P<to>{NUMBER}))?{_SCALE}[ ]?(?P<money>{_SUFFIX})(?![\w]){_PER}"
_MEASURED = rf"{_SIGN}(?P<number>{NUMBER}|\.[0-9]++)%?(?:{DASH}(?P<to>{NUMBER}))?[ -]?{_UNIT}{_PER}"
_PER_NUMBER = rf"(?P<number>{NUMBER})[ ]?/[ ]?(?P<per>sec|min|hour|hr|day|week|month|year|person|user|night)(?!\w)"
_FEET = r"(?<![\w.])(?P<feet>[0-9]{1,2})['′’][ ]?(?P<inches>[0-9]{1,2})[\"″”]?(?![\w])"


@cache
def money_rules() -> tuple[Rule, ...]:
    """A sign before the amount (which may begin with a letter, US$5), or after it."""
    return (rule("money", _PREFIXED, _money), rule("money", _SUFFIXED, _money))


@cache
def unit_rules() -> tuple[Rule, ...]:
    return (
        rule("units", _FEET, _feet),
        rule("units", _MEASURED, _unit),
        rule("units", _PER_NUMBER, lambda match: f"{amount(match['number'])} per {PER[match['per']]}"),
    )


def _money(match: re.Match[str]) -> str:
    groups = match.groupdict()
    one, many, cent, cents = CURRENCIES[match["money"]]
    text, to = match["number"], match["to"]
    minus = {"-": "minus ", "+": "plus "}.get(groups.get("minus") or match["sign"] or "", "")
    per = f" per {PER[match['per']]}" if match["per"] else ""
    plus = " plus" if groups.get("plus") else ""
    if match["scale"] or to or not re.fullmatch(r"[0-9,]*\.[0-9]{2}", text):
        scale = f" {SCALES.get(match['scale'].lower(), match['scale'])}" if match["scale"] else ""
        span = f"{amount(text)} to {amount(to)}" if to else amount(text)
        single = text == "1" and not to and not scale
        return f"{minus}{span}{scale} {one if single else many}{plus}{per}"
    return f"{minus}{_whole_and_cents(text, (one, many), (cent, cents))}{plus}{per}"


def _whole_and_cents(text: str, units: tuple[str, str], hundredths: tuple[str, str]) -> str:
    whole, _, rest = text.replace(",", "").partition(".")
    if len(whole) > 15 or not hundredths[0]:
        return f"{amount(text)} {units[1]}"
    parts = []
    if int(whole or "0") or not int(rest):
        parts.append(f"{amount(whole or '0')} {units[int(whole or '0') != 1]}")
    if int(rest):
        parts.append(f"{cardinal(int(rest))} {hundredths[int(rest) != 1]}")
    return " and ".join(parts)


def _unit(match: re.Match[str]) -> str:
    text, to = match["number"], match["to"]
    one, many = UNITS[match["unit"]]
    sign = {"-": "minus ", "+": "plus "}.get(match["sign"] or "", "")
    span = f"{amount(text)} to {amount(to)}" if to else amount(text)
    per = f" per {PER[match['per']]}" if match["per"] else ""
    return f"{sign}{span} {one if text == '1' and not to else many}{per}"


def _feet(match: re.Match[str]) -> str:
    return f"{cardinal(int(match['feet']))} foot {cardinal(int(match['inches']))}"
