"""Uploads that are hostile, endless, cut off or enormous: a clear answer, no file left, no slot taken, flat memory."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import httpx
import numpy as np
import psutil
import pytest

from tests.audio.files import wav
from tests.conftest import Server, serving, until
from tests.server.test_transcription import hear, silence

ROUTE = "/v1/audio/transcriptions"
EARS = {"models": {"ears": {"engine": "tests.fake_ears:FakeEars", "kind": "stt"}}, "transcription_model": "ears"}
HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
TAIL = b"\r\n--x--\r\n"
TYPE = {"content-type": "multipart/form-data; boundary=x"}


@pytest.fixture(scope="module")
def ears() -> Iterator[Server]:
    with serving(ready=False, preload="false", max_upload_mb=8, client_timeout=2, **EARS) as server:
        hear(server, b"warm up")
        yield server


def post(server: Server, body: bytes, headers: dict[str, str] = TYPE) -> httpx.Response:
    return httpx.post(server.base + ROUTE, content=body, headers=headers, timeout=30)


def field(name: str, value: bytes = b"") -> bytes:
    return f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n"


def opened(server: Server, *head: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    lines = [f"POST {ROUTE} HTTP/1.1", "Host: x", f"Content-Type: {TYPE['content-type']}", *head]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection


def answer_of(connection: socket.socket) -> bytes:
    answer = b""
    while chunk := connection.recv(65536):
        answer += chunk
    return answer


def test_a_file_field_without_a_file_name_is_a_file(ears: Server) -> None:
    assert post(ears, field("file", b"hello") + b"--x--\r\n").json()["text"] == "hello"


@pytest.mark.parametrize("at", [1, 7, 60, 75])
def test_the_bytes_of_a_file_are_kept_wherever_the_network_cuts_them(ears: Server, at: int) -> None:
    said = b"a \r\n--y b \r\n--x-c \r \n--\r\n"
    body = HEAD + said + TAIL
    with opened(ears, f"Content-Length: {len(body)}", "Connection: close") as connection:
        for start in range(0, len(body), at):
            connection.sendall(body[start : start + at])
        assert b'"text":"a --y b --x-c --"' in answer_of(connection)


@pytest.mark.parametrize(
    ("body", "headers", "why"),
    [
        (b"", TYPE, "cut short"),
        (b"--x--\r\n", TYPE, "no file"),
        (HEAD + b"data", TYPE, "cut short"),
        (HEAD + b"data\r\n--x\r\n", TYPE, "cut short"),
        (HEAD + b"data" + TAIL, {"content-type": "multipart/form-data; boundary=y"}, "cannot be read"),
        (HEAD + b"data" + TAIL, {"content-type": 'multipart/form-data; boundary=""'}, "boundary"),
        (HEAD + b"data" + TAIL, {"content-type": f"multipart/form-data; boundary={'x' * 5000}"}, "multipart"),
        (HEAD + b"data" + TAIL, {"content-type": "multipart/mixed; boundary=x"}, "multipart/form-data"),
        (HEAD + b"data" + TAIL, {"content-type": "application/x-www-form-urlencoded"}, "multipart/form-data"),
        (HEAD + b"one\r\n" + HEAD + b"two" + TAIL, TYPE, "more than one file"),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\ndata" + TAIL, TYPE, "no name"),
        (b"--x\r\nX: y\r\n\r\ndata" + TAIL, TYPE, "no name"),
        (b"--x\r\n\r\ndata" + TAIL, TYPE, "no name"),
        (b"--x\r\nbad header\r\n\r\ndata" + TAIL, TYPE, "cannot be read"),
        (b"--x\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\ndata" + TAIL, TYPE, ""),
        (b"--x\r\n" + b"X-Many: y\r\n" * 10_000 + b"\r\ndata" + TAIL, TYPE, ""),
        (field("prompt", b"\xff\xfe") + HEAD + b"data" + TAIL, TYPE, "UTF-8"),
        (field("a") * 500 + HEAD + b"data" + TAIL, TYPE, "more than 128"),
        (b"\r\n" * 100_000, TYPE, ""),
    ],
)
def test_a_form_that_is_none_is_a_400_that_says_why(
    ears: Server, body: bytes, headers: dict[str, str], why: str
) -> None:
    answer = post(ears, body, headers)
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]
    assert ears.spooled() == []


def test_a_field_that_is_as_large_as_a_file_is_a_413_that_names_it(ears: Server) -> None:
    answer = post(ears, field("prompt", b"a" * 300_000) + HEAD + b"data" + TAIL)
    assert (answer.status_code, answer.json()["error"]["param"]) == (413, "prompt")


def test_an_upload_over_the_limit_is_refused_before_it_is_sent(ears: Server) -> None:
    with opened(ears, f"Content-Length: {9 * 2**20}", "Expect: 100-continue") as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_an_endless_upload_ends_at_the_limit(ears: Server) -> None:
    def endless() -> Iterator[bytes]:
        yield HEAD
        while True:
            yield b"a" * 65536

    answer = httpx.post(ears.base + ROUTE, content=endless(), headers=TYPE, timeout=30)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert "max_upload_mb" in answer.json()["error"]["message"]
    assert ears.spooled() == []


def test_an_upload_that_stops_arriving_is_given_up(ears: Server) -> None:
    with opened(ears, "Content-Length: 1000") as connection:
        connection.sendall(HEAD + b"and then nothing")
        answer = b""
        while not answer.endswith(b"}}"):
            piece = connection.recv(65536)
            assert piece, answer
            answer += piece
        assert b"client_timeout" in answer
    until(lambda: ears.spooled() == [], "the file is gone", 5)


@pytest.mark.parametrize("sent", [0, 10, 100, 3_000_000])
def test_a_client_that_leaves_in_the_middle_leaves_no_file_and_no_slot(ears: Server, sent: int) -> None:
    connection = opened(ears, "Content-Length: 7000000")
    connection.sendall((HEAD + b"a" * 3_000_000)[:sent])
    if sent > len(HEAD):
        until(lambda: ears.spooled(), "the upload is being written", 5)
    connection.close()
    until(lambda: ears.spooled() == [], "the file is gone", 5)
    assert ears.health("ears")["running"] + ears.health("ears")["waiting"] == 0
    assert hear(ears, b"next").json()["text"] == "next"


def test_a_client_that_leaves_before_its_answer_stops_the_work() -> None:
    slow = {**EARS["models"]["ears"], "slots": 1, "options": {"window_s": 0.05}}  # type: ignore[index]
    with serving(ready=False, preload="false", models={"ears": slow}, transcription_model="ears") as server:
        hear(server, b"warm up")
        body = HEAD + b"word " * 2000 + TAIL
        connection = opened(server, f"Content-Length: {len(body)}")
        connection.sendall(body)
        until(lambda: server.health("ears")["running"] == 1, "it runs")
        connection.close()
        until(lambda: server.health("ears")["running"] == 0, "the slot is free", 5)
        until(lambda: server.spooled() == [], "the file is gone", 5)


def test_audio_longer_than_the_limit_is_a_413_before_any_of_it_is_understood() -> None:
    with serving(max_audio_seconds=35) as server:
        sentence = server.speak("The meeting begins at nine. ", response_format="pcm", seed=3).content
        said = np.resize(np.frombuffer(sentence, "<i2"), 24_000 * 40).tobytes()
        for fields in ({}, {"stream": "true"}):
            answer = hear(server, wav(said, sample_rate=24_000), **fields)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
        assert hear(server, silence(35)).status_code == 200


def test_the_memory_of_the_host_does_not_grow_with_the_upload() -> None:
    size, chunk = 200 * 2**20, b" " * 2**20
    with serving(ready=False, preload="false", **EARS) as server:
        hear(server, b"warm up")
        process, peaks, over = psutil.Process(server.process.pid), [], threading.Event()

        def watch() -> None:
            while not over.wait(0.02):
                peaks.append(process.memory_info().rss)

        before = process.memory_info().rss
        watcher = threading.Thread(target=watch)
        watcher.start()
        length = str(len(HEAD) + size + len(TAIL))
        body = iter([HEAD, *[chunk] * 200, TAIL])
        answer = httpx.post(server.base + ROUTE, content=body, headers={**TYPE, "content-length": length}, timeout=120)
        over.set()
        watcher.join()
        assert answer.status_code == 200
        assert max(peaks) - before < 30 * 2**20
