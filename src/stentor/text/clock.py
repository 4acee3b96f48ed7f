"""English dates and times of day: 2024-03-05, March 5, 5 March, 7:30 p.m., 9:00-17:00. Knows no other rule."""

from __future__ import annotations

import re
from functools import cache

from .numerals import cardinal, digits, ordinal, year
from .rules import DASH, Rule, alternatives, rule
from .tables import AFTER_TIME, MONTH_PREFIXES, MONTHS

_MONTH = rf"(?P<month>{alternatives(MONTHS)}|(?:{'|'.join(MONTH_PREFIXES)}|Sept)\b\.?)"
_ORDINAL = r"(?:st|nd|rd|th)"
_DAY = r"(?P<day>[0-9]{1,2})"
_YEAR = r"(?:,?[ ](?P<year>[0-9]{4})(?![\w:]))?"
_EDGE = r"(?:(?<![\w.:/])|(?<=[0-9]T))"
_HALF = r"(?P<half>[AaPp])(?:\.[Mm]\.|[Mm](?![A-Za-z0-9]))"
_SPAN = (
    rf"{_EDGE}(?P<from>[0-9]{{1,2}})(?::(?P<past>[0-5][0-9]))?(?:[ ]?(?P<early>[AaPp])\.?[Mm]\b\.?)?{DASH}"
    rf"(?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-5][0-9]))?(?:[ ]?{_HALF})?(?![0-9:A-Za-z])"
)
_CLOCK = (
    rf"{_EDGE}(?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])"
    r"(?::(?P<second>[0-5][0-9])(?:\.[0-9]++)?)?(?![0-9:])"
)
_ZONE = r"(?P<zone>Z(?!\w)|[+-][0-9]{2}:?[0-9]{2}(?![0-9:]))?"

_MONTH_FIRST = (
    rf"(?<!\w){_MONTH}[ ]{_DAY}{_ORDINAL}?(?:{DASH}(?P<to>[0-9]{{1,2}}){_ORDINAL}?)?(?![\w:/%$]|\.[0-9]){_YEAR}"
)
_DAY_FIRST = rf"{_EDGE}{_DAY}{_ORDINAL}?[ ](?:of[ ])?{_MONTH}(?!\w){_YEAR}"
_YEAR_FIRST = (
    rf"{_EDGE}(?P<year>[0-9]{{4}})(?P<by>[-/.])(?P<month>[0-9]{{1,2}})(?P=by){_DAY}"
    r"(?:T(?=[0-9]{2}:)|(?![\w/-]|\.[0-9]))"
)
_AMERICAN = rf"{_EDGE}(?P<month>[0-9]{{1,2}})/{_DAY}/(?P<year>[0-9]{{4}}|[0-9]{{2}})(?![\w/])"
_EUROPEAN = rf"{_EDGE}{_DAY}\.(?P<month>[0-9]{{1,2}})\.(?P<year>(?:19|20)[0-9]{{2}})(?![\w/]|\.[0-9])"


@cache
def month_rule() -> Rule:
    """The one date that begins with a letter: "March 5, 2024"."""
    return rule("dates", _MONTH_FIRST, _month_first)


@cache
def clock_rules() -> tuple[Rule, ...]:
    """Dates and times that begin with a digit."""
    return (
        rule("dates", _YEAR_FIRST, _date),
        rule("dates", _AMERICAN, _date),
        rule("dates", _EUROPEAN, _date),
        rule("dates", _DAY_FIRST, _day_first),
        rule("times", _SPAN, _span),
        rule("times", rf"{_CLOCK}(?:[ ]?{_HALF})?{_ZONE}", _clock),
        rule("times", rf"{_EDGE}(?P<hour>1[0-2]|0?[1-9])[ ]?{_HALF}", _clock),
    )


def ends_here(match: re.Match[str]) -> bool:
    """Whether the sentence ends with the match: the dot of "p.m." and "etc." is then its full stop too."""
    after = match.string[match.end() : match.end() + 3]
    return not after.strip() or "\n" in after or (after[0] == " " and after.strip()[0].isupper())


def _month_first(match: re.Match[str]) -> str | None:
    if not 1 <= int(match["day"]) <= 31:
        return None
    to = f" to {ordinal(int(match['to']))}" if match["to"] else ""
    return f"{MONTH_PREFIXES[match['month'][:3]]} {ordinal(int(match['day']))}{to}{_of_year(match['year'])}"


def _day_first(match: re.Match[str]) -> str | None:
    if not 1 <= int(match["day"]) <= 31:
        return None
    the = "" if re.search(r"\b[Tt]he \Z", match.string[max(0, match.start() - 5) : match.start()]) else "the "
    return f"{the}{ordinal(int(match['day']))} of {MONTH_PREFIXES[match['month'][:3]]}{_of_year(match['year'])}"


def _date(match: re.Match[str]) -> str | None:
    month, day = int(match["month"]), int(match["day"])
    if month > 12 >= day and "/" in match[0]:
        month, day = day, month  # 31/12/2024: only one of the two orders exists
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    full = match["year"] if len(match["year"]) == 4 else ("19" if match["year"] > "40" else "20") + match["year"]
    return f"{MONTHS[month - 1]} {ordinal(day)}{_of_year(full)}" + (", " if match[0].endswith("T") else "")


def _of_year(text: str | None) -> str:
    if not text:
        return ""
    return f", {year(int(text)) if int(text) >= 1000 else digits(text)}"


def _clock(match: re.Match[str]) -> str:
    groups = match.groupdict()
    spoken = _time(match["hour"], groups.get("minute") or "", groups.get("second"), match["half"])
    return spoken + _zone(groups.get("zone")) + _kept_stop(match)


def _span(match: re.Match[str]) -> str | None:
    """9-5 is no time; 9:00-17:00, 7-9pm and 9am-5pm are."""
    timed = (match["past"] and match["minute"]) or match["half"]
    if not timed or int(match["from"]) > 24 or int(match["hour"]) > 24:
        return None
    early = match["early"] or (match["half"] and "")
    start = _time(match["from"], match["past"] or "", None, early)
    return f"{start} to {_time(match['hour'], match['minute'] or '', None, match['half'])}{_kept_stop(match)}"


def _time(hour: str, minute: str, second: str | None, half: str | None) -> str:
    midnight = hour == "00" and not half
    words = [cardinal(12 if midnight else int(hour))]
    if minute and int(minute):
        words.append(f"oh {cardinal(int(minute))}" if int(minute) < 10 else cardinal(int(minute)))
    elif half is None and not midnight:
        words.append("o'clock")
    if second and int(second):
        words.append(f"and {cardinal(int(second))} second{'s' * (int(second) != 1)}")
    if half or midnight:
        words.append(f"{half or 'a'}m".upper())
    return " ".join(words)


def _zone(zone: str | None) -> str:
    if not zone or zone == "Z":
        return " UTC" if zone else ""
    minutes = int(zone[-2:])
    sign = "plus" if zone[0] == "+" else "minus"
    return f" UTC {sign} {cardinal(int(zone[1:3]))}" + (f" {cardinal(minutes)}" if minutes else "")


def _kept_stop(match: re.Match[str]) -> str:
    if not match[0].endswith(".") or not ends_here(match):
        return ""
    following = re.match(r" (\w+)", match.string[match.end() : match.end() + 12])
    return "" if following and following[1] in AFTER_TIME else "."
