"""/live, /ready and /health: the host runs; a request would be served now, and by what; everything else.

Health follows progress, not processes: it is read from what the supervisor and its watchdog see (DESIGN.md 7).
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from .. import __version__
from ..host.service import Service
from ..host.sidecar import State
from .state import ServerState

router = APIRouter()

SERVING = (State.READY, State.BUSY, State.DEGRADED, State.UNLOADED)
HEALTHY = (*SERVING, State.STARTING)


@router.get("/live")
@router.head("/live", include_in_schema=False)
async def live() -> dict[str, str]:
    """The host runs. Restart policies look here."""
    return {"status": "alive"}


@router.get("/ready")
@router.head("/ready", include_in_schema=False)
async def ready(request: Request) -> JSONResponse:
    """A request for the default models would be served now; a model that was unloaded would be loaded for it."""
    state: ServerState = request.app.state.stentor
    defaults = (state.settings.speech_model, state.settings.transcription_model)
    states = {model: state.supervisor.services[model].state for model in defaults}
    would_serve = all(one in SERVING for one in states.values())
    return JSONResponse(
        {"status": "ready" if would_serve else "loading", "models": states}, 200 if would_serve else 503
    )


@router.get("/health")
@router.head("/health", include_in_schema=False)
async def health(request: Request) -> JSONResponse:
    """Details by model; 503 while one that is in use makes no progress or is being started again."""
    state: ServerState = request.app.state.stentor
    services = state.supervisor.services.values()
    defaults = (state.settings.speech_model, state.settings.transcription_model)
    well = all(one.state in HEALTHY for one in services if one.in_use or one.model in defaults)
    below = [one.model for one in services if one.ladder.degraded]
    body = {
        "status": "failing" if not well else "degraded" if below else "ok",
        "version": __version__,
        "sidecars": {one.model: describe(one, state) for one in services},
    }
    return JSONResponse(body, 200 if well else 503)


def describe(service: Service, state: ServerState) -> dict[str, object]:
    """One sidecar for a person or a monitor to read."""
    hello = service.hello
    status = service.status
    return {
        "state": service.state,
        "kind": service.spec.kind,
        "default": service.model == state.settings.default_model(service.spec.kind),
        "pid": service.pid,
        "running": service.queue.running,
        "waiting": service.queue.waiting,
        "restarts": service.restarts,
        "progress": {"counter": status.counter, "phase": status.phase, "unit": status.unit},
        "loading": {"stage": service.loading.stage, "fraction": service.loading.fraction} if service.loading else None,
        "engine": hello.engine if hello else None,
        "device": hello.device.name if hello else None,
        "numerics": hello.numerics if hello else None,
        "rung": service.primary.rung.profile.name,
        "standby": service.standby.state if service.standby else None,
        "incident": service.incident.sentence() if service.incident else None,
        "last_failure": service.last_failure.message if service.last_failure else None,
    }
