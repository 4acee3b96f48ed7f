"""The `stentor` command: one file per verb. The edge where an error becomes a sentence and an exit code.

Exit codes: 0 done, 1 the work failed, 2 the command line or a setting is wrong, 130 interrupted.
"""

from __future__ import annotations

import sys

import typer

from ..errors import InvalidRequest, SettingsError, StentorError
from . import say, serve, sidecar, transcribe, version

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="stentor",
    help="A local speech server that keeps talking when the GPU does not.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for module in (serve, say, transcribe, sidecar, version):
    module.register(app)


def main() -> None:
    """Run a verb; a StentorError ends it with its message on stderr and a documented code."""
    try:
        app()
    except StentorError as error:
        typer.echo(f"stentor: {error.message}", err=True)
        sys.exit(EXIT_USAGE if isinstance(error, SettingsError | InvalidRequest) else EXIT_FAILED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
