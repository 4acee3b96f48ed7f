"""Addresses of machines: URLs, e-mail, IP addresses, paths, file names, @handles and #hashtags, spelled in words.

Read in full, because a listener cannot look; only the scheme (`https://`) is left out, as people do. Serves English
and Chinese with the same patterns: the words come from one table. Knows no other rule.
"""

from __future__ import annotations

import re
from functools import cache, partial

from .numerals import cardinal, digits
from .rules import Rule, alternatives, rule
from .tables import FILE_ENDINGS, SPELLED, TOP_LEVEL

_HOST = r"(?:[A-Za-z0-9-]++\.)+"
_VISIBLE = r"[^\s<>\"“”‘’「」『』《》（）【】，。；！？、]"
_TAIL = rf"(?::[0-9]{{1,5}})?(?:[/?#]{_VISIBLE}*+)?"
_URL = rf"(?<![\w@.-])(?:(?:https?|ftp|wss?|file)://{_VISIBLE}++|localhost:[0-9]{{1,5}}{_TAIL}|www\.{_HOST}[A-Za-z]{{2,12}}{_TAIL})"
_BARE = rf"(?<![\w@.-]){_HOST}(?:{'|'.join(TOP_LEVEL)})(?![A-Za-z0-9-]|\.[A-Za-z0-9]){_TAIL}"
_EMAIL = r"(?<![\w.+-])(?:mailto:)?[A-Za-z0-9][\w.+-]*+@(?:[A-Za-z0-9-]++\.)+[A-Za-z]{2,12}(?![A-Za-z0-9])"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IP = rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?![0-9]|\.[0-9])(?:[:/][0-9]{{1,5}}(?![0-9]))?"
_NAME = r"[\w.+@%-]++"
_PATH = (
    rf"(?<![\w/.\\])(?:[A-Za-z]:\\(?:{_NAME}\\?)*+|(?:~|\.{{1,2}})?/(?:{_NAME}/)+{_NAME}|"
    rf"(?:~|\.{{1,2}})/(?:{_NAME}/?)++|/(?:{_NAME}/)+)"
)
_FILE = rf"(?<![\w.@-])[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*\.(?:{alternatives(FILE_ENDINGS)})(?![\w-]|\.\w)"
_HANDLE = r"(?<![\w@.])@[A-Za-z_][\w-]*+"
_HASHTAG = r"(?<![\w#&/])#(?=[0-9_]*[^\W\d_])[^\W]++"
_TRAILING = ".,;:!?)]}'\"*_"

_PIECE = re.compile(r"(?P<letters>[A-Za-z]+)|(?P<digits>[0-9]+)|.", re.DOTALL)


@cache
def network_rules(chinese: bool) -> tuple[Rule, ...]:
    """The rules of one language, most specific first."""
    spell = partial(_spelled, chinese)
    hashtag = "话题 " if chinese else "hashtag "
    return (
        rule("emails", _EMAIL, lambda match: spell(match[0].removeprefix("mailto:"))),
        rule("urls", _URL, partial(_url, chinese), re.IGNORECASE),
        rule("urls", _IP, lambda match: _address(match[0], chinese)),
        rule("urls", _FILE, lambda match: spell(match[0])),
        rule("urls", _BARE, partial(_url, chinese)),
        rule("urls", _PATH, partial(_path, chinese)),
        rule("urls", _HANDLE, lambda match: spell(match[0])),
        Rule("urls", re.compile(_HASHTAG), lambda match: hashtag + _spaced(match[0][1:].replace("_", " "))),
    )


def _url(chinese: bool, match: re.Match[str]) -> str:
    """The address without its scheme; a stop that ends the sentence, not the address, is kept as a stop."""
    address = match[0].rstrip(_TRAILING)
    if ")" in match[0] and address.count("(") > address.count(")"):
        address = match[0][: len(address) + 1]
    rest = match[0][len(address) :]
    address = re.sub(r"\A[A-Za-z]+://", "", address).rstrip("/")
    return _spelled(chinese, address) + rest


def _path(chinese: bool, match: re.Match[str]) -> str:
    path = match[0].rstrip(".")
    return _spelled(chinese, path) + match[0][len(path) :]


def _address(text: str, chinese: bool) -> str:
    """An IP address: digit by digit, which is right for one, two and three of them."""
    spoken = (
        _digits(piece[0], chinese) if piece["digits"] else _sign(piece[0], chinese) for piece in _PIECE.finditer(text)
    )
    return ("" if chinese else " ").join(spoken)


def _spelled(chinese: bool, text: str) -> str:
    """Every sign by its name, letters as they are, numbers as words."""
    spoken: list[str] = []
    for piece in _PIECE.finditer(text):
        if number := piece["digits"]:
            short = len(number) <= 3 and number[0] != "0" and not chinese
            spoken.append(cardinal(int(number)) if short else _digits(number, chinese))
        else:
            spoken.append(piece["letters"] or _sign(piece[0], chinese))
    return " ".join(spoken)


def _digits(text: str, chinese: bool) -> str:
    return "".join("零一二三四五六七八九"[int(digit)] for digit in text) if chinese else digits(text)


def _sign(sign: str, chinese: bool) -> str:
    return SPELLED[sign][chinese] if sign in SPELLED else sign


def _spaced(text: str) -> str:
    """`HelloWorld2024` → `Hello World 2024`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])", " ", text)
