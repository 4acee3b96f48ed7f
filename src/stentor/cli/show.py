"""How an answer is printed: a table for a person, lines with tabs for a pipe, JSON for a program.

Only data goes to standard output; what is said about it goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

Row = Sequence[str]

GAP = 2  # columns between two cells
FOLDED = 24  # the last column may be as narrow as this and go on in the next line


def table(headers: Row, rows: Sequence[Row]) -> None:
    """A table on a terminal; elsewhere one line a row, cells between tabs, no header: `cut -f1` is the first column."""
    if not sys.stdout.isatty():
        for row in rows:
            typer.echo("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
        return
    console = _console()
    fits = _width(headers, rows) <= console.width
    console.print(_table(headers, rows) if fits else _records(headers, rows))


def as_json(answer: object) -> None:
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    typer.echo(json.dumps(answer, ensure_ascii=not unicode, indent=2))


def readable(path: Path) -> str:
    """A path as text: where the locale is not UTF-8, Python holds its bytes as lone surrogates."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def remark(text: str) -> None:
    """A sentence about the answer, on standard error."""
    typer.echo(text, err=True)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def _width(headers: Row, rows: Sequence[Row]) -> int:
    from rich.cells import cell_len

    *firm, last = [max(map(cell_len, column)) + GAP for column in zip(headers, *rows, strict=True)]
    return sum(firm) + min(last - GAP, FOLDED)


def _table(headers: Row, rows: Sequence[Row]) -> object:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for header in headers:
        shown.add_column(header, no_wrap=header != headers[-1], overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))  # as Text: a name may hold [brackets], which would be markup
    return shown


def _records(headers: Row, rows: Sequence[Row]) -> object:
    """Where a row has no room for all cells: the first cell as a heading, the others named under it."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    lines: list[object] = []
    for first, *others in rows:
        lines.append(Text(first, style="bold"))
        named = [f"{header}: {cell}" for header, cell in zip(headers[1:], others, strict=True) if cell]
        lines += [Padding(Text(one), (0, 0, 0, 2), expand=False) for one in named]
    return Group(*lines)  # type: ignore[arg-type]
