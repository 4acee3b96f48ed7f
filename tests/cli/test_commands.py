"""The commands as a person runs them: with a server and without one, and what they say when something is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from stentor import __version__
from tests.conftest import Server, environment


def run(*arguments: str, stdin: str = "", **settings: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "stentor", *arguments]
    return subprocess.run(argv, env=environment(**settings), input=stdin, capture_output=True, text=True, timeout=90)


@pytest.fixture
def free_port(unused_port: int) -> int:
    return unused_port


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_say_and_transcribe_use_the_running_server(bundled: Server, tmp_path: Path) -> None:
    before = bundled.get("/metrics").text
    path = tmp_path / "out.wav"
    said = run("say", "-o", str(path), "Good", "morning,", "everyone.", port=bundled.port)
    assert said.returncode == 0, said.stderr
    assert f"wrote {path}" in said.stderr
    with wave.open(str(path)) as file:
        assert 0.8 < file.getnframes() / file.getframerate() < 4
    heard = run("transcribe", str(path), port=bundled.port)
    assert heard.stdout.strip().lower().startswith("good morning")
    assert bundled.get("/metrics").text != before


def test_say_and_transcribe_work_without_a_server(tmp_path: Path, free_port: int) -> None:
    path = tmp_path / "out.mp3"
    said = run("say", "-o", str(path), "-", stdin="Good morning, everyone.", port=free_port)
    assert said.returncode == 0, said.stderr
    heard = run("transcribe", str(path), port=free_port)
    assert heard.stdout.strip().lower().startswith("good morning")


def test_several_files_are_printed_with_their_names(bundled: Server, tmp_path: Path) -> None:
    paths = [tmp_path / "one.mp3", tmp_path / "two.mp3"]
    for path in paths:
        run("say", "-o", str(path), "Good morning.", port=bundled.port)
    lines = run("transcribe", *map(str, paths), port=bundled.port).stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(map(str, paths))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["say", "-o", "x.midi", "Hello"], 2, "names no format"),
        (["transcribe", "nothing.wav"], 2, "no such file: nothing.wav"),
        (["serve", "--port", "many"], 2, "port (flag)"),
        (["nonsense"], 2, "No such command"),
        (["say", "-o", "x.wav", "--speed", "fast", "Hello"], 2, "speed"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(arguments: list[str], code: int, message: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_text_the_voice_cannot_say_is_an_error_and_leaves_no_file(bundled: Server, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    done = run("say", "-o", str(path), "你好", port=bundled.port)
    assert done.returncode == 2
    assert "cannot say" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_speed_out_of_range_is_an_error_without_a_traceback(bundled: Server, tmp_path: Path) -> None:
    done = run("say", "-o", str(tmp_path / "x.wav"), "--speed", "9", "Hello", port=bundled.port)
    assert done.returncode == 2
    assert "speed" in done.stderr
    assert "Traceback" not in done.stderr


def test_version_says_what_a_bug_report_needs() -> None:
    assert re.match(rf"stentor {re.escape(__version__)} \(protocol 1, Python 3\.", run("version").stdout)


def test_every_setting_is_a_flag_of_serve() -> None:
    from stentor.settings import Settings

    shown = run("serve", "--help").stdout
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')}" in shown


def test_the_sidecar_verb_is_the_sidecar_itself() -> None:
    lines = '{"type":"synthesize","id":"a","text":"Hello.","seed":1}\n{"type":"shutdown"}\n'
    argv = [sys.executable, "-m", "stentor", "sidecar", "tts", "--engine", "hibari"]
    process = subprocess.Popen(argv, env=environment(), stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines.splitlines(keepends=True)[0])
    process.stdin.flush()
    kinds: list[str] = []
    while "done" not in kinds:
        kinds.append(process.stdout.readline().split('"')[3])
    process.communicate(lines.splitlines(keepends=True)[1], timeout=20)
    assert kinds[-3:] == ["started", "audio", "done"]
    assert process.returncode == 0
