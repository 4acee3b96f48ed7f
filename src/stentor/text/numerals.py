"""English words for numbers: cardinals, ordinals, years, digits one by one. Knows no sentence around them.

American reading, without "and" and without commas: an engine must not pause inside a number.
"""

from __future__ import annotations

from .tables import words

ONES = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = words("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
_SCALES = ("", "thousand", "million", "billion", "trillion")
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
             "twelve": "twelfth"}  # fmt: skip
_DENOMINATORS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
_LONGEST = 15  # digits that _SCALES can name; longer ones are read digit by digit, as is an identifier


def digits(text: str) -> str:
    """Each digit by name: `"101"` → `one zero one`. Other characters are left out."""
    return " ".join(ONES[int(digit)] for digit in text if digit in "0123456789")


def cardinal(number: int) -> str:
    """`1234` → `one thousand two hundred thirty-four`, for numbers below 10**15."""
    parts: list[str] = []
    for power in range(len(_SCALES) - 1, -1, -1):
        count, number = divmod(number, 1000**power)
        if count:
            parts += [_below_1000(count), _SCALES[power]] if power else [_below_1000(count)]
    return " ".join(parts) or "zero"


def ordinal(number: int) -> str:
    """`21` → `twenty-first`."""
    spoken = cardinal(number)
    cut = max(spoken.rfind(" "), spoken.rfind("-")) + 1
    last = spoken[cut:]
    if last in _ORDINALS:
        return spoken[:cut] + _ORDINALS[last]
    return spoken[:cut] + (last[:-1] + "ieth" if last.endswith("y") else last + "th")


def year(number: int) -> str:
    """`1905` → `nineteen oh five`, `2007` → `two thousand seven`, `2024` → `twenty twenty-four`."""
    century, rest = divmod(number, 100)
    if century % 10 == 0 and rest < 10:
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def decade(number: int) -> str:
    """`1990` → `nineteen nineties`, `80` → `eighties`, `2000` → `two thousands`."""
    spoken = year(number) if number >= 1000 else cardinal(number)
    return spoken[:-1] + "ies" if spoken.endswith("y") else spoken + "s"


def amount(text: str) -> str:
    """Digits with commas and a decimal point as a quantity: `1,234.50` → `one thousand … point five zero`."""
    whole, _, decimals = text.replace(",", "").partition(".")
    plain = len(whole) > 1 and whole[0] == "0"
    spoken = digits(whole) if plain or len(whole) > _LONGEST else cardinal(int(whole or "0"))
    if not decimals:
        return spoken
    return f"{spoken if whole else ''} point {digits(decimals)}".strip()


def number(text: str) -> str:
    """Digits as they are read where nothing says what they count: four may be a year, ten and more an identifier."""
    if not text.isdigit():
        return amount(text)
    if len(text) == 4 and (1100 <= int(text) <= 1999 or 2010 <= int(text) <= 2099):
        return year(int(text))
    identifier = len(text) >= 10 and not text.endswith("000000")
    return digits(text) if identifier else amount(text)


def fraction(over: int, under: int) -> str:
    """`3, 4` → `three quarters`."""
    one, many = _DENOMINATORS.get(under) or (ordinal(under), ordinal(under) + "s")
    return f"{cardinal(over)} {one if over == 1 else many}"


def _below_1000(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    parts = [ONES[hundreds], "hundred"] if hundreds else []
    if rest >= 20:
        parts.append(_TENS[rest // 10] + (f"-{ONES[rest % 10]}" if rest % 10 else ""))
    elif rest:
        parts.append(ONES[rest])
    return " ".join(parts)
