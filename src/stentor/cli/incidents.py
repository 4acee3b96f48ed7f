"""`stentor incidents`: the recorded failures of this machine, one of them in full, all of them for a bug report.

Reads the data folder itself, so that it works when the server does not.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__, platform
from ..host.export import export as write_export
from ..host.incidents import Incident, as_dict
from ..host.store import IncidentStore
from ..settings import Loaded, Settings
from . import show
from .options import with_every_setting

HEADERS = ("id", "when", "model", "kind", "what came of it")
PLAIN = (bool, int, float)  # the settings whose values say nothing of a person

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    app.callback(no_args_is_help=True)(incidents)
    for verb, name in ((list_incidents, "list"), (show_incident, "show"), (export, "export")):
        app.command(name)(with_every_setting(verb, hidden=True))


def incidents() -> None:
    """Show the recorded failures of sidecars.

    Works without a server. The folder is the setting data_dir (--data-dir FOLDER).
    """


def list_incidents(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="So many at most.")] = 20,
    json: Json = False,
    settings: Settings,
) -> None:
    """List the newest incidents.

    Columns: id, when, model, kind, what came of it.
    """
    store = _store(settings)
    found = store.read(limit)
    if json:
        show.as_json({"incidents": [as_dict(one) for one in found]})
    elif found:
        show.table(HEADERS, list(map(_row, found)))
    else:
        show.remark(f"no incidents in {show.readable(store.path)}")


def show_incident(
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="The id, or as much of it as tells it apart.")],
    json: Json = False,
    settings: Settings,
) -> None:
    """Show one incident with its evidence."""
    found = _store(settings).find(id)
    if json:
        show.as_json(as_dict(found))
        return
    facts = as_dict(found)
    typer.echo(_printable(facts.pop("sentence")))
    evidence = facts.pop("evidence")
    typer.echo("\n" + "\n".join(_lines(facts, "")))
    if evidence:
        typer.echo("\nevidence\n" + "\n".join(_lines(evidence, "  ")))


def export(
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The zip; by default named by the time.")
    ] = None,
    loaded: Loaded,
) -> None:
    """Write all incidents into a zip for a bug report.

    Texts and keys are not in it; README.txt in the zip says what is.
    """
    path = output or Path(f"stentor-incidents-{time.strftime('%Y%m%d-%H%M%S')}.zip")
    count = write_export(_store(loaded.settings), path, _facts(loaded))
    typer.echo(show.readable(path))
    show.remark(f"{count} {'incident' if count == 1 else 'incidents'}; look through it before you send it")


def _store(settings: Settings) -> IncidentStore:
    return IncidentStore(platform.data_folder(settings.data_dir))


def _row(one: Incident) -> tuple[str, ...]:
    outcome = "recovered" if one.recovered else "not recovered"
    remark = f"{outcome}: {one.how}" if one.how else outcome
    return (one.id, f"{one.at.astimezone():%Y-%m-%d %H:%M:%S}", one.model, one.kind, _printable(remark))


def _facts(loaded: Loaded) -> dict[str, Any]:
    """What is set, and of a setting that may name a person or a place only that it is set."""
    values = {name: getattr(loaded.settings, name) for name, origin in loaded.origins.items() if origin != "default"}
    changed = {name: value if isinstance(value, PLAIN) else "set" for name, value in values.items()}
    return {"stentor": __version__, "settings": changed}


def _lines(value: object, indent: str) -> list[str]:
    """Names and values, one a line, what is nested under its name."""
    if not isinstance(value, dict):
        return [f"{indent}{_printable(line)}" for line in str(value).split("\n")]
    lines: list[str] = []
    for name, one in value.items():
        nested = one if isinstance(one, list) else [one] if isinstance(one, dict) or "\n" in str(one) else []
        lines.append(f"{indent}{_printable(name)}" + ("" if nested else f": {_printable(_word(one))}"))
        lines += [line for part in nested for line in _lines(part, f"{indent}  ")]
    return lines


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == [] else str(value)


def _printable(text: str) -> str:
    """Evidence comes from any program: what would move the cursor or colour the terminal is shown, not obeyed."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
