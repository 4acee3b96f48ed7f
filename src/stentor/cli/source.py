"""Where the text of `say` comes from: the arguments, a file, or standard input, as UTF-8 whatever the locale says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from ..errors import InvalidRequest

STDIN = "-"


def text_of(words: list[str] | None, file: Path | None) -> str:
    """The text to say. Raises InvalidRequest for two sources, a file that cannot be read, or bytes that are no text."""
    if words and file is not None:
        raise InvalidRequest("give a text or --file, not both.")
    if file is not None and str(file) != STDIN:
        return _decoded(_read(file), str(file))
    if words and words != [STDIN]:
        return " ".join(map(_repaired, words))
    if sys.stdin.isatty():
        typer.echo("Type the text; end it with Ctrl-D (Windows: Ctrl-Z and Enter).", err=True)
    return _decoded(sys.stdin.buffer.read(), "standard input")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"cannot read {file}: {error.strerror}.") from error


def _decoded(data: bytes, name: str) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"  # what Windows' editors write
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{name} is not UTF-8 text (byte {error.start}); convert it: iconv -t UTF-8") from error


def _repaired(word: str) -> str:
    """An argument as it was typed: where the locale is not UTF-8, Python hands its bytes on as lone surrogates."""
    if not any("\udc80" <= character <= "\udcff" for character in word):
        return word
    return _decoded(os.fsencode(word), "the text")
