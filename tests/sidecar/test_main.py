"""The real child process over its pipes, driven as the host drives it and as a person would by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stentor.protocol import (
    MAX_LINE,
    Audio,
    Cancelled,
    Done,
    Error,
    FromSidecar,
    Hello,
    Loading,
    Ping,
    Pong,
    Shutdown,
    Synthesize,
    ToSidecar,
    decode_reply,
    encode,
)
from tests.conftest import environment

FAKE = "tests.fake_engine:FakeEngine"


class Child:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def say(self, *messages: ToSidecar) -> None:
        self.write(b"".join(map(encode, messages)))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hear(self, until: type) -> list[FromSidecar]:
        assert self.process.stdout is not None
        heard: list[FromSidecar] = []
        while not heard or not isinstance(heard[-1], until):
            line = self.process.stdout.readline()
            assert line, f"stdout ended after {heard}"
            heard.append(decode_reply(line))
        return heard


@contextmanager
def child(*arguments: str, engine: str = FAKE, kind: str = "tts", **options: Any) -> Iterator[Child]:
    argv = [sys.executable, "-m", "stentor.sidecar.main", kind, "--engine", engine, "--options", json.dumps(options)]
    pipe = subprocess.PIPE
    process = subprocess.Popen([*argv, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env=environment())
    try:
        yield Child(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def _speak(request_id: str, text: str) -> Synthesize:
    return Synthesize(id=request_id, text=text, seed=1)


def test_a_child_says_loading_then_hello_then_speaks_then_ends_on_shutdown() -> None:
    with child() as sidecar:
        greeting = sidecar.hear(Hello)
        assert isinstance(greeting[0], Loading)
        sidecar.say(_speak("a", "one two"))
        assert sum(isinstance(one, Audio) for one in sidecar.hear(Done)) == 2
        sidecar.say(Shutdown())
        assert sidecar.process.wait(10) == 0


def test_bad_lines_are_answered_with_an_error_and_the_child_lives_on() -> None:
    with child() as sidecar:
        sidecar.hear(Hello)
        for line in (b"nonsense", b'{"type":"nope","id":"x"}', b'{"type":"synthesize","id":"y"}', b"\xff\xfe\x00"):
            sidecar.write(line + b"\n")
            error = sidecar.hear(Error)[-1]
            assert isinstance(error, Error)
            assert error.code == "protocol_error"
        sidecar.write(b"\n\n  \n")
        sidecar.say(Ping(), _speak("a", "one"))
        assert isinstance(sidecar.hear(Done)[-1], Done)


def test_an_error_of_a_bad_line_carries_the_id_that_was_in_it() -> None:
    with child() as sidecar:
        sidecar.hear(Hello)
        sidecar.write(b'{"type":"synthesize","id":"mine"}\n')
        assert sidecar.hear(Error)[-1].id == "mine"  # type: ignore[union-attr]


def test_a_line_over_the_limit_is_skipped_whole_and_the_next_one_is_read() -> None:
    with child() as sidecar:
        sidecar.hear(Hello)
        sidecar.write(b'{"type":"append","id":"a","text":"' + b"x" * (2 * MAX_LINE) + b'"}\n')
        assert "was skipped" in sidecar.hear(Error)[-1].message  # type: ignore[union-attr]
        sidecar.say(Ping())
        assert isinstance(sidecar.hear(Pong)[-1], Pong)


def test_prints_of_a_library_and_of_c_code_do_not_reach_the_protocol() -> None:
    with child() as sidecar:
        sidecar.hear(Hello)
        sidecar.say(_speak("a", "one PRINT two"))
        assert sum(isinstance(one, Audio) for one in sidecar.hear(Done)) == 3
        sidecar.say(Shutdown())
        assert sidecar.process.wait(10) == 0
        assert sidecar.process.stderr is not None
        noise = sidecar.process.stderr.read()
        assert b"a library says hello" in noise
        assert b"so does C code" in noise


def test_a_ping_is_answered_while_the_loop_is_stuck() -> None:
    """Which is why a ping proves nothing, and the status page exists."""
    with child() as sidecar:
        sidecar.hear(Hello)
        sidecar.say(_speak("a", "HANG"))
        time.sleep(0.3)
        sidecar.say(Ping())
        assert isinstance(sidecar.hear(Pong)[-1], Pong)


def test_the_end_of_stdin_ends_the_child() -> None:
    with child() as sidecar:
        sidecar.hear(Hello)
        assert sidecar.process.stdin is not None
        sidecar.process.stdin.close()
        assert sidecar.process.wait(10) == 0


def test_the_end_of_stdin_finishes_what_a_person_has_piped_in() -> None:
    with child(frame_s=0.05) as sidecar:
        sidecar.say(_speak("a", "one two three"), _speak("b", "four"))
        assert sidecar.process.stdin is not None
        sidecar.process.stdin.close()
        ended = [sidecar.hear(Done)[-1], sidecar.hear(Done)[-1]]
        assert {one.id for one in ended if isinstance(one, Done)} == {"a", "b"}
        assert sidecar.process.wait(10) == 0


def test_the_end_of_stdin_ends_a_child_of_a_host_even_where_its_loop_is_stuck() -> None:
    with child("--parent", str(os.getpid())) as sidecar:
        sidecar.hear(Hello)
        sidecar.say(_speak("a", "HANG"))
        time.sleep(0.2)
        assert sidecar.process.stdin is not None
        sidecar.process.stdin.close()
        assert sidecar.process.wait(10) == 0


def test_a_shutdown_in_mid_speech_ends_the_utterance_with_cancelled() -> None:
    with child(frame_s=0.02) as sidecar:
        sidecar.hear(Hello)
        sidecar.say(_speak("a", "word " * 500))
        sidecar.hear(Audio)
        sidecar.say(Shutdown())
        assert isinstance(sidecar.hear(Cancelled)[-1], Cancelled)
        assert sidecar.process.wait(10) == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"load": "fail"}, "asked to fail"),
        ({"engine": "nobody"}, "unknown engine 'nobody'"),
        ({"engine": "stentor.nothing:Here"}, "cannot be imported"),
        ({"kind": "stt"}, "is a tts engine, not stt"),
    ],
)
def test_a_load_that_fails_is_told_as_an_error_and_an_exit_code(arguments: dict[str, str], reason: str) -> None:
    with child(**arguments) as sidecar:
        error = sidecar.hear(Error)[-1]
        assert isinstance(error, Error)
        assert (error.id, error.code) == (None, "load_failed")
        assert reason in error.message
        assert sidecar.process.wait(10) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's; others rely on the end of stdin")
def test_a_child_whose_host_is_another_than_its_parent_ends_at_once() -> None:
    with child("--parent", str(os.getppid())) as sidecar:
        assert sidecar.process.wait(20) == 0


def test_sigterm_ends_the_child() -> None:
    with child() as sidecar:
        sidecar.hear(Hello)
        sidecar.process.send_signal(signal.SIGTERM)
        assert sidecar.process.wait(10) != 0
