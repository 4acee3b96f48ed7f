"""The POST as a real server receives it, and everything that can go wrong with one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from email.header import decode_header, make_header
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from stentor.host import notify as notify_module
from stentor.host.incidents import Incident
from stentor.host.notify import headers, notify

STATUSES = {"/refused": 403, "/moved": 308, "/broken": 500}


class Listener(ThreadingHTTPServer):
    """Keeps what is posted to it; the path says how it answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts: list[tuple[str, dict[str, str], bytes]] = []

    def url(self, path: str = "/secret-topic", user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, dict(self.headers), body))
        if self.path == "/slow":
            self._drip()
            return
        self.send_response(STATUSES.get(self.path, 200))
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def _drip(self) -> None:
        """A byte of a header now and then, so that no timeout of one read ever passes."""
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.1)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def listener() -> Iterator[Listener]:
    notify_module._told.clear()
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _incident(**fields: Any) -> Incident:
    given = {"model": "hibari", "rung": "cpu", "device": "cpu", "kind": "stalled", "speaks_now": "hibari on cpu"}
    return Incident(**{**given, **fields})


def _tell(url: str, times: int = 1, **fields: Any) -> None:
    for _ in range(times):
        asyncio.run(notify(url, _incident(**fields)))


def test_the_body_is_the_sentence_and_the_headers_are_those_of_ntfy(listener: Listener) -> None:
    incident = _incident(how="你好 and 😀", recovered=True)
    asyncio.run(notify(listener.url(), incident))
    ((path, sent, body),) = listener.posts
    assert path == "/secret-topic"
    assert body.decode("utf-8") == incident.sentence()
    assert sent["Content-Type"] == "text/plain; charset=utf-8"
    assert sent["Title"] == "Stentor: hibari stalled"
    assert sent["Priority"] == "default"
    assert sent["Tags"] == "white_check_mark,stentor,stalled"


@pytest.mark.parametrize(
    ("fields", "priority", "sign"),
    [
        ({"recovered": True}, "default", "white_check_mark"),
        ({"recovered": False}, "high", "warning"),
        ({"speaks_now": None}, "max", "rotating_light"),
        ({"kind": "recycled", "recovered": True}, "low", "white_check_mark"),
    ],
)
def test_the_worse_it_is_the_louder(fields: dict[str, Any], priority: str, sign: str) -> None:
    sent = headers(_incident(**fields))
    assert sent["Priority"] == priority
    assert sent["Tags"].split(",")[0] == sign


def test_a_name_that_is_not_ascii_is_a_title_that_ntfy_reads(listener: Listener) -> None:
    _tell(listener.url(), model="声音\nX-Injected: 1")
    sent = listener.posts[0][1]
    assert sent["Title"].isascii()
    assert str(make_header(decode_header(sent["Title"]))) == "Stentor: 声音 X-Injected: 1 stalled"
    assert "X-Injected" not in sent


def test_credentials_of_the_url_are_sent_and_never_logged(listener: Listener, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for path in ("/secret-topic", "/refused", "/moved", "/broken"):
        _tell(listener.url(path, "ada:hunter22@"))
    assert listener.posts[0][1]["Authorization"].startswith("Basic ")
    for url in (
        "http://ada:hunter22@127.0.0.1:1/secret-topic",
        "http://ada:hunter22@[::1/secret-topic",
        "secret-topic",
    ):
        _tell(url)
    told = [record for record in caplog.records if record.name == "stentor.host.notify"]
    assert len(told) == 5  # the two that are no URL are of one kind
    for word in ("hunter22", "secret-topic", "ada"):
        assert word not in caplog.text


def test_a_redirect_is_not_followed(listener: Listener, caplog: pytest.LogCaptureFixture) -> None:
    _tell(listener.url("/moved"))
    assert [path for path, _, _ in listener.posts] == ["/moved"]
    assert "redirects" in caplog.text


def test_a_failure_is_logged_once_and_again_after_a_success(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    _tell(listener.url("/refused"), times=3)
    assert caplog.text.count("it answers 403") == 1
    _tell(listener.url("/broken"), times=2)
    assert caplog.text.count("it answers 500") == 1
    _tell(listener.url())
    _tell(listener.url("/refused"))
    assert caplog.text.count("it answers 403") == 2


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1/topic", "could not be told to 127.0.0.1"),
        ("http://nobody.invalid/topic", "could not be told to nobody.invalid"),
        ("ftp://127.0.0.1/topic", "it is no http or https URL"),
        ("topic", "it is no http or https URL"),
        ("http://[::1", "it is no http or https URL"),
        ("http://127.0.0.1:99999/", "it is no http or https URL"),
        ("", "it is no http or https URL"),
    ],
)
def test_an_address_that_leads_nowhere_is_said_and_not_raised(
    url: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    notify_module._told.clear()
    _tell(url)
    assert reason in caplog.text
    assert "Check notify_url." in caplog.text


@pytest.mark.parametrize("silent", [True, False])
def test_who_answers_slowly_or_never_is_given_up(
    listener: Listener, silent: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notify_module, "TIMEOUT_S", 0.5)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        start = time.monotonic()
        _tell(f"http://127.0.0.1:{deaf.getsockname()[1]}/" if silent else listener.url("/slow"))
    assert time.monotonic() - start < 3
    assert "no answer within 0.5 s" in caplog.text
