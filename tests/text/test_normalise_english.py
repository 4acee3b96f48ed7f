"""How English is read: each row is a line somebody could send, and what a voice must be given."""

from __future__ import annotations

import pytest

from stentor.text.normalise import normalise

MONEY = {
    "$42.50": "forty-two dollars and fifty cents",
    "$1": "one dollar",
    "$1.01": "one dollar and one cent",
    "$0.99": "ninety-nine cents",
    "$.50": "fifty cents",
    "$1,234.56": "one thousand two hundred thirty-four dollars and fifty-six cents",
    "$4.5 million": "four point five million dollars",
    "$1.5M": "one point five million dollars",
    "€3k": "three thousand euros",
    "£3.20": "three pounds and twenty pence",
    "¥1000": "one thousand yen",
    "5€": "five euros",
    "USD 5": "five U.S. dollars",
    "-$5": "minus five dollars",
    "$5-$10": "five to ten dollars",
    "$5/month": "five dollars per month",
    "I paid $5, $6 and $7.": "I paid five dollars, six dollars and seven dollars.",
}
TIMES_AND_DATES = {
    "7:30 pm": "seven thirty PM",
    "at 7 p.m. Then": "at seven PM. Then",
    "7 p.m. Eastern": "seven PM Eastern",
    "21:15": "twenty-one fifteen",
    "7:05": "seven oh five",
    "15:00": "fifteen o'clock",
    "9am-5pm": "nine AM to five PM",
    "9:00-17:30": "nine o'clock to seventeen thirty",
    "2024-03-05": "March fifth, twenty twenty-four",
    "2024-03-05T19:30:00Z": "March fifth, twenty twenty-four, nineteen thirty UTC",
    "3/5/2024": "March fifth, twenty twenty-four",
    "31/12/2024": "December thirty-first, twenty twenty-four",
    "March 5, 2024": "March fifth, twenty twenty-four",
    "Jan. 5": "January fifth",
    "on the 5th of March": "on the fifth of March",
    "in 1905 and 2007": "in nineteen oh five and two thousand seven",
    "the 1990s, the 80s": "the nineteen nineties, the eighties",
}
NUMBERS = {
    "1,234,567": "one million two hundred thirty-four thousand five hundred sixty-seven",
    "3.14": "three point one four",
    "-5": "minus five",
    "1st 2nd 21st": "first second twenty-first",
    "1/2 and 3/4": "one half and three quarters",
    "8/10": "eight out of ten",
    "24/7": "twenty-four seven",
    "3:2": "three to two",
    "5-10": "five to ten",
    "5,000-10,000": "five thousand to ten thousand",
    "5 - 3": "five minus three",
    "50%": "fifty percent",
    "5 ≥ 3": "five is greater than or equal to three",
    "A → B": "A to B",
    "a->b": "a to b",
    "5+3=8": "five plus three equals eight",
    "~5": "about five",
    "№ 5": "number five",
    "#5": "number five",
    "1920x1080": "nineteen twenty by one thousand eighty",
    "2x faster": "two times faster",
    "7B": "seven billion",
    "4K": "four K",
    "007": "zero zero seven",
    "1e-3": "one times ten to the minus three",
    "1½ cups": "one and one half cups",
    "R&D": "R and D",
    "GPT-4o": "GPT four o",
    "COVID-19": "COVID nineteen",
    "10-year-old": "ten-year-old",
}
UNITS = {
    "100km/h": "one hundred kilometers per hour",
    "1 kg": "one kilogram",
    "25℃": "twenty-five degrees Celsius",
    "-5°C": "minus five degrees Celsius",
    "5-10 km": "five to ten kilometers",
    "5MB/s": "five megabytes per second",
    "30s timeout": "thirty seconds timeout",
    "I’m 5’10": "I'm five foot ten",
}
PHONES_AND_VERSIONS = {
    "555-1234": "five five five, one two three four",
    "(555) 123-4567": "five five five, one two three, four five six seven",
    "+1 555 123 4567": "plus one, five five five, one two three, four five six seven",
    "500-1000": "five hundred to one thousand",
    "call 911 now": "call nine one one now",
    "call 10086": "call one zero zero eight six",
    "call 200 people": "call two hundred people",
    "v2.13.0": "version two point thirteen point zero",
    "version v2.13.0": "version two point thirteen point zero",
    "1.2.3-rc1": "one point two point three RC one",
    "Python 3.11": "Python three point eleven",
}
ADDRESSES = {
    "https://example.com/docs?x=1.": "example dot com slash docs question mark x equals one.",
    "(see https://a.com/b)": "(see a dot com slash b)",
    "example.org": "example dot org",
    "john_doe@example.com": "john underscore doe at example dot com",
    "192.168.1.1": "one nine two dot one six eight dot one dot one",
    "/usr/bin/python3": "slash usr slash bin slash python three",
    "C:\\Users\\x": "C colon backslash Users backslash x",
    "notes.txt": "notes dot txt",
    "@john": "at john",
    "#HelloWorld": "hashtag Hello World",
    "and/or": "and/or",
}
ABBREVIATIONS = {
    "No. I won't.": "No. I won't.",
    "No. 5 is alive": "number five is alive",
    "Henry VIII and II": "Henry VIII and II",
    "Dr. Smith": "Doctor Smith",
    "Mr. and Mrs. Smith": "Mister and Missus Smith",
    "Main St. The end": "Main St. The end",
    "St. Louis": "Saint Louis",
    "e.g. this, i.e. that": "for example this, that is that",
    "tea, etc. And more": "tea, et cetera. And more",
    "C++ and C# and .NET": "C plus plus and C sharp and dot NET",
    "U.S. troops": "U.S. troops",
    "snake_case": "snake case",
}
ROWS = MONEY | TIMES_AND_DATES | NUMBERS | UNITS | PHONES_AND_VERSIONS | ADDRESSES | ABBREVIATIONS


@pytest.mark.parametrize(("written", "spoken"), ROWS.items(), ids=ROWS.keys())
def test_english_is_read(written: str, spoken: str) -> None:
    assert normalise(written) == spoken


@pytest.mark.parametrize("written", ROWS)
def test_what_is_read_has_no_digits_left(written: str) -> None:
    assert not any(character.isdigit() for character in normalise(f"Well, {written} then.", "en"))


def test_bundled_voice_agrees_with_what_it_is_given() -> None:
    """hibari normalises again; it must find nothing to do in our words but the spelling of a few titles."""
    from hibari.g2p.normalize import normalize as hibari

    for spoken in (MONEY | TIMES_AND_DATES | NUMBERS | UNITS | PHONES_AND_VERSIONS).values():
        assert hibari(spoken) == spoken


def test_an_impossible_date_is_no_date() -> None:
    assert "March" not in normalise("2024-13-45")
    assert normalise("45/45/2024").startswith("forty-five")
