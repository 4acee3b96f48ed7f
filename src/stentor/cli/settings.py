"""`stentor settings`: what is in force and where it comes from; a file to start from."""

from __future__ import annotations

import json as json_module
from typing import Annotated, Any

import typer

from ..errors import InvalidRequest
from ..settings import PREFIX, Loaded, Settings
from . import show
from .options import flag_name, with_every_setting

HEADER = """\
# Settings of Stentor. Every line is a default: remove its '#' to change it.
# Use this file with --settings FILE or STENTOR_SETTINGS=FILE. STENTOR_NAME variables and flags win over it.
"""


def register(app: typer.Typer) -> None:
    app.command("settings")(with_every_setting(settings, hidden=True))


def settings(
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a settings file with every default.")] = False,
    loaded: Loaded,
) -> None:
    """Print the settings in force and where they come from.

    Takes every flag of stentor serve, to show what it would do.
    """
    if json and template:
        raise InvalidRequest("--json and --template are two answers; ask for one.")
    facts = effective(loaded)
    if template:
        typer.echo(template_file(), nl=False)
    elif json:
        show.as_json(facts)
    else:
        rows = [(name, _shown(one["value"]), one["origin"], one["description"]) for name, one in facts.items()]
        show.table(("setting", "value", "origin", "description"), rows)


def effective(loaded: Loaded) -> dict[str, dict[str, Any]]:
    """Every setting: its value (secrets hidden), where it comes from, what it is for."""
    values = loaded.settings.model_dump(mode="json", exclude_none=True)
    return {
        name: {
            "value": values.get(name),
            "origin": _origin(name, loaded.origins[name]),
            "description": field.description,
        }
        for name, field in Settings.model_fields.items()
    }


def template_file() -> str:
    """A settings file in which each default is a comment; with all comments opened it says the same."""
    values = Settings.model_validate({}).model_dump(mode="json")
    tables = [name for name, value in values.items() if isinstance(value, dict)]
    plain = [_entry(name, f"{name} = {_toml(values[name])}") for name in values if name not in tables]
    return "\n".join([HEADER, *plain, *(_entry(name, f"[{name}]") for name in tables)])


def _entry(name: str, line: str) -> str:
    return f"# {Settings.model_fields[name].description}\n#{line}\n"


def _toml(value: object) -> str:
    """A TOML value. Numbers, switches, texts and lists are written as JSON writes them."""
    return json_module.dumps(value, ensure_ascii=False)


def _origin(name: str, origin: str) -> str:
    return {"environment": f"variable {PREFIX}{name.upper()}", "flag": f"flag {flag_name(name)}"}.get(origin, origin)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json_module.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
