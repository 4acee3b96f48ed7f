"""Where a sentence may end: stops, closers and the abbreviations whose dot ends nothing. Knows no budget and no voice.

All offsets are positions *after* which text may be cut; `sentence_ends` is one left-to-right pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .tables import words

CJK_STOPS = "。！？；｡︒"
CLOSERS = "\"'”’)]}»›」』】）》〉〕〗"
PAUSES = ",;:，；：、､—"

TITLES = frozenset(
    words("mr mrs ms mx dr prof st mt ft gen gov sen rep capt cpt lt col sgt cmdr rev hon pres maj messrs")
)
"""Before a name: their dot never ends a sentence."""

BEFORE_NUMBER = frozenset(
    words(
        "no nos nr vol vols fig figs pp p ch sec art eq ver v ca approx "
        "jan feb mar apr jun jul aug sep sept oct nov dec"
    )
)
"""Their dot ends nothing when a number follows: "No. 5" against "No. I won't." (Kokoro-FastAPI#260)."""

MAY_END = frozenset(
    words(
        "etc inc ltd co corp bros jr sr dept univ assn govt ave blvd rd hwy apt bldg ed eds est vs al cf viz "
        "e.g i.e a.m p.m u.s u.k u.n e.u d.c b.c a.d ph.d m.d b.a m.a p.s u.s.a"
    )
)
"""Their dot ends a sentence only where a word follows that usually begins one."""

STARTERS = frozenset(
    words(
        "The A An He She It We They You I In On At But And So This That These Those There Then When While If As For "
        "To My His Her Its Our Their Your What Who Why How Where Yes No Not Now Next After Before However"
    )
)

_CLOSED = rf"[{re.escape(CLOSERS)}]*"
_STOP = re.compile(rf"(?:[{CJK_STOPS}]|…{{2}})+[!?{CJK_STOPS}…]*{_CLOSED}|[.!?…]+{_CLOSED}|\n[^\S\n]*(?:\n\s*)?")
_WORD_BEFORE = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]+\Z")
_LIST_LINE = re.compile(r"[^\S\n]*(?:[-*+•·]|\d{1,4}[.)])[^\S\n]")
_WRAP_FROM = 50  # a line at least this long that ends without a stop was wrapped by an editor


def sentence_ends(text: str) -> Iterator[int]:
    """Offsets after which a sentence has ended, in order; the end of the text is not among them."""
    line_start = 0
    for stop in _STOP.finditer(text):
        end = stop.end()
        if stop[0][0] == "\n":
            if _line_ends(text, line_start, stop):
                yield end
            line_start = end
        elif end < len(text) and _ends(text, line_start, stop):
            yield end


def _ends(text: str, line_start: int, stop: re.Match[str]) -> bool:
    end = stop.end()
    following = _next_visible(text, end)
    if not following or following in PAUSES:
        return False  # “走！”，他说: the comma belongs to the quote
    mark = stop[0][0]
    if mark in CJK_STOPS or stop[0].startswith("……"):
        return True
    if not text[end].isspace():
        return is_unspaced(text[end])  # 3.14, example.com, e.g.this; but "OK.然后"
    closed = stop[0][-1] in CLOSERS
    if mark in "!?" and ".." not in stop[0]:
        return not (closed and following.islower())  # “Really?” she asked
    if following.islower():
        return False
    if len(stop[0].rstrip(CLOSERS)) > 1 or mark == "…" or closed:
        return True
    return _dot_ends(text, line_start, stop.start(), end)


def _dot_ends(text: str, line_start: int, dot: int, end: int) -> bool:
    """Whether one lone "." ends a sentence, judged by the word before and after it."""
    if dot - line_start <= 8 and text[line_start:dot].strip().isdigit():
        return False  # "1. Apples" at the start of a line numbers it
    found = _WORD_BEFORE.search(text, max(0, dot - 24), dot)
    if found is None:
        return True
    before, after = found[0].lower(), text[end : end + 24].lstrip().lstrip("\"'“‘([")
    if before in TITLES:
        return False
    if before in BEFORE_NUMBER:
        return not after[:1].isdigit()
    initial = len(before) == 1 and found[0].isupper() and before != "i"
    if initial or before in MAY_END or re.fullmatch(r"(?:[a-z]\.)+[a-z]", before):
        word = re.match(r"[A-Za-z]+", after)
        return word is not None and word[0] in STARTERS and not (initial and len(word[0]) == 1)
    return True


def _line_ends(text: str, line_start: int, stop: re.Match[str]) -> bool:
    """Whether a line break ends a sentence: a blank line, a list line, a short line, but not a wrapped one."""
    line, rest = text[line_start : stop.start()].strip(), stop.end()
    if not line or rest >= len(text):
        return False
    if stop[0].count("\n") > 1 or _LIST_LINE.match(text, rest):
        return True
    following = text[rest : rest + 1]
    return not following.islower() and len(line) < _WRAP_FROM


def _next_visible(text: str, start: int) -> str:
    for position in range(start, min(len(text), start + 64)):
        if not text[position].isspace():
            return text[position]
    return text[start : start + 1]


def is_unspaced(character: str) -> bool:
    """Whether a character is written without spaces around it: Han, kana, full-width forms (Hangul has spaces)."""
    return (
        "\u2e80" <= character <= "\u9fff"
        or "\uf900" <= character <= "\ufaff"
        or "\uff00" <= character <= "\uffef"
        or "\U00020000" <= character <= "\U0003ffff"
    )
