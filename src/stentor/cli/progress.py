"""How far the work is, in numbers that are measured: elapsed time, seconds of audio, and their ratio, the RTF.

Writes to standard error only: a line that renews itself on a terminal, a plain line now and then in a log.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

import typer

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

PLAIN_LINE_S = 10.0  # a log wants a sign of life, not a film
REDRAWS_PER_S = 8


class Progress:
    """Use as a context manager around the work; `update` it as it goes on."""

    def __init__(self) -> None:
        self.audio_s = 0.0
        self._after: str | None = None  # what still goes on once the audio is complete
        self._started = self._said = time.monotonic()
        self._live: Live | None = None

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def update(self, audio_s: float) -> None:
        """The seconds of audio there are now."""
        self.audio_s = audio_s
        now = time.monotonic()
        if self._live is None and now - self._said >= PLAIN_LINE_S:
            self._said = now
            typer.echo(self.line(), err=True)

    def finish(self, doing: str) -> None:
        """The audio is complete: the numbers stand, and something else goes on."""
        self._after = f"{self.line()}; {doing}"

    def line(self) -> str:
        return self._after or numbers(self.elapsed_s, self.audio_s)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._live = _live(self._text)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _text(self) -> Text:
        from rich.text import Text

        return Text(self.line(), overflow="ellipsis", no_wrap=True)


def numbers(elapsed_s: float, audio_s: float) -> str:
    """Elapsed, audio, RTF: how long one second of audio takes to make, under 1 is faster than it is heard."""
    ratio = rtf(elapsed_s, audio_s)
    made = f"{elapsed_s:.1f} s elapsed, {audio_s:.1f} s audio"
    return made if ratio is None else f"{made}, RTF {ratio:.2f}"


def rtf(elapsed_s: float, audio_s: float) -> float | None:
    return round(elapsed_s / audio_s, 4) if audio_s > 0 else None


def _live(text: object) -> Live:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    return Live(get_renderable=text, console=console, refresh_per_second=REDRAWS_PER_S, transient=True)  # type: ignore[arg-type]
