"""Incidents on a real disk: in order, whole, shared by hosts; and a server that goes on with a full one."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stentor.errors import InvalidRequest, SettingsError
from stentor.host import store as store_module
from stentor.host.incidents import Incident, from_json
from stentor.host.store import IN_MEMORY, VERSION, IncidentStore

AT = datetime(2026, 12, 1, 14, 3, 7, tzinfo=UTC)
PROGRAM = """
import sys
from pathlib import Path
from stentor.host.incidents import Incident
from stentor.host.store import IncidentStore
def incident(name): return Incident(model=name, rung="cpu", device="cpu", kind="died", evidence={"x": ["line"] * 50})
store = IncidentStore(Path(sys.argv[1]))
"""


def _incident(model: str = "hibari", **fields: object) -> Incident:
    return Incident(model=model, rung="cpu", device="cpu", kind="died", **fields)  # type: ignore[arg-type]


def _models(store: IncidentStore, limit: int = 1000) -> list[str]:
    return [one.model for one in store.list(limit)]


def _program(body: str, folder: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", PROGRAM + body, str(folder)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def _output(body: str, folder: Path) -> str:
    with _program(body, folder) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output


def _all_bytes(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_incidents_outlive_the_server_and_come_newest_first(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path / "data")
    store.open()
    for number in range(5):
        store.add(_incident(str(number), evidence={"你": [number]}))
    store.close()
    assert store.problem is None
    again = IncidentStore(tmp_path / "data")
    assert _models(again) == ["4", "3", "2", "1", "0"]
    assert _models(again, 2) == ["4", "3"]
    assert again.list()[0].evidence == {"你": [4]}


def test_a_jump_of_the_clock_does_not_reorder(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    for number, hours in enumerate((0, -100, 5000, 1)):
        store.add(_incident(str(number), at=AT + timedelta(hours=hours)))
    assert _models(store) == ["3", "2", "1", "0"]


def test_an_update_replaces_row_and_file_in_its_place(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    first, second = _incident("first"), _incident("second")
    store.add(first)
    store.add(second)
    first.recovered, first.pause_s = True, 0.8
    store.update(first)
    assert store.list() == [second, first]
    assert from_json((tmp_path / "incidents" / f"{first.id}.json").read_text("utf-8")) == first


def test_each_incident_is_a_json_file_with_its_sentence(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    one = _incident()
    store.add(one)
    (file,) = (tmp_path / "incidents").iterdir()
    assert file.name == f"{one.id}.json"
    assert json.loads(file.read_text("utf-8"))["sentence"] == one.sentence()


def test_an_incident_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    for name in ("abc1", "abd2", "ab_3"):
        store.add(_incident(name, id=name))
    assert store.find("abc").model == "abc1"
    assert store.find("ABD2").model == "abd2"
    assert store.find("ab_").model == "ab_3"
    with pytest.raises(InvalidRequest, match="write more of it"):
        store.find("ab")
    for unknown in ("x", "%", "b"):
        with pytest.raises(InvalidRequest, match="stentor incidents list"):
            store.find(unknown)


def test_past_its_limit_the_oldest_go_with_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "KEPT", 10)
    store = IncidentStore(tmp_path)
    for number in range(25):
        store.add(_incident(str(number)))
    assert _models(store) == [str(number) for number in range(24, 14, -1)]
    assert {file.stem for file in (tmp_path / "incidents").iterdir()} == {one.id for one in store.list()}


def test_a_store_that_is_not_there_is_empty_and_is_not_made_by_looking(tmp_path: Path) -> None:
    assert IncidentStore(tmp_path / "none").read() == []
    assert not (tmp_path / "none").exists()


def test_two_hosts_and_more_write_at_the_same_time(tmp_path: Path) -> None:
    body = "for number in range(40): store.add(incident(sys.argv[1]))\nprint(store.problem, len(store._waiting))"
    writers = [_program(body, tmp_path) for _ in range(4)]
    for one in writers:
        output, _ = one.communicate(timeout=90)
        assert output == "None 0\n"
    assert len(IncidentStore(tmp_path).list()) == 160
    assert len(list((tmp_path / "incidents").iterdir())) == 160


def test_threads_of_one_host_write_at_the_same_time(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    threads = [threading.Thread(target=lambda: [store.add(_incident()) for _ in range(10)]) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(store.list()) == 40
    assert store.problem is None


def test_a_host_that_is_killed_while_it_writes_leaves_whole_incidents(tmp_path: Path) -> None:
    for _ in range(5):
        with _program("print('go', flush=True)\nwhile True: store.add(incident('x'))", tmp_path) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.1)
            process.send_signal(signal.SIGKILL)
    store = IncidentStore(tmp_path)
    found = store.read()
    assert found
    for one in found:
        assert from_json((tmp_path / "incidents" / f"{one.id}.json").read_text("utf-8")) == one
    store.add(_incident("after"))
    assert (_models(store)[0], store.problem) == ("after", None)


def test_a_full_disk_is_no_error_of_the_server_and_what_waited_is_written_when_there_is_room(tmp_path: Path) -> None:
    body = """
import resource
store.add(incident("before"))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
store.open()
for name in ("one", "two"): store.add(incident(name))
print([one.model for one in store.list()], bool(store.problem))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
store.add(incident("after"))
print([one.model for one in store.list()], store.problem)
"""
    full, room = _output(body, tmp_path).splitlines()
    assert full == "['two', 'one', 'before'] True"
    assert room == "['after', 'two', 'one', 'before'] None"
    assert len(list((tmp_path / "incidents").iterdir())) == 4


def _file_as_folder(folder: Path) -> None:
    folder.write_text("no folder")


def _folder_as_database(folder: Path) -> None:
    (folder / "incidents.db").mkdir(parents=True)


def _file_as_folder_of_files(folder: Path) -> None:
    folder.mkdir()
    (folder / "incidents").write_text("no folder")


def _garbage(folder: Path) -> None:
    folder.mkdir()
    (folder / "incidents.db").write_bytes(b"nothing that SQLite would know" * 500)


def _damaged(folder: Path) -> None:
    """The first page is whole, and the rest is not."""
    store = IncidentStore(folder)
    for _ in range(20):
        store.add(_incident(evidence={"x": "y" * 3000}))
    path = folder / "incidents.db"
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 60_000)


@pytest.mark.parametrize("broken", [_file_as_folder, _folder_as_database, _file_as_folder_of_files, _garbage, _damaged])
def test_a_store_that_cannot_be_written_says_so_once_and_keeps_incidents_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: object
) -> None:
    folder = tmp_path / "data"
    broken(folder)  # type: ignore[operator]
    caplog.clear()
    store = IncidentStore(folder)
    store.open()
    for number in range(IN_MEMORY + 20):
        store.add(_incident(str(number)))
    assert _models(store)[:2] == [str(IN_MEMORY + 19), str(IN_MEMORY + 18)]
    assert len(_models(store)) <= IN_MEMORY
    assert store.problem
    assert str(folder / "incidents") in store.problem
    assert any(step in store.problem for step in ("Move incidents.db", "choose another with data_dir"))
    assert sum(record.levelno >= logging.ERROR for record in caplog.records) == 1
    store.close()

    shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    store.add(_incident("mended"))
    assert store.problem is None
    assert len(IncidentStore(folder).read()) == IN_MEMORY + 1


@pytest.mark.parametrize("broken", [_folder_as_database, _garbage, _damaged])
def test_who_reads_a_broken_store_is_told_what_to_do(tmp_path: Path, broken: object) -> None:
    broken(tmp_path / "data")  # type: ignore[operator]
    with pytest.raises(SettingsError, match=r"Move incidents\.db|data_dir"):
        IncidentStore(tmp_path / "data").read()


def test_a_row_that_is_no_incident_is_damage(tmp_path: Path) -> None:
    IncidentStore(tmp_path).add(_incident())
    with sqlite3.connect(tmp_path / "incidents.db") as db:
        db.execute("UPDATE incidents SET body = '{}'")
    db.close()
    with pytest.raises(SettingsError, match="is damaged"):
        IncidentStore(tmp_path).read()


def test_a_store_of_a_newer_version_is_never_touched(tmp_path: Path) -> None:
    IncidentStore(tmp_path).add(_incident("old"))
    with sqlite3.connect(tmp_path / "incidents.db") as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = _all_bytes(tmp_path)
    store = IncidentStore(tmp_path)
    store.open()
    store.add(_incident("new"))
    assert _models(store) == ["new"]
    assert store.problem
    assert "newer Stentor" in store.problem
    assert "Update Stentor" in store.problem
    with pytest.raises(SettingsError, match="newer Stentor"):
        store.read()
    store.close()
    assert _all_bytes(tmp_path) == before


def test_the_file_states_its_version_and_its_mode(tmp_path: Path) -> None:
    IncidentStore(tmp_path).open()
    with sqlite3.connect(tmp_path / "incidents.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_another_who_holds_the_file_is_waited_for_two_seconds_and_not_longer(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    store.add(_incident("first"))
    holder = sqlite3.connect(tmp_path / "incidents.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    store.add(_incident("second"))
    assert 1.5 < time.monotonic() - start < 4
    assert store.problem
    assert "locked" in store.problem
    assert _models(store) == ["second", "first"]
    holder.execute("ROLLBACK")
    holder.close()
    store.close()
    assert _models(IncidentStore(tmp_path)) == ["second", "first"]


@pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0,
    reason="a read-only mount needs a namespace of its own, which this system does not give",
)
def test_a_store_on_a_read_only_disk_can_be_read_and_what_comes_is_kept_in_memory(tmp_path: Path) -> None:
    IncidentStore(tmp_path).add(_incident("old"))
    body = "store.add(incident('new'))\nprint([one.model for one in store.list()], store.problem)"
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-rm", "sh", "-ec", mount, "sh", str(tmp_path), sys.executable, PROGRAM + body]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env={**os.environ})
    assert done.stdout.startswith("['new', 'old'] "), done.stderr
    assert "data_dir" in done.stdout
