"""`stentor version`."""

from __future__ import annotations

import platform

import typer

from .. import __version__


def register(app: typer.Typer) -> None:
    app.command("version")(version)


def version() -> None:
    """Print the versions a bug report needs."""
    from ..protocol import PROTOCOL

    typer.echo(
        f"stentor {__version__} (protocol {PROTOCOL}, Python {platform.python_version()}, {platform.platform()})"
    )
