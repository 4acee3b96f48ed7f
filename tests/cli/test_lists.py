"""`stentor voices`, `models` and `status`: with a server, without one, with the wrong one, on a narrow terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Terminal, free_port, run, terminal
from tests.conftest import FAKE, Server, fake_settings, serving, until


def test_models_lists_kind_engine_state_role_and_languages(bundled: Server) -> None:
    lines = run("models", port=bundled.port).stdout.splitlines()
    assert "hibari\tspeech\thibari\tready\tdefault\ten" in lines
    assert "whisper-tiny.en\ttranscription\twhisper\tready\tdefault\ten" in lines


def test_models_and_voices_answer_without_a_server() -> None:
    settings = {"port": free_port(), **fake_settings()}
    models = json.loads(run("models", "--json", **settings).stdout)["models"]
    assert [one["id"] for one in models if one["default"]] == ["whisper-tiny.en", "fake"]
    assert {one["state"] for one in models} == {"unloaded"}
    voices = json.loads(run("voices", "--json", **settings).stdout)["voices"]
    assert [(one["id"], one["name"], one["model"]) for one in voices] == [
        ("one", "One", "fake"),
        ("two", "Two", "fake"),
    ]
    assert run("voices", "--model", "hibari", port=free_port()).stdout == "heart\tHeart\ten\thibari\n"


def test_a_model_is_loaded_and_unloaded_by_name(fake: Server) -> None:
    done = run("models", "load", "fake", port=fake.port)
    assert (done.returncode, done.stdout) == (0, "fake: ready\n")
    assert len(fake.sidecars()) == 1
    done = run("models", "unload", "fake", "--json", port=fake.port)
    assert json.loads(done.stdout)["state"] == "unloaded"
    until(lambda: not fake.sidecars(), "its process is gone")


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (["models", "load", "nobody"], 2, "See: stentor models"),
        (["voices", "--model", "nobody"], 2, "See: stentor models"),
        (["say", "-o", "x.wav", "--model", "nobody", "Hello"], 2, "See: stentor models"),
        (["say", "-o", "x.wav", "--voice", "nobody", "Hello"], 2, "See: stentor voices"),
    ],
)
def test_an_unknown_name_says_where_the_names_are(fake: Server, arguments: list[str], code: int, hint: str) -> None:
    done = run(*arguments, port=fake.port)
    assert done.returncode == code
    assert "nobody" in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("x.wav").exists()


def test_status_is_healthy(bundled: Server) -> None:
    done = run("status", port=bundled.port)
    assert done.returncode == 0
    head, *rows = done.stdout.splitlines()
    assert head.endswith(f"at {bundled.base}: ok")
    assert "hibari\tready\tspeech\t0\t0\t0\tcpu\tdefault" in rows
    facts = json.loads(run("status", "--json", port=bundled.port).stdout)
    assert (facts["status"], facts["server"]) == ("ok", bundled.base)


def test_status_of_a_server_that_cannot_load_its_voice_is_failing() -> None:
    spec = {**FAKE, "options": {"load": "fail"}}
    with serving(ready=False, models={"fake": spec}, speech_model="fake", preload="false") as server:
        assert server.speak("one").status_code == 503
        until(lambda: server.get("/health").status_code == 503, "the server is failing")
        done = run("status", port=server.port)
        assert done.returncode == 1
        assert "failing" in done.stdout
        assert "last failure: " in done.stdout


def test_without_a_server_status_says_how_to_start_one() -> None:
    port = free_port()
    done = run("status", port=port)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"no server runs at http://127.0.0.1:{port}" in done.stderr
    assert "stentor serve" in done.stderr
    done = run("status", "--json", port=port)
    assert json.loads(done.stdout)["status"] == "no server"
    assert run("models", "load", "hibari", port=port).returncode == 3


def test_a_server_that_is_named_is_the_one_that_is_asked(bundled: Server) -> None:
    for url in (bundled.base, f"{bundled.base}/", f"{bundled.base}/v1"):
        assert "hibari" in run("models", "--server", url, port=free_port()).stdout
        assert run("status", server=url).returncode == 0


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[::1"])
def test_a_server_that_is_named_and_silent_is_never_replaced(url: str, tmp_path: Path) -> None:
    for arguments in (["say", "-o", str(tmp_path / "x.wav"), "Hello"], ["models"], ["voices"], ["status"]):
        done = run(*arguments, "--server", url)
        assert done.returncode == 3
        assert f"no Stentor answers at {url}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_listens_everywhere_is_found_on_this_machine(fake: Server) -> None:
    assert "fake" in run("models", "--host", "0.0.0.0", "--port", str(fake.port)).stdout


def test_a_key_is_sent_and_a_missing_one_is_asked_for(tmp_path: Path) -> None:
    with serving(ready=False, api_keys="sesame,other", **fake_settings()) as server:
        argv = ["say", "-o", str(tmp_path / "x.wav"), "one"]
        for given in ([], ["--api-key", "wrong"]):
            done = run(*argv, *given, port=server.port)
            assert done.returncode == 1
            assert "--api-keys KEY" in done.stderr
        assert run(*argv, "--api-key", "sesame", port=server.port).returncode == 0
        assert run(*argv, port=server.port, api_keys="other").returncode == 0
        assert run("models", "load", "fake", port=server.port).returncode == 1


def test_a_table_has_a_header_on_a_terminal_and_fits_a_narrow_one(bundled: Server) -> None:
    wide = terminal("models", port=bundled.port)
    assert wide.split()[:6] == ["model", "kind", "engine", "state", "role", "languages"]
    narrow = terminal("models", columns=40, port=bundled.port)
    assert "  engine: hibari" in narrow.splitlines()
    assert max(map(len, narrow.splitlines())) <= 40


def test_colour_stays_away_where_it_is_not_wanted(bundled: Server) -> None:
    shown = Terminal("status", variables={"NO_COLOR": "1"}, port=bundled.port)
    shown.rest()
    shown.close()
    assert "\x1b[3" not in shown.raw
    assert "\x1b" not in run("status", port=bundled.port).stdout


@pytest.mark.parametrize("url", ["localhost:8300", "nonsense", "ftp://127.0.0.1"])
def test_a_server_without_its_scheme_is_a_setting_to_correct_and_not_a_server_that_is_silent(url: str) -> None:
    done = run("status", "--server", url)
    assert done.returncode == 2
    assert f"http://{url}" in done.stderr
