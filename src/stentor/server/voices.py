"""Discovery and memory: what models and voices there are, in the shapes that clients read; load and unload.

Discovery is open without a key unless locked: Open WebUI asks before it sends one (facts/serving-anchors.md A.1).
"""

from __future__ import annotations

from fastapi import APIRouter, Request

from ..catalog import KIND_WORDS, OPENAI_MODELS, resolve
from ..errors import InUse, UnknownModel
from ..host.service import Service
from .state import ServerState

router = APIRouter()


@router.get("/v1/models")
@router.head("/v1/models", include_in_schema=False)
@router.get("/v1/audio/models", include_in_schema=False)
@router.head("/v1/audio/models", include_in_schema=False)
async def models(request: Request) -> dict[str, object]:
    """Every model on offer, loaded or not."""
    state: ServerState = request.app.state.stentor
    entries = [describe(one, state) for one in state.supervisor.services.values()]
    return {"object": "list", "data": entries, "models": entries}


@router.get("/v1/models/{model:path}")
async def model(model: str, request: Request) -> dict[str, object]:
    """One model. 404 with the list where there is none of that name."""
    state: ServerState = request.app.state.stentor
    return describe(find(model, state), state)


@router.post("/v1/models/{model:path}/load")
async def load(model: str, request: Request) -> dict[str, object]:
    """Load a model now; answers when it can serve."""
    state: ServerState = request.app.state.stentor
    service = find(model, state)
    await service.ready()
    return describe(service, state)


@router.post("/v1/models/{model:path}/unload")
async def unload(model: str, request: Request) -> dict[str, object]:
    """End a model's process, which gives all of its memory back. 409 while a request is in it."""
    state: ServerState = request.app.state.stentor
    service = find(model, state)
    if service.in_use:
        raise InUse(f"{model} is speaking or listening; try again when its requests are done.", param="model")
    await service.unload()
    return describe(service, state)


@router.get("/v1/audio/voices")
@router.head("/v1/audio/voices", include_in_schema=False)
@router.get("/v1/voices", include_in_schema=False)
@router.head("/v1/voices", include_in_schema=False)
async def voices(request: Request, model: str | None = None) -> dict[str, object]:
    """The voices of one speech model (default: of the default one), which is loaded if it never was."""
    state: ServerState = request.app.state.stentor
    name = resolve(model, "tts", state.settings.offered, state.settings.speech_model)
    service = state.supervisor.services[name]
    hello = service.known or await service.ready()
    entries = [{"id": one.id, "name": one.name, "languages": one.languages, "model": name} for one in hello.voices]
    return {"object": "list", "voices": entries, "data": entries}


def find(model: str, state: ServerState) -> Service:
    """By id, or by OpenAI's name for the default. Raises UnknownModel that lists what there is."""
    services = state.supervisor.services
    for kind, names in OPENAI_MODELS.items():
        if model in names:
            return services[state.settings.default_model(kind)]
    if model not in services:
        raise UnknownModel(f"There is no model {model!r} here. Models: {', '.join(services)}.", param="model")
    return services[model]


def describe(service: Service, state: ServerState) -> dict[str, object]:
    """OpenAI's model object, and what this server knows beside it."""
    kind = service.spec.kind
    return {
        "id": service.model,
        "object": "model",
        "created": 0,
        "owned_by": "stentor",
        "kind": KIND_WORDS[kind],
        "default": service.model == state.settings.default_model(kind),
        "engine": service.spec.engine,
        "state": service.state,
        "languages": service.known.languages if service.known else None,
        "capabilities": service.known.capabilities if service.known else None,
    }
