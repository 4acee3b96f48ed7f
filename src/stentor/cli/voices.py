"""`stentor voices`: the voices of one speech model, which a server may have to load for the answer."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from ..settings import Settings
from . import show
from .options import with_settings


def register(app: typer.Typer) -> None:
    app.command("voices")(with_settings(voices))


def voices(
    *,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Of this model (default: the default one).")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    settings: Settings,
) -> None:
    """List the voices of a model.

    Columns: voice, name, languages, model.
    """
    found = asyncio.run(_voices(settings, model))
    if json:
        show.as_json({"voices": found})
        return
    rows = [(one["id"], one["name"], ", ".join(one["languages"]), one["model"]) for one in found]
    show.table(("voice", "name", "languages", "model"), rows)
    if not rows:
        show.remark("This model has no voices of its own.")


async def _voices(settings: Settings, model: str | None) -> list[dict[str, Any]]:
    from .connection import api, require_ok

    async with api(settings) as http:
        answer = await http.get("/v1/audio/voices", params={"model": model} if model else {})
        await require_ok(answer)
    return list(answer.json()["voices"])
