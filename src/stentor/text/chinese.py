"""Chinese dates, times, money, units, phone numbers, versions and numbers, as rules in the order they are tried.

wetext reads each token alone: it is right about 2024年 and 10086, but given whole sentences it reads GPT-4o as "负四",
￥99.80元 as 九元九点八零元, escapes quotes and fails on a lone surrogate (facts/bundled-voices.md). What it gets
wrong is put together here from parts that it gets right. It is imported at the first Chinese number: 0.2 s.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache

from .rules import NUMBER, Reader, Rule, alternatives, rule
from .tables import CHINESE_CURRENCIES, CHINESE_PER, CHINESE_SCALES, SIGNS, UNITS

_EDGE = r"(?<![0-9.:/])"
_DASH = r"[ ]?[-–—~～至到][ ]?"
_SIGNED = r"(?P<sign>(?<![A-Za-z0-9)])-)?"
_AMOUNT = rf"(?P<number>{NUMBER})"
_SCALE = r"(?P<scale>百万|千万|万亿|[十百千万亿]|[ ]?(?:thousand|million|billion|trillion)|[kKmMbB](?![A-Za-z0-9]))?"
_WORD = r"(?P<word>美元|美金|欧元|日元|港元|港币|英镑|韩元|卢布|卢比|人民币|元|块钱|块)"
_CURRENCY = alternatives(CHINESE_CURRENCIES)
_SUFFIX = alternatives(sign for sign in CHINESE_CURRENCIES if len(sign) != 2)
_PER = rf"(?:[ ]?/[ ]?(?P<per>{alternatives(CHINESE_PER)})(?![A-Za-z0-9²³]))?"
_CLOCK = r"(?:[01]?[0-9]|2[0-4]):[0-5][0-9](?::[0-5][0-9])?(?![0-9:])"
_UNIT = rf"(?P<unit>{alternatives(UNITS)})(?![A-Za-z0-9²³])"
_SIGN = alternatives(sign for sign in SIGNS if sign not in "<>+=~^@")

_PHONE = (
    r"(?<![\w.-])(?:\+[0-9]{1,3}[ -]?)?(?:1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}|0[0-9]{2,3}-[0-9]{7,8}|"
    r"[48]00-?[0-9]{3}-?[0-9]{4}|[0-9]{3}-[0-9]{3}-[0-9]{4}|[0-9]{3}-[0-9]{4})(?![0-9-])"
)
_YEAR = rf"{_EDGE}[0-9]{{4}}(?:{_DASH}[0-9]{{4}})?年(?:[0-9]{{1,2}}月(?:[0-9]{{1,2}}[日号])?)?"
_MONTH = rf"{_EDGE}(?:[0-9]{{1,2}}年)?[0-9]{{1,2}}月(?:[0-9]{{1,2}}[日号])?"
_ISO = rf"{_EDGE}[0-9]{{4}}(?P<by>[-/.])[0-9]{{1,2}}(?P=by)[0-9]{{1,2}}(?:T(?=[0-9]{{2}}:)|(?![0-9/-]|\.[0-9]))"
_TO = rf"(?:{_DASH}(?P<to>{NUMBER}))?"
_PREFIXED = (
    rf"{_SIGNED}(?P<money>{_CURRENCY})[ ]?{_AMOUNT}(?:{_DASH}(?:(?P=money))?(?P<to>{NUMBER}))?{_SCALE}{_WORD}?{_PER}"
)
_VERSION = (
    r"(?P<mark>(?<!\w)[vV]|(?<![\w.]))"
    r"(?P<parts>[0-9]{1,9}(?:\.[0-9]{1,9}){2,}|(?<=[vV])[0-9]{1,9}(?:\.[0-9]{1,9})?)(?![0-9])"
)

_NAMES = "零一二三四五六七八九"
_DIALLED = "零幺二三四五六七八九"
_PAIR = frozenset(
    "个位次倍点天周种条家只张本件名人岁元块万亿千年匹头支枝把辆台座间层门项句篇封杯碗瓶盒双对场轮款部首小公"
)
"""After these a lone 2 is 两."""


@cache
def chinese_rules() -> tuple[Rule, ...]:
    """What has a number in it; the most telling first."""
    return (
        rule("phones", _PHONE, _phone),
        rule("dates", _YEAR, _date),
        rule("dates", _MONTH, _date),
        rule("dates", _ISO, _date),
        rule("times", rf"{_EDGE}(?P<first>{_CLOCK})(?:{_DASH}(?P<to>{_CLOCK}))?", _clock),
        rule("times", rf"{_EDGE}(?P<first>[0-9]{{1,2}})点(?:{_DASH}(?P<to>[0-9]{{1,2}})点)?(?![0-9])", _hours),
        rule("times", rf"{_EDGE}[0-9]{{1,2}}[点时][0-9]{{1,2}}分?(?:[0-9]{{1,2}}秒)?", _minutes),
        rule("money", _PREFIXED, _money),
        rule("money", rf"{_SIGNED}{_AMOUNT}{_TO}{_SCALE}(?P<money>){_WORD}{_PER}", _money),
        rule("money", rf"{_SIGNED}{_AMOUNT}{_TO}{_SCALE}[ ]?(?P<money>{_SUFFIX})(?P<word>)(?!\w){_PER}", _money),
        rule("units", rf"{_SIGNED}{_AMOUNT}%?{_TO}[ ]?{_UNIT}{_PER}", _unit),
        rule("versions", _VERSION, _version),
        rule("numbers", r"(?<![\w./])24/7(?![\w/])", lambda match: "二十四七"),
        rule("numbers", r"(?<![\w./])(?P<first>[0-9]{1,6})/(?P<second>[0-9]{1,6})(?![0-9/]|\.[0-9])", _fraction),
        rule("numbers", r"(?<![\w.:])(?P<first>[0-9]{1,4}):(?P<second>[0-9]{1,4})(?![0-9:])", _joined("比")),
        rule("numbers", rf"(?P<first>{NUMBER})[ ]?[x×][ ]?(?P<second>{NUMBER})", _joined("乘")),
        rule("numbers", r"(?<![\w.,-])[0-9]++(?:-[0-9]++){2,}+", _phone),
        rule("numbers", rf"(?<![\w.,-])(?P<first>{NUMBER})[ ]?[-–~～][ ]?(?P<second>{NUMBER})", _joined("到")),
        rule("numbers", rf"(?P<sign>-)?(?P<number>{NUMBER})(?=(?P<next>[^\x00-\x7f]?))", _number),
    )


@cache
def chinese_sign_rules() -> tuple[Rule, ...]:
    """Signs alone."""
    return (
        rule("numbers", rf"(?:--?|=)>|{_SIGN}", lambda match: SIGNS[match[0]][1]),
        rule("numbers", r"[<>+=~](?=[ ]?[-$€£¥]?[0-9])|(?<=\w)\+", lambda match: SIGNS[match[0]][1]),
        rule("numbers", r"_+", lambda match: " "),
        rule("numbers", r",(?=[0-9])", lambda match: "，"),
        rule("numbers", r"#(?=[0-9])", lambda match: "第"),
    )


@lru_cache(maxsize=4096)
def _read(token: str) -> str:
    """A token of digits, Chinese and unit letters in Chinese; digits it does not know are read one by one."""
    spoken = _wetext()(token) or token
    return "".join(_NAMES[int(sign)] if sign in "0123456789" else sign for sign in spoken)


@cache
def _wetext() -> Callable[[str], str]:
    from wetext import Normalizer

    read: Callable[[str], str] = Normalizer(lang="zh", operator="tn").normalize
    return read


def _count(number: str) -> str:
    """How many: never a telephone number (10086 alone is one to wetext, 10086元 is not)."""
    plain = number.replace(",", "")
    whole, _, decimals = plain.partition(".")
    if plain == "2":
        return "二"  # with 元 it would be 两
    if len(whole) > 15 or (len(whole) > 1 and whole[0] == "0"):
        return _named(whole) + (f"点{_named(decimals)}" if decimals else "")
    return _read(plain + "元").removesuffix("元")


def _named(digits: str, names: str = _NAMES) -> str:
    return "".join(names[int(digit)] for digit in digits if digit in "0123456789")


def _paired(spoken: str, written: str) -> str:
    """两 for a lone 2 before what is counted: 两点, 两倍, but 二月, 第二次."""
    lone = re.match(r"2(?![0-9.,])(.)", written)
    return "两" + spoken[1:] if lone and lone[1] in _PAIR and spoken.startswith("二") else spoken


def _phone(match: re.Match[str]) -> str:
    groups = re.findall(r"[0-9]+", match[0])
    return ("加" if match[0].startswith("+") else "") + "，".join(_named(group, _DIALLED) for group in groups)


def _date(match: re.Match[str]) -> str:
    return _read(re.sub(r"[ ]?[-–—~～至到][ ]?(?=[0-9]{4}年)", "-", match[0].removesuffix("T")))


def _clock(match: re.Match[str]) -> str:
    return _time(match["first"]) + (f"到{_time(match['to'])}" if match["to"] else "")


def _time(text: str) -> str:
    hour, minute, *second = text.split(":")
    spoken = _hour(hour) + "点"
    if int(minute):
        spoken += f"{'零' if int(minute) < 10 else ''}{_count(str(int(minute)))}分"
    return spoken + (f"{_count(str(int(second[0])))}秒" if second else "")


def _hour(text: str) -> str:
    return "两" if int(text) == 2 else _count(str(int(text)))


def _minutes(match: re.Match[str]) -> str:
    return _paired(_read(match[0]), match[0])


def _hours(match: re.Match[str]) -> str:
    return f"{_hour(match['first'])}点" + (f"到{_hour(match['to'])}点" if match["to"] else "")


def _money(match: re.Match[str]) -> str:
    scale = (match["scale"] or "").strip()
    zeros = CHINESE_SCALES.get(scale.lower(), 0)
    if zeros:
        scale = ""
    word = match["word"] or CHINESE_CURRENCIES[match["money"]]
    if match["money"] and match["word"] in ("元", "块", "块钱") and match["money"] not in "¥￥":
        word = CHINESE_CURRENCIES[match["money"]]
    spoken = "负" if match["sign"] else ""
    spoken += _price(_times_ten(match["number"], zeros), scale or word)
    if match["to"]:
        spoken += "到" + _price(_times_ten(match["to"], zeros), scale or word)
    return f"{spoken}{scale}{word}" + (f"每{CHINESE_PER[match['per']]}" if match["per"] else "")


def _times_ten(number: str, zeros: int) -> str:
    """`4.5` and 6 zeros, for million, is `4500000`: Chinese counts in 万, not in millions."""
    whole, _, decimals = number.replace(",", "").partition(".")
    shifted = (whole + decimals[:zeros].ljust(zeros, "0")).lstrip("0") or "0"
    return shifted + (f".{decimals[zeros:]}" if decimals[zeros:] else "")


def _price(number: str, following: str) -> str:
    """3.50 is 三点五: zeros after the point are not said in a price."""
    plain = number.replace(",", "")
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return _paired(_count(plain), plain + following)


def _unit(match: re.Match[str]) -> str:
    number, unit, per = match["number"].replace(",", ""), match["unit"], match["per"]
    minus = "负" if match["sign"] else ""
    if match["to"]:
        first = _read(number + unit) if unit in "%‰" else _count(number)
        return f"{minus}{first}到{_read(match['to'].replace(',', '') + unit)}{_per(per)}"
    if unit == "km" and per in ("h", "hr", "hour"):
        return f"{minus}{_read(number + 'km/h')}"
    return f"{minus}{_read(number + unit)}{_per(per)}"


def _per(unit: str | None) -> str:
    return f"每{CHINESE_PER[unit]}" if unit else ""


def _version(match: re.Match[str]) -> str:
    return match["mark"] + "点".join(_count(part) for part in match["parts"].split("."))


def _fraction(match: re.Match[str]) -> str:
    return f"{_count(match['second'])}分之{_count(match['first'])}"


def _joined(word: str) -> Reader:
    return lambda match: f"{_count(match['first'])}{word}{_count(match['second'])}"


def _number(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 1) : match.start()]
    number, following = match["number"].replace(",", ""), match["next"]
    joined = before.isascii() and before.isalnum()  # the hyphen of GPT-4
    minus = "负" if match["sign"] and not joined else ""
    if number.isdigit() and len(number) >= 10 and not number.endswith("0000"):
        return minus + _named(number)  # an identifier, as in English
    if len(number) > 15 or not (following and "\u4e00" <= following <= "\u9fff"):
        return minus + (_count(number) if len(number) > 15 else _read(number))
    spoken = _read(number + following).removesuffix(following)
    return minus + (spoken if before == "第" else _paired(spoken, number + following))
