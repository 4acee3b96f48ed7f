"""Subtitles: SRT and WebVTT files from timed text, and cues of a readable size from timed words.

Owns timestamps, escaping and line breaks; knows no model. What a player cannot show is repaired here (times that run
backwards, blank lines, `-->` in the text), because a broken cue takes the rest of the file with it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .stops import CJK_STOPS, CLOSERS, is_unspaced, sentence_ends

WIDTH = 42  # columns of a line, the broadcasters' common limit; a wide character takes two
ROWS = 2
LONGEST_CUE_S = 7.0
GAP_S = 0.8  # a silence that ends a cue: long enough for a viewer to notice that the line stayed

_UNPRINTABLE = re.compile(r"[\x00-\x09\x0e-\x1f\x7f\ud800-\udfff]")
_ARROW = re.compile(r"-{2,}>+")


@dataclass(frozen=True, slots=True)
class Cue:
    """Text that is on the screen from `start` to `end`, in seconds."""

    start: float
    end: float
    text: str


def srt(cues: Iterable[Cue]) -> str:
    """A SubRip file; empty cues are left out, the rest numbered from 1.

    >>> print(srt([Cue(3661.5, 3662, "Hello")]), end="")
    1
    01:01:01,500 --> 01:01:02,000
    Hello
    """
    blocks = (
        f"{number}\n{_stamp(start, ',')} --> {_stamp(end, ',')}\n{_ARROW.sub('→', text)}\n"
        for number, (start, end, text) in enumerate(_timed(cues), 1)
    )
    return "\n".join(blocks)


def vtt(cues: Iterable[Cue]) -> str:
    """A WebVTT file; `&`, `<` and `>` are escaped.

    >>> print(vtt([Cue(0, 1, "R&D")]), end="")
    WEBVTT
    <BLANKLINE>
    00:00:00.000 --> 00:00:01.000
    R&amp;D
    """
    blocks = (f"\n{_stamp(start, '.')} --> {_stamp(end, '.')}\n{_escaped(text)}\n" for start, end, text in _timed(cues))
    return "WEBVTT\n" + "".join(blocks)


def lines(text: str, width: int = WIDTH, rows: int = ROWS) -> list[str]:
    """The text broken into lines of at most `width` columns, of about equal length where they fit `rows`.

    Text that needs more rows gets them: nothing is cut off. Only a word wider than a line is broken inside.

    >>> lines("The quick brown fox jumps over the lazy dog again.", width=30)
    ['The quick brown fox jumps', 'over the lazy dog again.']
    """
    words = _words(text, width)
    full = _filled(words, width)
    if not 1 < len(full) <= rows:
        return full
    low, high = max(1, _columns(text) // len(full) - 1), width
    while low < high:  # the narrowest width that needs no further row makes the rows even
        middle = (low + high) // 2
        low, high = (low, middle) if len(_filled(words, middle)) <= len(full) else (middle + 1, high)
    return _filled(words, low)


def cues_from_words(
    words: Iterable[tuple[float, float, str]],
    *,
    width: int = WIDTH,
    rows: int = ROWS,
    longest: float = LONGEST_CUE_S,
    gap: float = GAP_S,
) -> list[Cue]:
    """Readable cues from (start, end, word): they end at sentences and gaps, and before they are full or too long.

    Words may bring their own spaces (Whisper's " word"); where none does, spaces are put between them, except in
    Chinese and Japanese.
    """
    timed = [(start, max(start, end), word) for start, end, word in words if word.strip()]
    spaced = any(word[0].isspace() for _, _, word in timed)
    cues: list[Cue] = []
    held: list[tuple[float, float, str]] = []
    for word in timed:
        if held and (word[0] - held[-1][1] >= gap or _ends_sentence(_joined(held, spaced), word[2])):
            cues.append(_cue(held, spaced))
            held = []
        held.append(word)
        while len(held) > 1 and _overfull(held, spaced, width, rows, longest):
            at = _break(held)
            cues.append(_cue(held[:at], spaced))
            held = held[at:]
    return [*cues, _cue(held, spaced)] if held else cues


def _timed(cues: Iterable[Cue]) -> Iterator[tuple[int, int, str]]:
    """(start, end, text) of each cue that has text, in milliseconds; none begins before the one before it ends."""
    before = 0
    for cue in cues:
        text = _body(cue.text)
        if not text:
            continue
        start = max(before, _milliseconds(cue.start))
        before = max(start + 1, _milliseconds(cue.end))
        yield start, before, text


def _body(text: str) -> str:
    rows = (_UNPRINTABLE.sub(" ", row).strip() for row in text.splitlines())
    kept = [row for row in rows if row]
    if len(kept) > 1 and all(_columns(row) <= WIDTH for row in kept):
        return "\n".join(kept)  # the writer's own lines
    return "\n".join(lines(" ".join(kept)))


def _milliseconds(seconds: float) -> int:
    """Whole milliseconds, so that 59.9996 s carries into the minute; what is no time counts as 0."""
    return max(0, round(seconds * 1000)) if math.isfinite(seconds) else 0


def _stamp(milliseconds: int, mark: str) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{mark}{rest:03d}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _columns(text: str) -> int:
    return sum(_column(character) for character in text)


def _column(character: str) -> int:
    if character < "\u0300":
        return 1
    if unicodedata.combining(character) or character in "\u200b\u200c\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _words(text: str, width: int) -> list[tuple[str, str]]:
    """(space before, word) pairs that a line may be broken between; wide characters are words of their own."""
    words: list[tuple[str, str]] = []
    for chunk in text.split():
        space = " "
        for piece in _unspaced(chunk):
            for part in _short(piece, width):
                words.append((space, part))
                space = ""
    return words


def _unspaced(chunk: str) -> Iterator[str]:
    """Parts of a chunk without spaces: breaks beside wide characters, but not before a closing mark."""
    start = 0
    for at in range(1, len(chunk)):
        wide = is_unspaced(chunk[at - 1]) or is_unspaced(chunk[at])
        if wide and chunk[at] not in CLOSERS + CJK_STOPS + "，、：…—,.!?;:" and chunk[at - 1] not in "（「『《“‘【":
            yield chunk[start:at]
            start = at
    yield chunk[start:]


def _short(word: str, width: int) -> Iterator[str]:
    start, used = 0, 0
    for at, character in enumerate(word):
        used += _column(character)
        if used > width and at > start:
            yield word[start:at]
            start, used = at, _column(character)
    yield word[start:]


def _filled(words: list[tuple[str, str]], width: int) -> list[str]:
    rows: list[list[str]] = []
    used = 0
    for space, word in words:
        size = _columns(word)
        if rows and used + len(space) + size <= width:
            rows[-1].append(space + word)
            used += len(space) + size
        else:
            rows.append([word])
            used = size
    return ["".join(row) for row in rows]


def _joined(words: list[tuple[float, float, str]], spaced: bool) -> str:
    text = ""
    for _, _, word in words:
        tight = spaced or not text or is_unspaced(text[-1]) or is_unspaced(word[0]) or not any(map(str.isalnum, word))
        text += word if tight else " " + word
    return " ".join(text.split())


def _cue(words: list[tuple[float, float, str]], spaced: bool) -> Cue:
    return Cue(words[0][0], max(end for _, end, _ in words), _joined(words, spaced))


def _ends_sentence(text: str, following: str) -> bool:
    """Whether `text` is a whole sentence, given the word after it (so that "Dr." and "U.S." are not)."""
    space = "" if is_unspaced(text[-1]) else " "
    return len(text) in sentence_ends(text + space + following.strip())


def _overfull(words: list[tuple[float, float, str]], spaced: bool, width: int, rows: int, longest: float) -> bool:
    return words[-1][1] - words[0][0] > longest or len(lines(_joined(words, spaced), width, rows)) > rows


def _break(words: list[tuple[float, float, str]]) -> int:
    """How many words a full cue keeps: up to the last clause in its second half, else all but the newest."""
    for at in range(len(words) - 1, len(words) // 2, -1):
        if words[at - 1][2].rstrip()[-1] in ",;:，；：、—.!?。！？…":
            return at
    return len(words) - 1
