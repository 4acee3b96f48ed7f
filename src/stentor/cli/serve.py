"""`stentor serve`: the host, until it is told to end."""

from __future__ import annotations

import ipaddress
import logging
import socket

import typer
import uvicorn

from ..errors import SettingsError
from ..settings import Settings
from .options import with_settings

SHUTDOWN_S = 5  # open responses may go on for this long after the first Ctrl-C


def register(app: typer.Typer) -> None:
    app.command("serve")(with_settings(serve))


def serve(*, settings: Settings) -> None:
    """Start the server. Ctrl-C or SIGTERM ends it and every process it started."""
    require_safe_bind(settings)
    listener = bind(settings)
    host, port = listener.getsockname()[:2]
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    from ..server.app import create_app

    config = uvicorn.Config(
        create_app(settings),
        log_level="warning" if settings.log_level == "info" else settings.log_level,
        timeout_graceful_shutdown=SHUTDOWN_S,
        server_header=False,
        proxy_headers=False,
    )
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"Stentor listens on http://{shown}:{port}  (docs: http://{shown}:{port}/docs)")
    uvicorn.Server(config).run(sockets=[listener])


def require_safe_bind(settings: Settings) -> None:
    """Raises SettingsError for an open address without a key: a LAN is not a trusted caller."""
    if settings.api_keys or settings.insecure or _is_loopback(settings.host):
        return
    raise SettingsError(
        f"refusing to listen on {settings.host} without an API key: set --api-keys KEY (or STENTOR_API_KEYS), "
        "or --insecure if everyone on that network may use this server"
    )


def bind(settings: Settings) -> socket.socket:
    """The listening socket, so that port 0 is known before the start. Raises SettingsError that says what to do."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's algorithm on and every second small chunk waits 40 ms for an ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}. "
            "Is another server running there? Choose another with --port."
        ) from error
    listener.listen(1024)
    return listener


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
