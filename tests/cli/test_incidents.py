"""`stentor incidents` as a person runs it: on a full store, an empty one, a broken one; with no server anywhere."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from stentor.host.incidents import Incident
from stentor.host.store import IncidentStore
from tests.cli.command import STENTOR, run, terminal
from tests.conftest import ROOT, environment

PAGE = ROOT / "docs" / "incidents.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two incidents: an old one without evidence, a new one with some that would colour the terminal."""
    store = IncidentStore(tmp_path / "data")
    store.add(Incident(id="aaaa11112222", model="hibari", rung="cpu", device="cpu", kind="died", how="signal 9"))
    evidence = {"stderr": ["first", "\x1b[31mred\x07"], "cpu": {"user_s": 1.5}}
    new = Incident(
        id="bbbb33334444",
        model="whisper-tiny.en",
        rung="cpu",
        device="cpu",
        kind="stalled",
        phase="window",
        unit=3,
        how="no progress for 20.1 s",
        open_requests=1,
        action="killed",
        speaks_now="whisper-tiny.en on cpu",
        listens=True,
        pause_s=0.8,
        recovered=True,
        evidence=evidence,
    )
    store.add(new)
    return tmp_path / "data"


def test_the_list_has_the_newest_first(folder: Path) -> None:
    done = run("incidents", "list", data_dir=str(folder))
    new, old = (line.split("\t") for line in done.stdout.splitlines())
    assert (new[0], *new[2:]) == ("bbbb33334444", "whisper-tiny.en", "stalled", "recovered: no progress for 20.1 s")
    assert (old[0], *old[2:]) == ("aaaa11112222", "hibari", "died", "not recovered: signal 9")
    assert done.returncode == 0
    assert len(run("incidents", "list", "--limit", "1", "--data-dir", str(folder)).stdout.splitlines()) == 1


def test_the_list_as_json_holds_the_sentences(folder: Path) -> None:
    listed = json.loads(run("incidents", "list", "--json", data_dir=str(folder)).stdout)["incidents"]
    assert [one["id"] for one in listed] == ["bbbb33334444", "aaaa11112222"]
    assert listed[0]["sentence"].endswith("; whisper-tiny.en on cpu listens now.")


def test_the_list_is_a_table_on_a_terminal_and_fits_a_narrow_one(folder: Path) -> None:
    wide = terminal("incidents", "list", columns=120, data_dir=str(folder))
    assert wide.split()[:4] == ["id", "when", "model", "kind"]
    narrow = terminal("incidents", "list", columns=40, data_dir=str(folder))
    assert "  kind: stalled" in narrow.splitlines()
    assert max(map(len, narrow.splitlines())) <= 40


def test_one_is_shown_by_the_beginning_of_its_id_with_its_evidence(folder: Path) -> None:
    done = run("incidents", "show", "bbbb", data_dir=str(folder))
    assert done.returncode == 0
    first, *lines = done.stdout.splitlines()
    assert first.startswith("whisper-tiny.en on cpu stopped making progress at ")
    assert {"engine: none", "recovered: yes", "unit: 3", "  stderr", "    first", "  cpu", "    user_s: 1.5"} <= set(
        lines
    )
    assert "    \\x1b[31mred\\x07" in lines
    shown = json.loads(run("incidents", "show", "bbbb", "--json", data_dir=str(folder)).stdout)
    assert shown["evidence"]["stderr"] == ["first", "\x1b[31mred\x07"]


@pytest.mark.parametrize(("id", "hint"), [("cccc", "See: stentor incidents list"), ("", "write more of it")])
def test_an_id_that_is_not_one_is_an_error_of_the_command_line(folder: Path, id: str, hint: str) -> None:
    done = run("incidents", "show", id, data_dir=str(folder))
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr


def test_without_incidents_the_list_is_empty_and_nothing_is_made(tmp_path: Path) -> None:
    done = run("incidents", "list", data_dir=str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (0, "")
    assert str(tmp_path / "none") in done.stderr
    done = run("incidents", "list", "--json", data_dir=str(tmp_path / "none"))
    assert json.loads(done.stdout) == {"incidents": []}
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "incidents.db").write_bytes(b"garbage" * 1000)
    for verb in (["list"], ["show", "a"], ["export", "-o", str(tmp_path / "x.zip")]):
        done = run("incidents", *verb, data_dir=str(tmp_path))
        assert (done.returncode, done.stdout) == (2, "")
        assert "is damaged" in done.stderr
        assert "Move incidents.db" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_export_holds_everything_and_no_secret_of_the_settings(folder: Path, tmp_path: Path) -> None:
    secrets = {"api_keys": "sesame", "notify_url": "https://ntfy.sh/secret-topic", "frame_timeout": 7}
    done = run("incidents", "export", "-o", str(tmp_path / "report.zip"), data_dir=str(folder), **secrets)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'report.zip'}\n")
    assert "2 incidents" in done.stderr
    with zipfile.ZipFile(tmp_path / "report.zip") as file:
        whole = b"".join(file.read(name) for name in file.namelist())
        settings = json.loads(file.read("environment.json"))["settings"]
    assert settings == {"api_keys": "set", "notify_url": "set", "data_dir": "set", "frame_timeout": 7.0}
    assert b"sesame" not in whole
    assert b"secret-topic" not in whole


def test_the_export_names_its_file_itself_or_says_why_it_cannot(folder: Path, tmp_path: Path) -> None:
    env = environment(data_dir=str(folder))
    done = subprocess.run([*STENTOR, "incidents", "export"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert zipfile.is_zipfile(tmp_path / done.stdout.strip())
    assert done.stdout.startswith("stentor-incidents-")
    done = run("incidents", "export", "-o", "/dev/null/x.zip", data_dir=str(folder))
    assert done.returncode == 2
    assert "cannot write /dev/null/x.zip" in done.stderr


def test_the_help_names_the_three_and_the_page_explains_them() -> None:
    shown = run("incidents", "--help").stdout
    page = PAGE.read_text(encoding="utf-8")
    for verb in ("list", "show", "export"):
        assert verb in shown
        assert f"stentor incidents {verb}" in page
