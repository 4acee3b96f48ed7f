"""`stentor sidecar`: one sidecar in the foreground, for driving the protocol by hand (docs/protocol.md)."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    app.command(
        "sidecar",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    )(sidecar)


def sidecar(context: typer.Context) -> None:
    """Run one engine on stdin and stdout, as the server does.

    For driving the protocol by hand: stentor sidecar tts --engine hibari.
    """
    from ..sidecar.main import main

    raise typer.Exit(main(context.args))
