"""What a language model writes around its words: thoughts, code fences, Markdown, HTML. Knows no language.

The markup goes, the words stay. What is dropped together with its words is only what its switch is for: thoughts,
fenced code, the address behind a link's label, HTML comments. Line breaks stay: sentences and lists need them.
"""

from __future__ import annotations

import re

from .stops import CJK_STOPS, CLOSERS, is_unspaced
from .tables import ENTITIES, HTML_TAGS, words

_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_QUOTED_THINK = re.compile(r"(?<=`)<(/?think(?:ing)?)>(?=`)", re.IGNORECASE)
_FENCE = re.compile(r"[ \t>]*(?:[-*+] +|\d{1,4}[.)] +)?(`{3,}|~{3,})([^`\n]*)\Z")
_BACKTICKS = re.compile(r"(?<=\w)`+(?=\w)|(`+)")

_COMMENT = "<!--"
_TAG = re.compile(rf"</?({'|'.join(HTML_TAGS)})(?:\s[^<>=\n]{{0,200}}=[^<>\n]{{0,2000}})?\s?/?>", re.IGNORECASE)
_INLINE_TAGS = frozenset(words("a abbr b cite code del em font i ins kbd mark q s small span strong sub sup u var"))
_ENTITY = re.compile(rf"&(?:amp;)*({'|'.join(ENTITIES)});")
_TARGET = r"\([ ]?<?[^\s()<>]*+(?:\([^\s()]*+\)[^\s()]*+)*+>?(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?[ ]?\)"
_IMAGE = re.compile(rf"!\[([^\[\]\n]*)\]{_TARGET}")
_LINK = re.compile(rf"(?<!\\)\[([^\[\]\n]+)\]{_TARGET}")
_REFERENCE = re.compile(r"!?\[([^\[\]\n]+)\]\[([^\[\]\n]*)\]")
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]{1,64}\]:?")
_DEFINITION = re.compile(
    r"[ ]{0,3}\[([^\[\]\n]+)\]:[ ]+<?(?:[a-z]+:|www\.|[/#.])\S*(?:[ ]+[\"'(].*)?$", re.IGNORECASE | re.MULTILINE
)
_AUTOLINK = re.compile(r"<((?:https?|ftp)://[^<>\s]+|mailto:[^<>\s]+|[\w.+-]{1,64}@[\w.-]{1,255})>")

_QUOTE = re.compile(r"\A[ \t]*(?:>[ \t]?)+")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+(.*)\Z")
_BULLET = re.compile(r"[ \t]*[-*+•‣◦▪●○·][ \t]+(?:\[[ xX]\][ \t]+)?(.*)\Z")
_NUMBERED = re.compile(r"[ \t]*(\d{1,4})[.)][ \t]+(?:\[[ xX]\][ \t]+)?(.*)\Z")
_RULE = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,}[ \t]*)\Z")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*\Z")
_ROW_RULE = re.compile(r"[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*(?::?-+:?)?[ \t]*\|?[ \t]*\Z")

_TIMES = re.compile(r"(?<=[0-9])[ ]?\*[ ]?(?=[0-9])")
_ESCAPE = re.compile(r"\\(?=[\\`*_{}\[\]<>()#+.!|~$&-])")
_STARS = re.compile(r"(?<=[A-Za-z0-9])\*+(?=[A-Za-z0-9])|(\*+)")
_UNDERSCORES = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")  # those inside a word may be part of an address
_STRIKES = re.compile(r"~{2,}")
_BARS = re.compile(r"[ ]?\|[| ]*")
_STOPPED = (*".!?:;,…", *CJK_STOPS, *"，：；、")


def drop_thoughts(text: str) -> str:
    """The text outside `<think>…</think>`. An unclosed thought runs to the end; a lone `</think>` ends one that began
    before the text (chat templates write the opening tag into the prompt).

    >>> drop_thoughts("<think>2 and 2?</think>Four.")
    '\\nFour.'
    """
    kept: list[str] = []
    depth = last = 0
    text = _QUOTED_THINK.sub(r"\1", text)  # text about the tag is no thought
    for tag in _THINK.finditer(text):
        if not tag[1]:
            if depth == 0:
                kept.append(text[last : tag.start()])
            depth += 1
        elif depth:
            depth -= 1
        else:
            kept.clear()
        if depth == 0:
            kept.append("\n")
        last = tag.end()
    return "".join(kept) + ("" if depth else text[last:])


def drop_code(text: str) -> str:
    """The text without its fenced code blocks; inline code keeps its words. An unclosed fence loses its marker only.

    >>> drop_code("Run `ls`:\\n```sh\\nls -la\\n```\\nDone.")
    'Run ls:\\n\\nDone.'
    """
    if "`" not in text and "~~~" not in text:
        return text
    rows = text.split("\n")
    fences = [_FENCE.match(row) for row in rows]
    closing = _longest_closing(fences)
    kept: list[str] = []
    inside = ""
    for at, (row, fence) in enumerate(zip(rows, fences, strict=True)):
        if inside:
            if fence and fence[1].startswith(inside) and not fence[2].strip():
                inside = ""
        elif fence:
            closed = len(fence[1]) <= closing[at + 1][fence[1][0] == "~"]
            kept.append("" if closed else fence[2])
            if closed:
                inside = fence[1]
        else:
            kept.append(row)
    return _BACKTICKS.sub(lambda ticks: "" if ticks[1] else " ", "\n".join(kept))


def _longest_closing(fences: list[re.Match[str] | None]) -> list[tuple[int, int]]:
    """For each line, the longest closing fence of (backticks, tildes) from it on: says at once if a fence is closed."""
    longest = [(0, 0)]
    for fence in reversed(fences):
        ticks, tildes = longest[-1]
        if fence and not fence[2].strip():
            size = len(fence[1])
            ticks, tildes = (max(ticks, size), tildes) if fence[1][0] == "`" else (ticks, max(tildes, size))
        longest.append((ticks, tildes))
    return longest[::-1]


def strip_markdown(text: str) -> str:
    """The words without Markdown and HTML. Headings, list items and table rows get a stop, so that they sound like it.

    >>> strip_markdown("# Fruit\\n- **red** [apples](http://a.b)\\n- pears")
    'Fruit.\\nred apples.\\npears.'
    """
    text = _inline(_html(text))
    rows = (_row(row) for row in text.split("\n"))
    return "\n".join(row for row in rows if row is not None)


def _html(text: str) -> str:
    text = _ENTITY.sub(lambda entity: ENTITIES[entity[1]], text)
    text = _AUTOLINK.sub(r"\1", _without_comments(text))
    return _TAG.sub(_tag, text)


def _tag(tag: re.Match[str]) -> str:
    if tag[1].lower() not in _INLINE_TAGS:
        return "\n"
    before, after = tag.string[: tag.start()][-1:], tag.string[tag.end() : tag.end() + 1]
    return "" if before.isalnum() and after.isalnum() else " "


def _without_comments(text: str) -> str:
    kept: list[str] = []
    last = 0
    while (start := text.find(_COMMENT, last)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[last:start])
        last = end + 3
    return " ".join([*kept, text[last:]])


def _inline(text: str) -> str:
    text = _LINK.sub(r"\1", _IMAGE.sub(r" \1 ", text))
    defined = {found[1].lower() for found in _DEFINITION.finditer(text)} if "]:" in text else frozenset[str]()
    text = _REFERENCE.sub(lambda link: link[1] if (link[2] or link[1]).lower() in defined else link[0], text)
    return _FOOTNOTE.sub("", text)


def _row(row: str) -> str | None:
    """One line without its block markup; None where it was markup alone."""
    row = _QUOTE.sub("", row, count=1)
    if _RULE.match(row):
        return ""
    if _ROW_RULE.match(row) or _DEFINITION.match(row):
        return None
    if item := _HEADING.match(row):
        return _stopped(_emphasis(_without_hashes(item[1].rstrip())))
    if item := _BULLET.match(row):
        return _stopped(_emphasis(item[1]))
    if item := _NUMBERED.match(row):
        return f"{item[1]}. {_stopped(_emphasis(item[2]))}"
    if _ROW.match(row):
        cells = (_emphasis(cell).strip() for cell in row.strip().strip("|").split("|"))
        return _stopped(", ".join(cell for cell in cells if cell))
    return _emphasis(row)


def _without_hashes(heading: str) -> str:
    """`Title ##` closes a heading; `C#` does not."""
    bare = heading.rstrip("#")
    return bare if not bare or bare[-1] == " " else heading


def _stopped(row: str) -> str:
    row = row.strip()
    bare = row.rstrip(CLOSERS + " ")
    if not bare or bare.endswith(_STOPPED):
        return row
    return row + ("。" if is_unspaced(bare[-1]) else ".")


def _emphasis(row: str) -> str:
    row = _ESCAPE.sub("", _TIMES.sub(" × ", row))
    row = _STARS.sub(lambda stars: "" if stars[1] else " ", row)
    row = _UNDERSCORES.sub("", _STRIKES.sub("", row))
    return _BARS.sub(", ", row) if "|" in row else row
