"""Discovery: /v1/models, /v1/audio/models and /v1/audio/voices in the shapes that clients read.

Open without a key: Open WebUI asks before it sends one (facts/serving-anchors.md A.1).
"""

from __future__ import annotations

from fastapi import APIRouter, Request

from ..catalog import KIND_WORDS, resolve
from ..errors import UnknownModel
from ..host.supervisor import Sidecar

router = APIRouter()


@router.get("/v1/models")
@router.get("/v1/audio/models")
async def models(request: Request) -> dict[str, object]:
    """Every model on offer, loaded or not."""
    state = request.app.state.stentor
    entries = [describe(one) for one in state.supervisor.sidecars.values()]
    return {"object": "list", "data": entries, "models": entries}


@router.get("/v1/models/{model:path}")
async def model(model: str, request: Request) -> dict[str, object]:
    """One model. 404 with the list where there is none of that name."""
    sidecars = request.app.state.stentor.supervisor.sidecars
    if model not in sidecars:
        raise UnknownModel(f"There is no model {model!r} here. Models: {', '.join(sidecars)}.", param="model")
    return describe(sidecars[model])


@router.get("/v1/audio/voices")
async def voices(request: Request, model: str | None = None) -> dict[str, object]:
    """The voices of one speech model (default: of the default one), which is loaded if it was not."""
    state = request.app.state.stentor
    name = resolve(model, "tts", state.settings.offered, state.settings.speech_model)
    hello = await state.supervisor.sidecars[name].ready()
    entries = [{"id": one.id, "name": one.name, "languages": one.languages, "model": name} for one in hello.voices]
    return {"object": "list", "voices": entries, "data": entries}


def describe(sidecar: Sidecar) -> dict[str, object]:
    """OpenAI's model object, and what this server knows beside it."""
    hello = sidecar.hello
    return {
        "id": sidecar.model,
        "object": "model",
        "created": 0,
        "owned_by": "stentor",
        "kind": KIND_WORDS[sidecar.spec.the_kind],
        "engine": sidecar.spec.engine,
        "state": sidecar.state,
        "languages": hello.languages if hello else None,
        "capabilities": hello.capabilities if hello else None,
    }
