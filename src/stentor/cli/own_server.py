"""A server of the command's own, as a process like any other, for what must not be tried on the one in use."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psutil

from ..errors import Unavailable
from ..settings import PREFIX, Settings

START_S = 300.0
END_S = 20.0
LOOK_S = 0.1


class OwnServer:
    """A running server: its address and its processes."""

    def __init__(self, process: subprocess.Popen[str], base: str) -> None:
        self.base = base
        self._process = process

    def children(self) -> list[psutil.Process]:
        """Its sidecars."""
        return psutil.Process(self._process.pid).children(recursive=True)

    def memory(self) -> int:
        """Bytes resident in the host alone."""
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.base}{path}", timeout=30, trust_env=False)

    def wait_until_healthy(self, seconds: float = START_S) -> None:
        """Raises Unavailable where it does not become so, or ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if self.get("/ready").status_code == 200 and self._is_well(self.get("/health")):
                    return
            time.sleep(LOOK_S)
        raise Unavailable(f"the server at {self.base} did not become ready; see what it wrote above.")

    def _is_well(self, health: httpx.Response) -> bool:
        """Healthy, and each standby that is wanted is warm."""
        standbys = [one["standby"] for one in health.json()["sidecars"].values()]
        return health.status_code == 200 and all(one in (None, "ready", "busy") for one in standbys)


@contextlib.contextmanager
def own_server(settings: Settings, **changed: Any) -> Iterator[OwnServer]:
    """A server with these settings, some of them changed, on a free port of this machine alone; ended afterwards."""
    argv = [sys.executable, "-m", "stentor", "serve", "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(argv, env=_environment(settings, changed), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+:\d+", line)
        if not found:
            raise Unavailable(f"the server did not start; it said {line!r}. Try: stentor serve")
        server = OwnServer(process, found.group())
        server.wait_until_healthy()
        yield server
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _environment(settings: Settings, changed: dict[str, Any]) -> dict[str, str]:
    """The effective settings as variables; keys and addresses of others do not belong into a trial."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    values = settings.model_dump(
        mode="json", exclude={"host", "port", "server", "api_keys", "notify_url", "insecure"}, exclude_defaults=True
    )
    given = {f"{PREFIX}{name.upper()}": _text(value) for name, value in {**values, **changed}.items()}
    return {**kept, **given}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
