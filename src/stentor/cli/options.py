"""Every setting as a flag: the CLI's options are generated from Settings, so that they cannot drift apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from ..settings import FILE_VARIABLE, Settings, load

FILE_HELP = f"TOML file with settings (variable {FILE_VARIABLE})."


def with_settings(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb one option per setting and hand it the effective `settings`."""

    def command(**given: Any) -> None:
        flags = {name: given.pop(name) for name in Settings.model_fields}
        file = given.pop("settings_file")
        verb(**given, settings=load(flags, file=file).settings)

    own = [one for one in inspect.signature(verb, eval_str=True).parameters.values() if one.name != "settings"]
    command.__signature__ = inspect.Signature([*own, *_flags()])  # type: ignore[attr-defined]
    command.__doc__ = verb.__doc__
    return command


def _flags() -> list[inspect.Parameter]:
    file = _parameter("settings_file", Annotated[Path | None, typer.Option("--settings", help=FILE_HELP)])
    return [file, *(_flag(name, field) for name, field in Settings.model_fields.items())]


def _flag(name: str, field: FieldInfo) -> inspect.Parameter:
    """Every value goes as text, which Settings parses as it parses a variable; only switches are switches."""
    switch = field.annotation is bool
    default = "" if field.default_factory else f"[default: {field.default}]"
    help_text = f"{field.description} {default}".strip()
    names = [f"--{name.replace('_', '-')}"] + ([f"--no-{name.replace('_', '-')}"] if switch and field.default else [])
    option = typer.Option("/".join(names), help=help_text, show_default=False)
    return _parameter(name, Annotated[bool | None if switch else str | None, option])


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
