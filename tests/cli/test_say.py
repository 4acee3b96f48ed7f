"""`stentor say`: where the text comes from, where the audio goes, and what is left when it does not end well."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import threading
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ASCII, Terminal, binary, fake_player, free_port, run, run_with, started
from tests.conftest import Server, fake_settings, serving, until
from tests.server.test_speech import probed_seconds

FORMATS = ("mp3", "opus", "aac", "flac", "wav")
SLOW = {"frame_s": 0.1}
ENDLESS = "one " * 6000  # ten minutes of work for the slow fake: nobody waits for its end


@pytest.fixture(scope="module")
def slow() -> Iterator[Server]:
    """A server whose voice makes its audio no faster than it is heard."""
    with serving(ready=False, **fake_settings(**SLOW)) as server:
        yield server


def said(path: Path, *arguments: str, **settings: Any) -> dict[str, Any]:
    done = run("say", "--json", "-o", str(path), *arguments, **settings)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("format", FORMATS)
def test_the_numbers_are_those_of_the_file(bundled: Server, tmp_path: Path, format: str) -> None:
    path = tmp_path / f"out.{format}"
    facts = said(path, "Good morning, everyone.", "--seed", "7", port=bundled.port)
    seconds = facts["audio_seconds"]
    assert abs(seconds - probed_seconds(path.read_bytes())) < 0.1
    assert 0.8 < seconds < 4
    assert facts["bytes"] == path.stat().st_size
    assert (facts["output"], facts["format"], facts["player"]) == (str(path), format, None)
    assert (facts["seed"], facts["model"]) == (7, "hibari")
    assert 0 < facts["first_byte_s"] <= facts["elapsed_s"]
    assert facts["rtf"] == pytest.approx(facts["elapsed_s"] / seconds, rel=0.02)


def test_a_file_states_its_length_though_it_was_streamed(bundled: Server, tmp_path: Path) -> None:
    facts = said(tmp_path / "out.wav", "Good morning.", port=bundled.port)
    with wave.open(str(tmp_path / "out.wav")) as file:
        assert file.getnframes() * 2 + 44 == facts["bytes"]
    facts = said(tmp_path / "out.flac", "Good morning.", port=bundled.port)
    streaminfo = int.from_bytes((tmp_path / "out.flac").read_bytes()[18:26], "big")
    assert streaminfo % 2**36 == round(facts["audio_seconds"] * (streaminfo >> 44))


def test_the_text_comes_from_arguments_a_file_or_standard_input(fake: Server, tmp_path: Path) -> None:
    text = "你好 world"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8-sig")
    (tmp_path / "windows.txt").write_text(text, encoding="utf-16")
    to_stdout = ("say", "--format", "pcm", "-o", "-")
    heard = {
        binary(*to_stdout, *source, stdin=text.encode(), port=fake.port).stdout
        for source in (
            ("你好", "world"),
            ("-",),
            (),
            ("--file", "-"),
            ("--file", str(tmp_path / "text.txt")),
            ("--file", str(tmp_path / "windows.txt")),
        )
    }
    assert len(heard) == 1  # the fake engine's tone depends on every character
    assert len(heard.pop()) > 8000


def test_a_locale_without_unicode_changes_neither_the_text_nor_the_name(fake: Server, tmp_path: Path) -> None:
    said(tmp_path / "utf8.wav", "你好 world", port=fake.port)
    done = run_with(ASCII, "say", "--json", "-o", str(tmp_path / "你好.wav"), "你好 world", port=fake.port)
    assert json.loads(done.stdout)["output"] == str(tmp_path / "你好.wav")
    assert (tmp_path / "utf8.wav").read_bytes() == (tmp_path / "你好.wav").read_bytes()


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"Hello \xff\xfe\x00")
    done = run("say", "--seed", "1", "-o", str(tmp_path / "x.wav"), "--file", str(tmp_path / "noise"))
    assert done.returncode == 2
    assert "is not UTF-8 text (byte 6)" in done.stderr


def test_standard_output_carries_the_audio_and_nothing_else(bundled: Server) -> None:
    done = binary("say", "-o", "-", "Good morning.", port=bundled.port)
    assert done.stdout[:4] == b"RIFF"
    assert probed_seconds(done.stdout) > 0.5
    assert re.search(rb"wrote - \(\d+ bytes\): [\d.]+ s elapsed, [\d.]+ s audio, RTF [\d.]+; ", done.stderr)
    assert b"\x1b" not in done.stderr


def test_a_reader_that_has_enough_ends_the_work(slow: Server) -> None:
    with started("say", "-o", "-", ENDLESS, port=slow.port) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(4) == b"RIFF"
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""
    until(lambda: slow.health("fake")["running"] == 0, "the slot is free again")


def test_the_speech_is_played_while_it_is_made(slow: Server, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    player = fake_player(tmp_path / "bin", f"exec cat > {heard}")
    with started("say", ENDLESS, variables=player, port=slow.port) as process:
        until(lambda: heard.exists() and heard.stat().st_size > 4800, "the player hears a sound")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_player_that_reads_no_pipe_gets_the_whole_file(fake: Server, tmp_path: Path) -> None:
    player = fake_player(tmp_path / "bin", f'cp "$1" {tmp_path}/heard.wav', name="afplay")
    done = run_with(player, "say", "--json", "one two", port=fake.port)
    facts = json.loads(done.stdout)
    assert (facts["player"], facts["output"]) == ("afplay", None)
    with wave.open(str(tmp_path / "heard.wav")) as file:
        assert file.getnframes() / file.getframerate() == pytest.approx(facts["audio_seconds"])


@pytest.mark.parametrize("script", ["exit 7", "cat > /dev/null; exit 7", "exit 0"])
def test_a_player_that_cannot_play_is_an_error_that_says_what_to_do(fake: Server, tmp_path: Path, script: str) -> None:
    text = "one two three four five six seven eight nine ten " * 12  # a minute, which no player can have played
    done = run_with(fake_player(tmp_path / "bin", script), "say", text, port=fake.port)
    assert done.returncode == 1
    assert "aplay could not play" in done.stderr
    assert "stentor say -o speech.wav" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_player_the_message_names_the_way_out(tmp_path: Path) -> None:
    done = run_with({"PATH": str(tmp_path)}, "say", "Hello.")
    assert done.returncode == 1
    assert "no player found" in done.stderr
    assert "stentor say -o speech.wav" in done.stderr


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("served", [True, False])
def test_an_interrupt_leaves_no_file(slow: Server, tmp_path: Path, ending: signal.Signals, served: bool) -> None:
    settings = {"port": slow.port} if served else {"port": free_port(), **fake_settings(**SLOW)}
    with started("say", "-o", str(tmp_path / "out.wav"), ENDLESS, **settings) as process:
        part = tmp_path / "out.wav.part"
        until(lambda: part.exists() and part.stat().st_size > 0, "the first audio is there")
        process.send_signal(ending)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_a_sidecar_that_dies_half_way_is_an_error_and_leaves_no_file(fake: Server, tmp_path: Path) -> None:
    done = run("say", "--seed", "1", "-o", str(tmp_path / "out.wav"), "one two three CRASH", port=fake.port)
    assert done.returncode == 1
    assert "broke off" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_server_a_crash_is_said_once(tmp_path: Path) -> None:
    done = run("say", "--seed", "1", "-o", str(tmp_path / "out.wav"), "one CRASH", port=free_port(), **fake_settings())
    assert done.returncode == 1
    assert re.fullmatch(r"stentor: The sidecar of fake ended unexpectedly.*\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_named_pipe_is_written_and_stays_one(fake: Server, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reader.start()
    done = run("say", "--format", "pcm", "-o", str(pipe), "one two", port=fake.port)
    reader.join(30)
    assert done.returncode == 0, done.stderr
    assert len(heard[0]) == 2 * 4800
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link(fake: Server, tmp_path: Path) -> None:
    (tmp_path / "link.wav").symlink_to(tmp_path / "target.wav")
    said(tmp_path / "link.wav", "one two", port=fake.port)
    assert (tmp_path / "link.wav").is_symlink()
    assert (tmp_path / "target.wav").read_bytes()[:4] == b"RIFF"


def test_a_terminal_shows_the_numbers_while_they_grow(slow: Server, tmp_path: Path) -> None:
    shown = Terminal("say", "-o", str(tmp_path / "x.wav"), ENDLESS, columns=40, port=slow.port)
    with contextlib.closing(shown):
        line = shown.until(r"[\d.]+ s elapsed, [1-9]\.\d s audio, RTF [\d.]+")
        assert len(line) <= 40
        shown.process.send_signal(signal.SIGINT)
        shown.rest()
        assert shown.process.returncode == 130


def test_no_terminal_gets_a_plain_line_now_and_then(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    from stentor.cli import progress

    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.Progress() as shown:
        for second in range(25):
            now = 100.0 + second
            shown.update(audio_s=2.0 * second)
    assert capfd.readouterr().err.splitlines() == [
        "10.0 s elapsed, 20.0 s audio, RTF 0.50",
        "20.0 s elapsed, 40.0 s audio, RTF 0.50",
    ]


def test_json_goes_to_standard_output_and_nothing_beside_it(fake: Server, tmp_path: Path) -> None:
    argv = ["say", "--json", "-o", str(tmp_path / "x.wav"), "one"]
    done = run(*argv, port=fake.port)
    assert set(json.loads(done.stdout)) >= {"output", "bytes", "audio_seconds", "elapsed_s", "first_byte_s", "rtf"}
    assert done.stderr == ""


def test_without_a_server_the_voice_is_the_one_that_spoke(tmp_path: Path) -> None:
    facts = said(tmp_path / "x.wav", "one", port=free_port(), **fake_settings())
    assert (facts["model"], facts["voice"]) == ("fake", "one")
    facts = said(tmp_path / "x.wav", "--voice", "two", "one", port=free_port(), **fake_settings())
    assert facts["voice"] == "two"


def test_a_full_disk_is_a_sentence(fake: Server) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    argv = ["say", "--format", "wav", "-o", str(full), "one " * 200]
    done = run(*argv, port=fake.port)
    assert (done.returncode, done.stderr) == (1, "stentor: cannot write /dev/full: No space left on device.\n")
