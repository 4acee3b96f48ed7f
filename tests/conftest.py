"""Real servers for the tests: the program itself, on a free loopback port, ended and counted afterwards."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

ROOT = Path(__file__).parent.parent
FAKE = {"engine": "tests.fake_engine:FakeEngine", "kind": "tts"}
START_S = 60
DATA = tempfile.mkdtemp(prefix="tests-of-stentor-")  # never the incidents of the one who runs the tests
atexit.register(shutil.rmtree, DATA, ignore_errors=True)


@dataclass
class Server:
    """A running `stentor serve` and its address."""

    process: subprocess.Popen[str]
    base: str

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    def sidecars(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def spooled(self) -> list[Path]:
        """Uploads and references that lie in the server's temporary folder now."""
        files = Path(tempfile.gettempdir()).glob(f"stentor-{self.process.pid}-*/*")
        return [file for file in files if file.name != "lock" and file.suffix != ".status"]

    def get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self.base + path, timeout=30, **options)

    def speak(self, text: str = "one two", **fields: Any) -> httpx.Response:
        headers = fields.pop("headers", {})
        # a fixed seed unless the test says None: what the ears write of a voice varies with its noise
        given = {"input": text, "response_format": "pcm", "seed": 1, **fields}
        body = {name: value for name, value in given.items() if value is not None or name != "seed"}
        return httpx.post(f"{self.base}/v1/audio/speech", json=body, headers=headers, timeout=60)

    def health(self, model: str) -> dict[str, Any]:
        return self.get("/health").json()["sidecars"][model]


def until(condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """Wait for a condition; fail with its name."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"never happened within {seconds} s: {what}")


def environment(**settings: Any) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STENTOR_")}
    given = {
        f"STENTOR_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.items()
    }
    return {**kept, "STENTOR_DATA_DIR": DATA, **given, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}


@contextlib.contextmanager
def serving(*, ready: bool = True, **settings: Any) -> Iterator[Server]:
    """A server with these settings; after the test it ends on SIGTERM and leaves no process behind."""
    argv = [sys.executable, "-m", "stentor", "serve", "--port", "0"]
    process = subprocess.Popen(argv, env=environment(**settings), stdout=subprocess.PIPE, text=True, cwd="/")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+:\d+", line)
        assert found, f"no address in {line!r}"
        server = Server(process, found.group())
        until(lambda: _answers(server, "/ready" if ready else "/live"), "the server is ready", START_S)
        yield server
        children = server.sidecars() if process.poll() is None else []
        process.terminate()
        process.wait(20)
        until(lambda: not any(map(_alive, children)), "all sidecars are gone", 10)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def fake_settings(**options: Any) -> dict[str, Any]:
    """Settings in which the fake engine speaks by default and nothing else is loaded at start."""
    spec = {**FAKE, "slots": options.pop("slots", 2), "options": options}
    return {"models": {"fake": spec}, "speech_model": "fake", "preload": "false"}


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _answers(server: Server, path: str) -> bool:
    assert server.process.poll() is None, f"the server ended with {server.process.returncode}"
    with contextlib.suppress(httpx.TransportError):
        return server.get(path).status_code == 200
    return False


@pytest.fixture(scope="session")
def bundled() -> Iterator[Server]:
    """One server with the bundled voice and ears, shared by the tests that only ask it."""
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def fake() -> Iterator[Server]:
    """One server whose default voice is the fake engine, a fast one."""
    with serving(ready=False, **fake_settings()) as server:
        yield server


@pytest.fixture(scope="session")
def drilled() -> Iterator[Server]:
    """The bundled voice and ears on a server that obeys faults, with a short deadline."""
    with serving(drills="true", frame_timeout=1.0, attempts=6) as server:
        yield server
