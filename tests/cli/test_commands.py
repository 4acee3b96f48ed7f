"""The commands as a person runs them: with a server and without one, and what they say when something is wrong."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import wave
from pathlib import Path

import pytest

from stentor import __version__
from stentor.cli import VERBS
from tests.cli.command import ASCII, Terminal, free_port, run, run_with
from tests.conftest import Server, environment


def test_say_and_transcribe_use_the_running_server(bundled: Server, tmp_path: Path) -> None:
    before = bundled.get("/metrics").text
    path = tmp_path / "out.wav"
    said = run("say", "--seed", "1", "-o", str(path), "Good", "morning,", "everyone.", port=bundled.port)
    assert said.returncode == 0, said.stderr
    assert f"wrote {path}" in said.stderr
    with wave.open(str(path)) as file:
        assert 0.8 < file.getnframes() / file.getframerate() < 4
    heard = run("transcribe", str(path), port=bundled.port)
    assert heard.stdout.strip().lower().startswith("good morning")
    assert bundled.get("/metrics").text != before


def test_say_and_transcribe_work_without_a_server(tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "out.mp3"
    said = run("say", "--seed", "1", "-o", str(path), "-", stdin="Good morning, everyone.", port=port)
    assert said.returncode == 0, said.stderr
    heard = run("transcribe", str(path), port=port)
    assert heard.stdout.strip().lower().startswith("good morning")


def test_several_files_are_printed_with_their_names(bundled: Server, tmp_path: Path) -> None:
    paths = [tmp_path / "one.mp3", tmp_path / "two.mp3"]
    for path in paths:
        run("say", "--seed", "1", "-o", str(path), "Good morning.", port=bundled.port)
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
        (["say", "-o", "x.wav", "--file", "missing.txt"], 2, "cannot read missing.txt: No such file"),
        (["say", "-o", "x.wav", "--file", "a.txt", "and a text"], 2, "a text or --file, not both"),
        (["say", "-o", "x.wav", "--format", "midi", "Hello"], 2, "use one of: mp3, opus, aac, flac, wav, pcm"),
        (["say", "-o", "/nowhere/x.wav", "Hello"], 2, "mkdir -p /nowhere"),
        (["say", "-o", "/", "Hello"], 2, "is a folder"),
        (["say", "-o", "-", "--json", "Hello"], 2, "write the audio to a file"),
        (["models", "lode", "hibari"], 2, "stentor models load NAME"),
        (["models", "load"], 2, "stentor models load NAME"),
        (["settings", "--json", "--template"], 2, "ask for one"),
        (["models", "--settings", "missing.toml"], 2, "missing.toml cannot be read"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(arguments: list[str], code: int, message: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_text_the_voice_cannot_say_is_an_error_and_leaves_no_file(bundled: Server, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    done = run("say", "--seed", "1", "-o", str(path), "你好", port=bundled.port)
    assert done.returncode == 2
    assert "cannot say" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_speed_out_of_range_is_an_error_without_a_traceback(bundled: Server, tmp_path: Path) -> None:
    done = run("say", "--seed", "1", "-o", str(tmp_path / "x.wav"), "--speed", "9", "Hello", port=bundled.port)
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


def test_a_client_shows_only_the_settings_that_say_which_server_it_asks() -> None:
    for verb in ("say", "transcribe", "voices", "models", "status"):
        shown = run(verb, "--help").stdout
        assert all(f"--{name}" in shown for name in ("server", "host", "port", "api-keys", "settings"))
        assert "--queue-limit" not in shown


@pytest.mark.parametrize("arguments", [[], ["say"], ["models"], ["settings"]])
@pytest.mark.parametrize("columns", [80, 40])
def test_the_help_fits_the_terminal_and_keeps_no_colour_out(arguments: list[str], columns: int) -> None:
    shown = Terminal(*arguments, "--help", columns=columns, variables={"NO_COLOR": "1"})
    with contextlib.closing(shown):
        assert max(map(len, shown.rest().splitlines())) <= columns
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown.raw)


def test_the_help_of_every_verb_can_be_read_in_ascii() -> None:
    for verb in VERBS:
        if verb != "sidecar":  # whose arguments are all the sidecar's
            shown = run_with(ASCII, verb, "--help")
            assert f"stentor {verb}" in shown.stdout
            assert shown.stdout.isascii()
            assert shown.stderr == ""


@pytest.mark.parametrize("arguments", [["--help"], ["version"]])
def test_nothing_heavy_is_loaded_before_it_is_needed(arguments: list[str]) -> None:
    code = f"import sys; sys.argv = ['stentor', *{arguments}]\nfrom stentor.cli import main\nmain()"
    argv = [sys.executable, "-X", "importtime", "-c", code]
    loaded = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=True).stderr
    names = {line.rpartition("|")[2].strip() for line in loaded.splitlines()}
    assert "typer" in names
    assert not names & {"numpy", "av", "fastapi", "uvicorn", "httpx", "stentor.server"}


@pytest.mark.parametrize(
    ("shell", "variables"),
    [
        ("bash", {"COMP_WORDS": "stentor mod", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "stentor mod"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "stentor mod", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_every_shell_completes_a_verb(shell: str, variables: dict[str, str]) -> None:
    code = "import sys; sys.argv = ['stentor']\nfrom stentor.cli import main\nmain()"
    env = {**environment(), "_STENTOR_COMPLETE": f"complete_{shell}", **variables}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert "models" in done.stdout
    assert "serve" not in done.stdout


def test_a_reader_that_leaves_is_no_traceback() -> None:
    mine, theirs = os.pipe()
    os.close(mine)
    argv = [sys.executable, "-m", "stentor", "settings"]
    done = subprocess.run(argv, env=environment(), stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


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
    assert kinds[kinds.index("hello") :][:3] == ["hello", "started", "audio"]
    assert kinds[-1] == "done"
    assert process.returncode == 0
