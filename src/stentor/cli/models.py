"""`stentor models`: what can speak and listen here; load and unload one in the running server."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from urllib.parse import quote

import typer

from ..errors import InvalidRequest
from ..settings import Settings
from . import show
from .options import with_settings

ACTIONS = ("load", "unload")


def register(app: typer.Typer) -> None:
    app.command("models")(with_settings(models))


def models(
    action: Annotated[
        str | None,
        typer.Argument(
            metavar="load|unload", help="What to do; nothing: list the models.", autocompletion=lambda: list(ACTIONS)
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The model to load or unload.")] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    settings: Settings,
) -> None:
    """List the models, or load or unload one.

    Columns: model, kind, engine, state, role, languages.
    """
    if action is None:
        _list(asyncio.run(_models(settings)), json)
        return
    if action not in ACTIONS or not name:
        raise InvalidRequest("write stentor models, stentor models load NAME or stentor models unload NAME.")
    changed = asyncio.run(_change(settings, action, name))
    if json:
        show.as_json(changed)
    else:
        typer.echo(f"{changed['id']}: {changed['state']}")


def _list(found: list[dict[str, Any]], json: bool) -> None:
    if json:
        show.as_json({"models": found})
        return
    show.table(("model", "kind", "engine", "state", "role", "languages"), list(map(_row, found)))


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    languages = ", ".join(one["languages"] or [])
    return (one["id"], one["kind"], one["engine"], one["state"], "default" if one.get("default") else "", languages)


async def _models(settings: Settings) -> list[dict[str, Any]]:
    from .connection import api, require_ok

    async with api(settings) as http:
        answer = await http.get("/v1/models")
        await require_ok(answer)
    return list(answer.json()["data"])


async def _change(settings: Settings, action: str, name: str) -> dict[str, Any]:
    from .connection import client, reached, require_ok, required_server

    base = required_server(settings)
    with reached(base):
        async with client(base, settings) as http:
            answer = await http.post(f"/v1/models/{quote(name)}/{action}")
            await require_ok(answer)
    return dict(answer.json())
