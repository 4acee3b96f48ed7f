"""The `stentor` command: one file per verb, imported when it is asked for. The edge where an error becomes a sentence.

Owns the exit codes (docs/cli.md). Imports nothing heavy: `stentor --help` is what a newcomer waits for first.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import (
    Busy,
    InvalidRequest,
    NoServer,
    SettingsError,
    StentorError,
    Unauthorized,
    UnknownModel,
    UnknownVoice,
)

VERBS = ["serve", "say", "transcribe", "voices", "models", "status", "incidents", "drill", "settings", "sidecar"]
VERBS += ["version"]

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_SERVER = 3
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_READER_GONE = 141  # as a shell reports SIGPIPE

NEXT: dict[type[StentorError], str] = {
    UnknownModel: "See: stentor models",
    UnknownVoice: "See: stentor voices",
    Unauthorized: "Give it with --api-keys KEY or the variable STENTOR_API_KEYS.",
    Busy: "Try again in a moment; stentor status shows the queue.",
    NoServer: "Start one: stentor serve",
}
"""What a person does next, where the message of the error itself cannot know that it is read in a terminal."""


class Verbs(TyperGroup):
    """The verbs, each imported when it is run; and the one place where what a verb raises becomes an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        verb = typer.Typer(add_completion=False)
        importlib.import_module(f".{cmd_name}", __name__).register(verb)
        return typer.main.get_command(verb)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, where a reader that left is still an answer and not a traceback at exit
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(EXIT_READER_GONE) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(EXIT_INTERRUPTED) from error
        except StentorError as error:
            typer.echo(f"stentor: {error.message} {NEXT.get(type(error), '')}".rstrip(), err=True)
            raise typer.Exit(exit_code(error)) from error
        return result


def exit_code(error: StentorError) -> int:
    if isinstance(error, NoServer):
        return EXIT_NO_SERVER
    return EXIT_USAGE if isinstance(error, SettingsError | InvalidRequest) else EXIT_FAILED


app = typer.Typer(
    name="stentor",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A local speech server that keeps talking when the GPU does not."""


def main() -> None:
    """Run a verb. What a terminal cannot show is escaped rather than fatal: names of files are any bytes."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    logging.getLogger("stentor").addHandler(logging.NullHandler())  # `serve` has a log; a verb says an error once
    app()
