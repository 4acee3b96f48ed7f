"""/live, /ready and /health: the host runs; a request would be served now, and by what; everything else.

Health follows progress, not processes: it is read from what the supervisor and its watchdog see (DESIGN.md 7).
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from .. import __version__
from ..host.sidecar import Sidecar, State
from .state import ServerState

router = APIRouter()

SERVING = (State.READY, State.BUSY, State.UNLOADED)
HEALTHY = (*SERVING, State.STARTING)


@router.get("/live")
async def live() -> dict[str, str]:
    """The host runs. Restart policies look here."""
    return {"status": "alive"}


@router.get("/ready")
async def ready(request: Request) -> JSONResponse:
    """A request for the default models would be served now; a model that was unloaded would be loaded for it."""
    state: ServerState = request.app.state.stentor
    defaults = (state.settings.speech_model, state.settings.transcription_model)
    states = {model: state.supervisor.sidecars[model].state for model in defaults}
    would_serve = all(one in SERVING for one in states.values())
    return JSONResponse(
        {"status": "ready" if would_serve else "loading", "models": states}, 200 if would_serve else 503
    )


@router.get("/health")
async def health(request: Request) -> JSONResponse:
    """Details by sidecar; 503 while one that is in use cannot make progress."""
    state: ServerState = request.app.state.stentor
    sidecars = state.supervisor.sidecars.values()
    defaults = (state.settings.speech_model, state.settings.transcription_model)
    well = all(one.state in HEALTHY for one in sidecars if one.in_use or one.model in defaults)
    body = {
        "status": "ok" if well else "degraded",
        "version": __version__,
        "sidecars": {one.model: describe(one, state) for one in sidecars},
    }
    return JSONResponse(body, 200 if well else 503)


def describe(sidecar: Sidecar, state: ServerState) -> dict[str, object]:
    """One sidecar for a person or a monitor to read."""
    hello = sidecar.hello
    status = sidecar.status
    return {
        "state": sidecar.state,
        "kind": sidecar.spec.kind,
        "default": sidecar.model == state.settings.default_model(sidecar.spec.kind),
        "pid": sidecar.pid,
        "running": sidecar.queue.running,
        "waiting": sidecar.queue.waiting,
        "restarts": sidecar.restarts,
        "progress": {"counter": status.counter, "phase": status.phase, "unit": status.unit},
        "loading": {"stage": sidecar.loading.stage, "fraction": sidecar.loading.fraction} if sidecar.loading else None,
        "engine": hello.engine if hello else None,
        "device": hello.device.name if hello else None,
        "numerics": hello.numerics if hello else None,
        "last_failure": sidecar.last_failure.message if sidecar.last_failure else None,
    }
