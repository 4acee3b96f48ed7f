"""/live, /ready and /health: the host runs; a request would be served now, and by what; everything else.

Health follows progress, not processes: it is read from what the supervisor and its watchdog see (DESIGN.md 7).
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from .. import __version__
from ..host.supervisor import Sidecar, State
from ..settings import Settings

router = APIRouter()

HEALTHY = (State.READY, State.BUSY, State.UNLOADED, State.STARTING)


@router.get("/live")
async def live() -> dict[str, str]:
    """The host runs. Restart policies look here."""
    return {"status": "alive"}


@router.get("/ready")
async def ready(request: Request) -> JSONResponse:
    """A request for the default models would be served now."""
    state = request.app.state.stentor
    models = {kind: state.settings.default_model(kind) for kind in ("tts", "stt")}
    serves = {model: state.supervisor.sidecars[model].hello is not None for model in models.values()}
    body = {"status": "ready" if all(serves.values()) else "loading", "models": serves}
    return JSONResponse(body, 200 if all(serves.values()) else 503)


@router.get("/health")
async def health(request: Request) -> JSONResponse:
    """Details by sidecar; 503 while one that is in use cannot make progress."""
    state = request.app.state.stentor
    sidecars = state.supervisor.sidecars.values()
    well = all(one.state in HEALTHY for one in sidecars)
    body = {
        "status": "ok" if well else "degraded",
        "version": __version__,
        "sidecars": {one.model: describe(one, state.settings) for one in sidecars},
    }
    return JSONResponse(body, 200 if well else 503)


def describe(sidecar: Sidecar, settings: Settings) -> dict[str, object]:
    """One sidecar for a person or a monitor to read."""
    hello = sidecar.hello
    status = sidecar.status
    return {
        "state": sidecar.state,
        "kind": sidecar.spec.the_kind,
        "default": sidecar.model == settings.default_model(sidecar.spec.the_kind),
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
