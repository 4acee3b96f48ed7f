"""`stentor drill`: deliberate faults on this machine, and what came of each (DESIGN.md 8, docs/drills.md).

Starts its own server, breaks its sidecars in mid-utterance, and compares what the client got with an undisturbed run.
"""

from __future__ import annotations

import logging
import tempfile
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from ..errors import InvalidRequest
from ..settings import Settings
from . import EXIT_FAILED, show
from .options import with_every_setting

SPEECH = (
    "crash@2",
    "abort@2",
    "exit@2",
    "oom@2",
    "half-line@2",
    "load-fail@2",
    "stdout-noise@2",
    "slow:10@0",
    "hang@2",
    "spin@2",
    "stop@2",
    "blocked-pipe@2",
)
LISTENING = ("crash@1", "hang@1")
HARMLESS = ("stdout-noise", "slow")  # nothing may be killed for these: a kill would be a false alarm
HEADERS = ("fault", "in", "detected after", "pause", "identical", "verdict")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one fault. `detected_s`: since the last progress; None: at once, by the end of the process."""

    fault: str
    kind: str  # speech or transcription
    detected_s: float | None
    pause_s: float
    identical: bool
    verdict: str  # ok, or what is wrong

    @property
    def ok(self) -> bool:
        return self.verdict == "ok"


def register(app: typer.Typer) -> None:
    app.command("drill")(with_every_setting(drill, hidden=True))


def drill(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]…", help="Faults; none means all.")] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    settings: Settings,
) -> None:
    """Break the sidecars of a server of its own, one fault after the other, and show that nothing is lost.

    Takes every setting of serve as a flag. Exit code: 0 all survived, 1 something was lost.
    """
    from .drills import Drills
    from .own_server import own_server

    wanted = _chosen(names or [])
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="stentor-drill-") as data:
        changed = {"drills": True, "data_dir": data, "log_level": "error", "preload": True, "breaker_incidents": 1000}
        with own_server(settings, **changed) as server:
            outcomes = Drills(server, data).run(wanted, lambda one: None if json else _show(one))
    if json:
        show.as_json({"drills": [{**asdict(one), "ok": one.ok} for one in outcomes]})
    else:
        _sum_up(outcomes)
    if not all(one.ok for one in outcomes):
        raise typer.Exit(EXIT_FAILED)


def _chosen(names: list[str]) -> list[tuple[str, str]]:
    """(kind, fault) of each drill. Raises InvalidRequest that lists the names."""
    every = [("speech", one) for one in SPEECH] + [("transcription", one) for one in LISTENING]
    known = {_name(fault) for _, fault in every}
    for name in names:
        if _name(name) not in known:
            raise InvalidRequest(f"no drill {name!r}; there are: {', '.join(sorted(known))}.")
    asked = {_name(name) for name in names}
    return [one for one in every if not asked or _name(one[1]) in asked]


def _name(fault: str) -> str:
    return fault.partition("@")[0].partition(":")[0]


def is_harmless(fault: str) -> bool:
    return _name(fault) in HARMLESS


def _row(one: Outcome) -> tuple[str, ...]:
    detected = "at once" if one.detected_s is None else f"{one.detected_s:.1f} s"
    detected = "nothing to detect" if is_harmless(one.fault) else detected
    return (one.fault, one.kind, detected, f"{one.pause_s:.2f} s", "yes" if one.identical else "NO", one.verdict)


def _show(one: Outcome) -> None:
    """A line as soon as it is known: the whole takes a minute."""
    show.remark("  ".join(_row(one)))


def _sum_up(outcomes: list[Outcome]) -> None:
    show.table(HEADERS, [_row(one) for one in outcomes])
    pauses = sorted(one.pause_s for one in outcomes if not is_harmless(one.fault))
    if pauses:
        show.remark(f"pause: median {pauses[len(pauses) // 2]:.2f} s, worst {pauses[-1]:.2f} s")
