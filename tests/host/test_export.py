"""The zip for a bug report, as the one who gets it opens it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from stentor.errors import InvalidRequest, SettingsError
from stentor.host.export import export
from stentor.host.incidents import Incident, as_dict, from_json
from stentor.host.store import IncidentStore


def _store(folder: Path, count: int = 3) -> IncidentStore:
    store = IncidentStore(folder)
    for number in range(count):
        store.add(Incident(model=f"m{number}", rung="cpu", device="cpu", kind="died", evidence={"name": "声音"}))
    return store


def test_the_zip_holds_all_incidents_and_the_machine(tmp_path: Path) -> None:
    store, path = _store(tmp_path / "data"), tmp_path / "report.zip"
    assert export(store, path, {"stentor": "1.2.3", "folder": tmp_path}) == 3
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        incidents = store.read()
        assert json.loads(file.read("incidents.json")) == [as_dict(one) for one in incidents]
        assert [from_json(file.read(f"incidents/{one.id}.json").decode()) for one in incidents] == incidents
        environment = json.loads(file.read("environment.json"))
        readme = file.read("README.txt").decode()
        assert len(file.namelist()) == 6
    assert environment["stentor"] == "1.2.3"
    assert environment["python"] == sys.version
    assert environment["packages"]["httpx"] == metadata.version("httpx")
    assert environment["packages"]["hibari-tts"]
    assert "pytest" not in environment["packages"]
    assert "all recorded incidents (3)" in readme
    assert "were taken out" in readme


def test_without_incidents_the_machine_is_still_told(tmp_path: Path) -> None:
    assert export(IncidentStore(tmp_path / "none"), tmp_path / "report.zip", {}) == 0
    with zipfile.ZipFile(tmp_path / "report.zip") as file:
        assert json.loads(file.read("incidents.json")) == []


def test_a_report_replaces_the_one_before_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.zip"
    path.write_bytes(b"the one before")
    body = (
        "import resource, sys; from pathlib import Path\n"
        "from stentor.host.export import export; from stentor.host.store import IncidentStore\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "export(IncidentStore(Path(sys.argv[1])), Path(sys.argv[2]), {})"
    )
    argv = [sys.executable, "-c", body, str(tmp_path / "data"), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert "cannot write" in done.stderr
    assert path.read_bytes() == b"the one before"
    assert [file.name for file in tmp_path.iterdir()] == ["report.zip"]
    export(_store(tmp_path / "data"), path, {})
    assert zipfile.is_zipfile(path)


@pytest.mark.parametrize("name", ["", "missing/report.zip"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot write"):
        export(_store(tmp_path / "data"), tmp_path / name, {})
    assert not list(tmp_path.rglob("*.part"))


def test_a_damaged_store_is_no_empty_report(tmp_path: Path) -> None:
    (tmp_path / "incidents.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(SettingsError, match="is damaged"):
        export(IncidentStore(tmp_path), tmp_path / "report.zip", {})
    assert not (tmp_path / "report.zip").exists()


def test_a_clock_that_was_lost_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert export(_store(tmp_path / "data"), tmp_path / "report.zip", {}) == 3
