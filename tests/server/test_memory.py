"""Models come and go: keep_alive, load and unload by route; and a slow listener does not fill the host's memory."""

from __future__ import annotations

import json
import socket
import time

import httpx
import psutil

from tests.conftest import fake_settings, serving, until
from tests.server.test_speech import spoken


def _models(**extra: object) -> dict[str, object]:
    settings = fake_settings()
    settings["models"]["fake"] |= extra
    return settings


def test_an_idle_model_is_unloaded_after_keep_alive_and_loaded_by_the_next_request() -> None:
    with serving(ready=False, **_models(keep_alive=0.5)) as server:
        server.speak("one")
        process = psutil.Process(server.health("fake")["pid"])
        until(lambda: server.health("fake")["state"] == "unloaded", "the idle model is unloaded")
        until(lambda: not process.is_running(), "its process is gone")
        assert server.get("/ready").status_code == 200
        assert server.speak("one two").content == spoken("one two", 2)


def test_keep_alive_0_unloads_at_once_but_never_under_a_request() -> None:
    with serving(ready=False, **_models(keep_alive=0, options={"frame_s": 0.02})) as server:
        assert server.speak("word " * 40).content == spoken("word " * 39 + "word", 40)
        until(lambda: server.health("fake")["state"] == "unloaded", "the model is unloaded")


def test_requests_that_race_an_unload_are_all_served() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with serving(ready=False, **_models(keep_alive=0)) as server, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: (time.sleep(number % 7 / 20), server.speak("one"))[1], range(24)))
    assert {answer.status_code for answer in answers} == {200}


def test_a_model_is_loaded_and_unloaded_by_route_and_its_memory_is_given_back() -> None:
    with serving(ready=False, preload="false") as server:
        assert server.sidecars() == []
        loaded = httpx.post(f"{server.base}/v1/models/whisper-tiny.en/load", timeout=60).json()
        assert loaded["state"] == "ready"
        rss = sum(process.memory_info().rss for process in server.sidecars())
        assert rss > 100 * 2**20
        assert httpx.post(f"{server.base}/v1/models/whisper-tiny.en/unload", timeout=60).json()["state"] == "unloaded"
        until(lambda: server.sidecars() == [], "its process is gone")
        assert httpx.post(f"{server.base}/v1/models/nobody/load").status_code == 404


def test_a_busy_model_is_not_unloaded_under_its_request() -> None:
    with serving(ready=False, **_models(options={"frame_s": 0.05})) as server:
        server.speak("warm")
        with httpx.stream(
            "POST", f"{server.base}/v1/audio/speech", json={"input": "word " * 100, "response_format": "pcm"}
        ) as response:
            assert response.status_code == 200
            refused = httpx.post(f"{server.base}/v1/models/fake/unload")
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "in_use")


def test_load_and_unload_ask_for_the_key() -> None:
    with serving(ready=False, api_keys="key", **fake_settings()) as server:
        assert httpx.post(f"{server.base}/v1/models/fake/load").status_code == 401
        assert httpx.post(f"{server.base}/v1/models/fake/unload").status_code == 401


def test_a_slow_listener_holds_neither_the_slot_nor_the_hosts_memory() -> None:
    """40 minutes of audio (230 MB of samples) for a client that takes its first bytes and then waits."""
    with serving(ready=False, client_timeout=60, **fake_settings(slots=1)) as server:
        server.speak("warm up")
        host = psutil.Process(server.process.pid)
        before = host.memory_info().rss
        body = json.dumps({"input": "a " * 24_000, "response_format": "wav"}).encode()
        connection = socket.create_connection(("127.0.0.1", server.port))
        head = "POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(100)
        until(lambda: server.health("fake")["progress"]["phase"] == "idle", "the voice is done with it", 60)
        assert host.memory_info().rss - before < 80 * 2**20
        connection.close()
        until(lambda: server.health("fake")["running"] == 0, "the slot is free", 10)
        assert server.spooled() == []
