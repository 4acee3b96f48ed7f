"""`stentor transcribe` as a person runs it: many files, folders, formats, bad files, with a server and without."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_commands import run
from tests.conftest import Server, serving

CAPABLE = {"capabilities": ["language", "context", "segment_timestamps", "word_timestamps"]}
EARS = {"engine": "tests.fake_ears:FakeEars", "kind": "stt", "options": CAPABLE}
SETTINGS = {"models": {"ears": EARS}, "transcription_model": "ears", "preload": "false"}


@pytest.fixture(scope="module")
def ears() -> Iterator[Server]:
    with serving(ready=False, **SETTINGS) as server:
        yield server


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder as people have them: recordings, a subfolder, a hidden one, and things that are no audio."""
    folder = tmp_path / "in"
    contents = {"a.mp3": "one two", "b.wav": "three", "deep/a.ogg": "four", ".hidden": "no", ".git/x": "no"}
    for name, said in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(said)
    return folder


def test_one_file_is_its_text_and_nothing_else_on_standard_output(ears: Server, files: Path) -> None:
    done = run("transcribe", str(files / "a.mp3"), port=ears.port)
    assert (done.returncode, done.stdout) == (0, "one two\n")
    assert re.search(r"file 1 of 1, \S+a\.mp3: [\d.]+ s elapsed, 2\.0 s audio, RTF [\d.]+", done.stderr)


def test_a_folder_is_walked_by_name_without_hidden_files(ears: Server, files: Path) -> None:
    done = run("transcribe", str(files), str(files / "b.wav"), port=ears.port)
    assert done.returncode == 0, done.stderr
    expected = {"a.mp3": "one two", "b.wav": "three", "deep/a.ogg": "four"}
    assert done.stdout.splitlines() == [f"{files / name}: {said}" for name, said in expected.items()]
    assert "3 files: " in done.stderr


def test_transcripts_go_beside_each_other_and_overwrite_nothing(ears: Server, files: Path) -> None:
    (files / "a.flac").write_text("five")
    output = files / "texts"
    for _ in range(2):
        done = run("transcribe", str(files), "-o", str(output), "--format", "srt", port=ears.port)
        assert (done.returncode, done.stdout) == (0, "")
    written = sorted(str(path.relative_to(output)) for path in output.rglob("*.srt"))
    assert written == ["a-2.srt", "a-3.srt", "a-4.srt", "a.srt", "b-2.srt", "b.srt", "deep/a-2.srt", "deep/a.srt"]
    assert (output / "deep/a.srt").read_text() == "1\n00:00:00,000 --> 00:00:01,000\nfour\n"


def test_json_is_a_line_a_file(ears: Server, files: Path) -> None:
    done = run("transcribe", "--json", "--format", "verbose_json", "--language", "de", str(files), port=ears.port)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["result"]["text"] for line in lines] == ["one two", "three", "four"]
    assert {line["result"]["language"] for line in lines} == {"german"}
    assert [line["audio_seconds"] for line in lines] == [2.0, 1.0, 1.0]
    assert all(line["rtf"] > 0 and line["elapsed_s"] > 0 and line["output"] is None for line in lines)


def test_a_bad_file_is_named_and_does_not_end_the_batch(ears: Server, files: Path) -> None:
    (files / "a.mp3").write_text("one RAISE")
    done = run("transcribe", str(files), port=ears.port)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"{files}/b.wav: three", f"{files}/deep/a.ogg: four"]
    assert f"file 1 of 3, {files}/a.mp3: failed: asked to raise" in done.stderr
    assert done.stderr.splitlines()[-1] == f"stentor: 1 of 3 files failed: {files}/a.mp3."
    lines = run("transcribe", "--json", str(files), port=ears.port).stdout.splitlines()
    assert json.loads(lines[0])["error"] == {"code": "engine_failed", "message": "asked to raise"}


def test_a_wrong_option_ends_it_at_once_and_is_said_once(ears: Server, files: Path) -> None:
    done = run("transcribe", "--model", "nobody", str(files), port=ears.port)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("nobody") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "docx", "{in}/a.mp3"], "--format must be one of"),
        (["--format", "srt", "{in}"], "-o FOLDER"),
        (["-o", "{in}/b.wav", "{in}/a.mp3"], "is a file"),
        (["{in}/nothing.wav", "{in}/none.wav"], "no such file: "),
        (["{in}/.git/empty"], "no file in"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(ears: Server, files: Path, arguments: list[str], message: str) -> None:
    (files / ".git/empty").mkdir()
    done = run("transcribe", *[one.replace("{in}", str(files)) for one in arguments], port=ears.port)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_in_a_folder_what_is_no_audio_is_passed_over(bundled: Server, tmp_path: Path) -> None:
    (tmp_path / "a speech.bin").write_bytes(bundled.speak("Good morning.", response_format="mp3").content)
    (tmp_path / "notes.txt").write_text("these are notes")
    (tmp_path / "empty.wav").touch()
    done = run("transcribe", str(tmp_path), port=bundled.port)
    assert done.returncode == 0, done.stderr
    assert done.stdout.lower().strip().startswith(f"{tmp_path}/a speech.bin: good morning")
    assert done.stderr.count("passed over") == 2
    alone = run("transcribe", str(tmp_path / "notes.txt"), port=bundled.port)
    assert alone.returncode == 1
    assert "not audio" in alone.stderr


def test_without_a_server_it_is_the_same(files: Path) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    (files / "b.wav").write_text("three RAISE")
    done = run("transcribe", "--json", str(files), **{**SETTINGS, "port": port})
    assert done.returncode == 1
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line.get("result", line.get("error", {}).get("code")) for line in lines] == [
        "one two",
        "engine_failed",
        "four",
    ]
