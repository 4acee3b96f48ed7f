"""`stentor serve`: the host, until it is told to end."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import signal
import socket

import typer

from .. import platform
from ..errors import SettingsError
from ..platform import RunFolder
from ..settings import Settings
from .options import with_every_setting

SHUTDOWN_S = 5  # open responses may go on for this long after the first Ctrl-C


def register(app: typer.Typer) -> None:
    app.command("serve")(with_every_setting(serve))


def serve(*, settings: Settings) -> None:
    """Start the server.

    Ctrl-C or SIGTERM ends it and every process it started.
    """
    require_safe_bind(settings)
    with RunFolder() as folder, bind(settings) as listener:
        run(settings, folder, listener)


def run(settings: Settings, folder: RunFolder, listener: socket.socket) -> None:
    """Serve on a listening socket until a signal comes."""
    host, port = listener.getsockname()[:2]
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    import uvicorn

    from ..server.app import create_app

    config = uvicorn.Config(
        create_app(settings, folder),
        log_level="warning" if settings.log_level == "info" else settings.log_level,
        timeout_graceful_shutdown=SHUTDOWN_S,
        server_header=False,
        proxy_headers=False,
    )
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"Stentor listens on http://{shown}:{port}  (docs: http://{shown}:{port}/docs)")
    # uvicorn raises the signal that ended it once more; as an exception, it lets the run folder be removed
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
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
    platform.cut_off_after(listener, settings.client_timeout)
    listener.listen(1024)
    return listener


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
