"""`stentor settings`: every value with its origin, no secret, and a file that loads back equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stentor.settings import Settings, load
from tests.cli.command import ASCII, run, run_with, terminal


def facts(*arguments: str, **settings: object) -> dict[str, Any]:
    done = run("settings", "--json", *arguments, **settings)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_each_value_names_the_place_to_change_it(tmp_path: Path) -> None:
    file = tmp_path / "stentor.toml"
    file.write_text("queue_limit = 3\nport = 1\n", encoding="utf-8")
    shown = facts("--settings", str(file), "--port", "9", host="::1")
    assert {
        name: (shown[name]["value"], shown[name]["origin"]) for name in ("queue_limit", "host", "port", "preload")
    } == {
        "queue_limit": (3, str(file)),
        "host": ("::1", "variable STENTOR_HOST"),
        "port": (9, "flag --port"),
        "preload": (True, "default"),
    }


def test_every_setting_is_shown_with_its_description() -> None:
    shown = facts()
    assert {name: one["description"] for name, one in shown.items()} == {
        name: field.description for name, field in Settings.model_fields.items()
    }
    lines = run("settings").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == list(Settings.model_fields)


def test_a_secret_is_counted_and_never_printed() -> None:
    for arguments in (["settings"], ["settings", "--json"], ["settings", "--template"]):
        done = run(*arguments, "--api-keys", "sesame,open", models="x=whisper:/m")
        assert done.returncode == 0
        assert "sesame" not in done.stdout + done.stderr
    assert facts("--api-keys", "sesame,open")["api_keys"]["value"] == ["**********"] * 2


def test_the_template_says_the_defaults_with_and_without_its_comment_signs(tmp_path: Path) -> None:
    text = run("settings", "--template").stdout
    opened = [line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in text.splitlines()]
    for name, content in (("closed.toml", text), ("opened.toml", "\n".join(opened))):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert load({}, {}, tmp_path / name).settings == Settings()
    origins = load({}, {}, tmp_path / "opened.toml").origins
    assert set(origins.values()) == {str(tmp_path / "opened.toml")}  # so every setting is in it
    assert all(f"# {field.description}\n" in text for field in Settings.model_fields.values())


def test_it_fits_a_terminal_of_80_columns_and_one_of_40() -> None:
    for columns in (80, 40):
        shown = terminal("settings", columns=columns).splitlines()
        assert max(map(len, shown)) <= columns
        assert any(line.startswith("frame_timeout") for line in shown)


def test_the_help_shows_no_flood_of_flags() -> None:
    assert "--queue-limit" not in run("settings", "--help").stdout
    assert "--template" in run("settings", "--help").stdout


def test_a_wrong_setting_in_an_ascii_locale_is_still_a_sentence() -> None:
    done = run_with(ASCII, "settings", "--speech-model", "你好")
    assert done.returncode == 2
    assert "is not among the models" in done.stderr
    assert "Traceback" not in done.stderr
