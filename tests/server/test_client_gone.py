"""A client that leaves: work stops within a block and the slot is free. With raw sockets, as a lost phone does it."""

from __future__ import annotations

import json
import socket
import time

import psutil
import pytest

from tests.conftest import Server, fake_settings, serving, until

FRAME_S = 0.05
LONG = "word " * 2000


def _open(server: Server, text: str, format: str = "pcm", version: str = "1.1") -> socket.socket:
    body = json.dumps({"input": text, "response_format": format}).encode()
    connection = socket.create_connection(("127.0.0.1", server.port))
    head = f"POST /v1/audio/speech HTTP/{version}\r\nHost: x\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def _units(server: Server) -> int:
    return int(server.health("fake")["progress"]["unit"])


@pytest.fixture(scope="module")
def slow() -> object:
    with serving(ready=False, **fake_settings(slots=1, frame_s=FRAME_S)) as server:
        server.speak("warm up")
        yield server


@pytest.mark.parametrize("read_bytes", [0, 1, 20_000])
def test_work_stops_within_a_block_and_the_slot_is_free(slow: Server, read_bytes: int) -> None:
    connection = _open(slow, LONG)
    until(lambda: slow.health("fake")["running"] == 1, "the request runs")
    if read_bytes:
        connection.recv(read_bytes)
    connection.close()
    until(lambda: slow.health("fake")["running"] == 0, "the slot is free", 5)
    until(lambda: slow.health("fake")["progress"]["phase"] == "idle", "the sidecar is idle", 5)
    units = _units(slow)
    time.sleep(5 * FRAME_S)
    assert _units(slow) == units


def test_one_that_leaves_while_it_waits_is_never_started(slow: Server) -> None:
    first = _open(slow, LONG)
    until(lambda: slow.health("fake")["running"] == 1, "the first runs")
    second = _open(slow, LONG)
    until(lambda: slow.health("fake")["waiting"] == 1, "the second waits")
    second.close()
    until(lambda: slow.health("fake")["waiting"] == 0, "the line is empty", 5)
    first.close()
    until(lambda: slow.health("fake")["running"] == 0, "the slot is free", 5)
    assert slow.speak("next").status_code == 200


def test_a_reset_in_the_middle_frees_the_slot(slow: Server) -> None:
    connection = _open(slow, LONG)
    connection.recv(10_000)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.close()
    until(lambda: slow.health("fake")["running"] == 0, "the slot is free", 5)


def test_a_client_that_takes_nothing_is_cut_off() -> None:
    with serving(ready=False, client_timeout=1.0, **fake_settings(slots=1)) as server:
        server.speak("warm up")
        connection = _open(server, "word " * 20_000)  # 96 MB of PCM: more than any socket buffer holds
        until(lambda: server.health("fake")["running"] == 0, "the slot is free", 30)
        assert server.speak("next").status_code == 200
        host = psutil.Process(server.process.pid)
        ours = connection.getsockname()[1]
        until(lambda: all(one.raddr[1:] != (ours,) for one in host.net_connections()), "its connection is gone", 20)
        connection.close()


def test_a_stream_that_breaks_off_does_not_look_whole_to_a_client_of_http_1_0(fake: Server) -> None:
    """nginx asks its upstreams so by default; HTTP/1.0 has no chunks that could be missing."""
    for text, status in (("one two three", b" 200 "), ("one two three four five six RAISE", b" 500 ")):
        connection = _open(fake, text, version="1.0")
        answer = b""
        while data := connection.recv(65536):
            answer += data
        head, _, body = answer.partition(b"\r\n\r\n")
        assert status in head.splitlines()[0]
        assert f"content-length: {len(body)}".encode() in head.lower()
        connection.close()


def test_many_clients_that_leave_at_random_points_leave_nothing_behind(slow: Server) -> None:
    process = psutil.Process(slow.process.pid)
    before = process.num_fds()
    for round_number in range(30):
        connection = _open(slow, LONG, "mp3" if round_number % 2 else "pcm")
        time.sleep(0.01 * (round_number % 10))
        connection.close()
    until(lambda: slow.health("fake")["running"] + slow.health("fake")["waiting"] == 0, "all are gone", 20)
    until(lambda: process.num_fds() <= before + 4, "the sockets are closed", 10)
    assert slow.speak("next").status_code == 200
