"""Bodies that attack: too large, without end, too slow, cut off. None may fill the memory or hold the server."""

from __future__ import annotations

import select
import socket
import time

import httpx
import psutil
import pytest

from stentor.server.app import MOST_BODY
from tests.conftest import Server, fake_settings, serving

# A form that goes to another route than the uploads is as unbounded as any other body, if nobody looks at it.
any_kind = pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x", "text/plain"])


def _raw(server: Server, head: str, kind: str = "application/json") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    lines = f"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{head}\r\n\r\n"
    connection.sendall(lines.encode())
    return connection


def test_a_huge_json_body_is_413_and_not_kept_in_memory(fake: Server) -> None:
    fake.speak("warm up")
    host = psutil.Process(fake.process.pid)
    before = host.memory_info().rss
    body = b'{"input": "' + b"x" * (3 * MOST_BODY) + b'"}'
    answer = httpx.post(f"{fake.base}/v1/audio/speech", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert host.memory_info().rss - before < 3 * MOST_BODY


def _send_until_answered(connection: socket.socket, chunk: bytes, most: int) -> bytes:
    """What the server says while the client is still sending."""
    for _ in range(most):
        try:
            connection.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            return b""
        if select.select([connection], [], [], 0)[0]:
            return connection.recv(4096)
    raise AssertionError(f"the server took {most * len(chunk)} bytes")


@any_kind
def test_an_endless_body_is_ended_by_the_server(fake: Server, kind: str) -> None:
    connection = _raw(fake, "Transfer-Encoding: chunked", kind)
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    assert b" 413 " in _send_until_answered(connection, chunk, 2 * MOST_BODY // len(chunk))
    connection.close()
    assert fake.speak("next").status_code == 200


@any_kind
def test_a_body_that_never_comes_is_given_up(kind: str) -> None:
    with serving(ready=False, client_timeout=1.0, **fake_settings()) as server:
        connection = _raw(server, "Content-Length: 1000", kind)
        connection.sendall(b'{"input": "')
        began = time.monotonic()
        assert b" 400 " in connection.recv(4096)
        assert time.monotonic() - began < 20
        connection.close()


def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing(fake: Server) -> None:
    host = psutil.Process(fake.process.pid)
    fake.speak("warm up")
    before = host.num_fds()
    for _ in range(20):
        connection = _raw(fake, "Content-Length: 1000")
        connection.sendall(b'{"input": "')
        connection.close()
    assert fake.speak("next").status_code == 200
    assert host.num_fds() <= before + 4


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"3", b'"text"', b"{", b"\xff\xfe", b'{"input": "\\ud800"}', b"{" * 5000, b"[" * 100_000],
)
def test_a_body_that_is_no_request_is_a_400(fake: Server, body: bytes) -> None:
    answer = httpx.post(f"{fake.base}/v1/audio/speech", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
