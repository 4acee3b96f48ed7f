"""GET /metrics: counters in Prometheus' text format, in a registry of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response

from ..host.service import Service
from ..host.supervisor import Supervisor

router = APIRouter()


SIDECAR_GAUGES: Mapping[str, tuple[str, Callable[[Service], float]]] = {
    "up": ("1 where the sidecar can serve.", lambda one: float(one.hello is not None)),
    "running": ("Requests in a slot.", lambda one: one.queue.running),
    "waiting": ("Requests in the queue.", lambda one: one.queue.waiting),
    "restarts": ("Restarts since the server started.", lambda one: one.restarts),
    "noise_lines": ("Lines on the sidecar's stdout that were no message.", lambda one: one.noise),
}


class Metrics:
    """Names use DESIGN.md's vocabulary; all begin with stentor_."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "stentor_requests", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self.first_byte = Histogram(
            "stentor_first_byte_seconds",
            "From an accepted request to its first encoded byte.",
            ["model"],
            registry=self.registry,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self.audio_seconds = Counter("stentor_audio_seconds", "Audio spoken.", registry=self.registry)
        self.heard_seconds = Counter("stentor_heard_seconds", "Audio transcribed.", registry=self.registry)
        self.resumed = Counter(
            "stentor_resumed",
            "Times that an utterance went on in another process; exact: with the bytes of an undisturbed run.",
            ["exact"],
            registry=self.registry,
        )
        for name, (help_text, read) in SIDECAR_GAUGES.items():
            gauge = Gauge(f"stentor_sidecar_{name}", help_text, ["model"], registry=self.registry)
            for model, service in supervisor.services.items():
                gauge.labels(model).set_function(functools.partial(read, service))


@router.get("/metrics", include_in_schema=False)
@router.head("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    state = request.app.state.stentor
    return Response(generate_latest(state.metrics.registry), media_type=CONTENT_TYPE_LATEST)
