"""Settings as flags: the CLI's options are generated from Settings, so that they cannot drift apart.

`serve` has every setting as a flag. A command that only asks a server shows how to reach it; every other setting still
comes from the file and the variables, for the command that does the work itself where no server runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from ..settings import FILE_VARIABLE, Settings, load

FILE_HELP = f"TOML file with settings (variable {FILE_VARIABLE})."
CONNECTION = {
    "server": "URL of the server; with it, nothing is done without that server.",
    "host": f"Host of the server (default: {Settings.model_fields['host'].default}).",
    "port": f"Port of the server (default: {Settings.model_fields['port'].default}).",
    "api_keys": "Key that the server asks for.",
}
PANEL = "Which server"
METAVARS = {"server": "URL", "host": "ADDRESS", "api_keys": "KEY"}

Verb = Callable[..., None]


def with_settings(verb: Verb) -> Verb:
    """Give a verb the options that say which server it asks, and hand it the effective `settings`."""
    flags = [_flag(name, Settings.model_fields[name], help_text, PANEL) for name, help_text in CONNECTION.items()]
    return _with(verb, [*flags, _file(PANEL)])


def with_every_setting(verb: Verb, *, hidden: bool = False) -> Verb:
    """Give a verb one option per setting (shown or not), and hand it `settings`, or `loaded` with their origins."""
    flags = [_flag(name, field, _described(field), None, hidden) for name, field in Settings.model_fields.items()]
    return _with(verb, [_file(None), *flags])


def _with(verb: Verb, flags: list[inspect.Parameter]) -> Verb:
    parameters = inspect.signature(verb, eval_str=True).parameters

    def command(**given: Any) -> None:
        values = {flag.name: given.pop(flag.name) for flag in flags}
        loaded = load(values, file=values.pop("settings_file"))
        verb(**given, **({"loaded": loaded} if "loaded" in parameters else {"settings": loaded.settings}))

    own = [one for one in parameters.values() if one.name not in ("settings", "loaded")]
    command.__signature__ = inspect.Signature([*own, *flags])  # type: ignore[attr-defined]
    command.__doc__ = verb.__doc__
    return command


def _described(field: FieldInfo) -> str:
    default = "" if field.default_factory or field.default in ("", False) else f"(default: {field.default})"
    return f"{field.description} {default}".strip()  # in round brackets: rich takes square ones for markup


def _file(panel: str | None) -> inspect.Parameter:
    option = typer.Option("--settings", help=FILE_HELP, metavar="FILE", rich_help_panel=panel)
    return _parameter("settings_file", Annotated[Path | None, option])


def _flag(name: str, field: FieldInfo, help_text: str, panel: str | None, hidden: bool = False) -> inspect.Parameter:
    """Every value goes as text, which Settings parses as it parses a variable; only switches are switches."""
    switch = field.annotation is bool
    flag = flag_name(name)
    names = [f"{flag}/--no-{flag[2:]}" if switch and field.default else flag]
    names += ["--api-key"] if name == "api_keys" else []  # what one who has one key will type
    option = typer.Option(
        *names,
        help=help_text,
        show_default=False,
        rich_help_panel=panel,
        hidden=hidden,
        metavar=None if switch else _metavar(name, field),
    )
    return _parameter(name, Annotated[bool | None if switch else str | None, option])


def flag_name(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def _metavar(name: str, field: FieldInfo) -> str:
    names: dict[object, str] = {int: "INTEGER", float: "NUMBER", str: "TEXT"}
    return METAVARS.get(name) or names.get(field.annotation, "LIST")


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
