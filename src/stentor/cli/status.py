"""`stentor status`: what the server's /health says, for a person; its exit code, for a script."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..catalog import KIND_WORDS
from ..settings import Settings
from . import EXIT_FAILED, show
from .options import with_settings

HEADERS = ("model", "state", "kind", "running", "waiting", "restarts", "device", "remark")
TROUBLED = ("stalled", "restarting")


def register(app: typer.Typer) -> None:
    app.command("status")(with_settings(status))


def status(
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    settings: Settings,
) -> None:
    """Say how the server is.

    Exit code: 0 healthy, 1 degraded or failing, 3 no server.
    """
    from ..errors import NoServer
    from .connection import address

    base = address(settings)
    try:
        health = {"server": base, **_health(settings)}
    except NoServer:
        if json:
            show.as_json({"server": base, "status": "no server"})
        raise
    if json:
        show.as_json(health)
    else:
        typer.echo(f"Stentor {health['version']} at {base}: {health['status']}")
        show.table(HEADERS, [_row(model, facts) for model, facts in health["sidecars"].items()])
    if health["status"] != "ok":
        raise typer.Exit(EXIT_FAILED)


def _health(settings: Settings) -> dict[str, Any]:
    """What /health says; 503 is its way to say failing. Raises NoServer, and what the server refuses with."""
    import asyncio

    from .connection import client, reached, require_ok, required_server

    base = required_server(settings)

    async def ask() -> dict[str, Any]:
        async with client(base, settings) as http:
            answer = await http.get("/health")
            if answer.status_code != 503:
                await require_ok(answer)
            return dict(answer.json())

    with reached(base):
        return asyncio.run(ask())


def _row(model: str, facts: dict[str, Any]) -> tuple[str, ...]:
    counts = (str(facts[name]) for name in ("running", "waiting", "restarts"))
    return (model, facts["state"], KIND_WORDS[facts["kind"]], *counts, facts["device"] or "", _remark(facts))


def _remark(facts: dict[str, Any]) -> str:
    failed, loading = facts["last_failure"], facts["loading"]
    if failed and facts["state"] in TROUBLED:  # though it loads again: this is what a person looks for
        return f"last failure: {failed}"
    if loading:
        return f"{loading['stage']} {loading['fraction']:.0%}"
    return f"last failure: {failed}" if failed else "default" if facts["default"] else ""
