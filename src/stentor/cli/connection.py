"""The way to a running server: where it is, whether it answers, its errors as ours.

Knows no speech and no text. A command that can also work alone asks `running_server` or `api`; one that cannot asks
`required_server`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator

import httpx

from ..errors import NoServer, StentorError, Unavailable, from_code
from ..settings import Settings

PROBE_S = 3.0  # a port nobody listens on refuses at once; only a lost host takes this long
CONNECT_S = 10.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # an address to listen on is none to call


def address(settings: Settings) -> str:
    """The server's URL: the one that is named, else where `stentor serve` would listen."""
    if settings.server:
        return settings.server.rstrip("/").removesuffix("/v1")  # people paste what their OpenAI client has
    host = EVERYWHERE.get(settings.host, settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def running_server(settings: Settings) -> str | None:
    """The address of a live Stentor. None where none answers at host and port; NoServer where a URL was named."""
    base = address(settings)
    if _is_alive(base):
        return base
    if settings.server:
        raise NoServer(f"no Stentor answers at {base} (setting server).")
    return None


def required_server(settings: Settings) -> str:
    """The address of a live Stentor. Raises NoServer."""
    base = running_server(settings)
    if base is None:
        raise NoServer(f"no server runs at {address(settings)}.")
    return base


def _is_alive(base: str) -> bool:
    try:
        answer = httpx.get(f"{base}/live", timeout=PROBE_S, trust_env=False)
        return answer.status_code == 200 and answer.json().get("status") == "alive"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, AttributeError):
        return False  # nobody, or somebody who is not Stentor


def client(base: str, settings: Settings) -> httpx.AsyncClient:
    """A client that may wait as long as the work takes; how long that is, the server decides."""
    timeout = httpx.Timeout(None, connect=CONNECT_S)
    return httpx.AsyncClient(base_url=base, headers=_key(settings), timeout=timeout, trust_env=False)


@contextlib.asynccontextmanager
async def api(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The running server's routes, else the same routes inside this process, loading only what a request needs."""
    base = running_server(settings)
    if base is not None:
        with reached(base):
            async with client(base, settings) as remote:
                yield remote
        return
    from ..platform import RunFolder
    from ..server.app import create_app
    from ..server.state import running

    with RunFolder() as folder:
        app = create_app(settings, folder)
        async with running(settings, folder, preload=False) as app.state.stentor:
            inside = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=inside, base_url="http://localhost", headers=_key(settings)) as own:
                yield own


@contextlib.contextmanager
def reached(base: str) -> Iterator[None]:
    """What goes wrong on the way, as an error that says so."""
    try:
        yield
    except httpx.RemoteProtocolError as error:
        raise Unavailable(f"the server at {base} broke off its answer; its log says why.") from error
    except httpx.HTTPError as error:
        raise Unavailable(
            f"the connection to the server at {base} was lost ({error or type(error).__name__})."
        ) from error


async def require_ok(response: httpx.Response) -> None:
    """Raises the server's error as the class it was there."""
    if response.status_code == 200:
        return
    body = await response.aread()
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        raise StentorError(f"the server answered {response.status_code}: {body[:200]!r}") from None
    raise from_code(str(error.get("code")), str(error.get("message")), param=error.get("param"))


def _key(settings: Settings) -> dict[str, str]:
    keys = settings.api_keys
    return {"authorization": f"Bearer {keys[0].get_secret_value()}"} if keys else {}
