"""Characters before words: what cannot be seen is dropped, what only looks different is made plain, emoji go.

Always on (but for emoji), because no engine can say a zero-width space and a lone surrogate cannot even be written as
UTF-8. Knows no language and no markup. Every function is total on `str` and idempotent.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff]+"
)
_JOINED = "\u0600-\u0dff\u1780-\u18af\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"  # scripts and emoji that need joiners
_LOOSE_JOINER = re.compile(f"(?<![{_JOINED}])[\u200c\u200d]+|[\u200c\u200d]+(?![{_JOINED}\u200c\u200d])")
_LINE_BREAK = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACE = re.compile("[\t\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_DRESSED = re.compile(
    "[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff04-\uff06\uff0b\uff1d\uff20\uffe0\uffe1\uffe6"
    "\u2460-\u2473\u2776-\u2793\U0001d400-\U0001d7ff]"
)
_WIDE_POINT = re.compile("(?<=[0-9])[．：／](?=[0-9])")
_ARROW = re.compile("[\u2794\u2798-\u27af\u27b1-\u27be\u21d2\u21e8\u27f6]")
_HYPHEN = re.compile("[\u2010-\u2012]|\u2212(?=[0-9.])")
_APOSTROPHE = re.compile("(?<=[A-Za-z0-9])[’ʼ＇]|[’ʼ＇](?=[A-Za-z0-9])")
_MOST_MARKS = 8  # a letter of any living script has fewer; more is decoration, and makes NFC quadratic

_EMOJI = (
    "\u203c\u2049\u231a-\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25aa-\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2775"
    "\u2795-\u2797\u27b0\u27bf\u2934-\u2935\u2b05-\u2b07\u2b1b-\u2b1c\u2b50\u2b55\u3030\u303d\U0001f000-\U0001faff"
)
_EMOJI_PARTS = "\u200d\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f"
_EMOJI_RUN = re.compile(rf"[ ]?[{_EMOJI}](?:[ ]?[{_EMOJI}{_EMOJI_PARTS}])*([ ]*)(?=([,.!?;:，。！？；：、…)）]?))")
_EMOJI_STYLE = re.compile("[\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f]+")


def clean(text: str) -> str:
    """The same words in plain characters: NFC, full-width digits narrow, `’` in "I’m" straight, one kind of space.

    >>> clean("I’m\\u200b ２０\\xa0𝗯𝗼𝗹𝗱")
    "I'm 20 bold"
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_BREAK.sub("\n", text)
    text = _SPACE.sub(" ", _INVISIBLE.sub("", text))
    if text.isascii():
        return text
    text = _DRESSED.sub(_plain, _ARROW.sub("→", _LOOSE_JOINER.sub("", text)))
    text = _APOSTROPHE.sub("'", _HYPHEN.sub("-", _WIDE_POINT.sub(lambda m: unicodedata.normalize("NFKC", m[0]), text)))
    return unicodedata.normalize("NFC", _few_marks(text))


def drop_emoji(text: str) -> str:
    """Emoji, flags and their parts gone, a space where they parted two words; the digit of a keycap stays.

    >>> drop_emoji("Done 🎉🎉! Press 1️⃣ now👍🏽please")
    'Done! Press 1 now please'
    """
    if text.isascii():
        return text
    return _EMOJI_STYLE.sub("", _EMOJI_RUN.sub(lambda run: "" if run[2] else " ", text))


def _plain(dressed: re.Match[str]) -> str:
    character = dressed[0]
    if "\u2460" <= character <= "\u2793":  # ① ❶ ➀
        return f" {unicodedata.numeric(character):.0f} "
    return unicodedata.normalize("NFKC", character)


def _few_marks(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)
