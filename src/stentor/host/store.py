"""Where incidents lie: one row each in a SQLite file, and one JSON file each beside it.

Owns the file's version, how many incidents are kept, and what becomes of them where nothing can be written: a server
speaks on with a full disk. Several hosts may write at once. Each operation opens the database for itself: incidents are
rare, and a file that was moved away or a disk that has room again needs no restart.

A write may wait for another host (BUSY_S) and for the disk: call it in a thread. Knows nothing of how incidents come
about; what it is given is already without secrets and texts (incidents.scrub).
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from ..errors import InvalidRequest, SettingsError
from .incidents import Incident, as_json, from_json

log = logging.getLogger(__name__)

DATABASE = "incidents.db"
FILES = "incidents"
VERSION = 1
KEPT = 1000
IN_MEMORY = 100  # of those that cannot be written
BUSY_S = 2.0
MAGIC = b"SQLite format 3\0"
UNWRITABLE = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_FULL")
"""Another's folder, or a full disk: a reader cannot make the log that it reads with, and does without."""

SCHEMA = """
CREATE TABLE incidents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    body TEXT NOT NULL
)
"""
PUT = """
INSERT INTO incidents (id, at, body) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET at = excluded.at, body = excluded.body
"""
NEWEST = "SELECT id, body FROM incidents WHERE substr(id, 1, ?) = ? ORDER BY number DESC LIMIT ?"
SURPLUS = "SELECT id FROM incidents ORDER BY number DESC LIMIT -1 OFFSET ?"

Incidents = list[Incident]


class IncidentStore:
    """`open`, `add`, `update`, `list` and `close` never raise: `problem` says what is wrong and what to do next."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / DATABASE
        self._problem: str | None = None
        self._waiting: dict[str, Incident] = {}  # not yet written, the oldest first
        self._lock = threading.Lock()

    @property
    def problem(self) -> str | None:
        """Why incidents cannot be written or read now; None where they can."""
        return self._problem

    def open(self) -> None:
        """Make the store, if there is none, so that a folder that cannot be written is known at start."""
        with self._lock:
            self._flush()

    def add(self, incident: Incident) -> None:
        """Record it; with it, what could not be written before."""
        with self._lock:
            self._waiting[incident.id] = incident
            self._flush()

    def update(self, incident: Incident) -> None:
        """Record what became of it, in the place it has."""
        self.add(incident)

    def list(self, limit: int = KEPT) -> Incidents:
        """The newest first: in the order in which they were recorded, whatever the clock said."""
        try:
            return self.read(limit)
        except SettingsError as error:
            if self._problem is None:
                self._report(error.message)
            with self._lock:
                return [*reversed(self._waiting.values())][:limit]

    def read(self, limit: int = KEPT, prefix: str = "") -> Incidents:
        """As `list`, of ids that begin like this. Raises SettingsError where the store cannot be read."""
        with self._lock:
            waiting = {one.id: one for one in reversed(self._waiting.values()) if one.id.startswith(prefix)}
        stored = _read(self.path, limit, prefix)
        updated = [waiting.pop(one.id, one) for one in stored]
        return [*waiting.values(), *updated][:limit]

    def find(self, prefix: str) -> Incident:
        """The one whose id begins like this. Raises InvalidRequest unless there is just one, SettingsError."""
        found = self.read(2, prefix.lower())
        if not found:
            raise InvalidRequest(f"no incident has an id that begins with {prefix!r}. See: stentor incidents list")
        if len(found) > 1:
            raise InvalidRequest(f"more than one incident has an id that begins with {prefix!r}: write more of it.")
        return found[0]

    def close(self) -> None:
        """The last try to write what could not be written."""
        with self._lock:
            if self._waiting:
                self._flush()

    def _flush(self) -> None:
        try:
            _write(self.path, [*self._waiting.values()])
        except (sqlite3.Error, OSError, SettingsError) as error:
            self._report(_explain(self.path, error))
            for oldest in [*self._waiting][:-IN_MEMORY]:
                del self._waiting[oldest]
        else:
            self._waiting.clear()
            self._report(None)

    def _report(self, problem: str | None) -> None:
        """Each problem is logged once, and its end too."""
        if problem and problem != self._problem:
            log.error("%s Until then the last %d are kept in memory.", problem, IN_MEMORY)
        elif self._problem and not problem:
            log.info("incidents are recorded in %s again", self.path)
        self._problem = problem


def _write(path: Path, incidents: Incidents) -> None:
    """All of them or none. Raises sqlite3.Error, OSError, SettingsError for a newer version."""
    with _writing(path) as db:
        for one in incidents:
            body = as_json(one)
            db.execute(PUT, (one.id, one.at.isoformat(), body))
            _write_file(_file(path, one.id), body)
        surplus = [id for (id,) in db.execute(SURPLUS, (KEPT,))]
        db.executemany("DELETE FROM incidents WHERE id = ?", [(id,) for id in surplus])
    for id in surplus:
        _file(path, id).unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction, which closing without COMMIT takes back."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_known(path, _version_in_header(path))
    with contextlib.closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        _require_known(path, version)
        if version == 0:
            db.execute(SCHEMA)
            db.execute(f"PRAGMA user_version = {VERSION}")
        yield db
        db.execute("COMMIT")


def _read(path: Path, limit: int, prefix: str) -> Incidents:
    """Raises SettingsError that says what to do next. Makes nothing: where there is no store there is no incident."""
    try:
        if not path.exists():
            return []
        _require_known(path, _version_in_header(path))
        try:
            rows = _rows(path, "mode=rw", limit, prefix)
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith(UNWRITABLE):
                raise
            rows = _rows(path, "immutable=1", limit, prefix)
    except (sqlite3.Error, OSError) as error:
        raise SettingsError(_explain(path, error, "read")) from error
    return [_incident(path, id, body) for id, body in rows]


def _rows(path: Path, mode: str, limit: int, prefix: str) -> list[tuple[str, str]]:
    uri = f"{path.resolve().as_uri()}?{mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        _require_known(path, version)
        return db.execute(NEWEST, (len(prefix), prefix, limit)).fetchall() if version else []


def _incident(path: Path, id: str, body: str) -> Incident:
    try:
        return from_json(body)
    except ValueError as error:
        raise SettingsError(f"{path} is damaged: the row {id!r} holds no incident. {_move(path)}") from error


def _version_in_header(path: Path) -> int:
    """As sqlite.org/fileformat2.html has it, so that a newer file is not even opened; 0 where there is none."""
    try:
        with path.open("rb") as file:
            header = file.read(64)
    except FileNotFoundError:
        return 0
    return int.from_bytes(header[60:64], "big") if header.startswith(MAGIC) else 0


def _require_known(path: Path, version: int) -> None:
    if version > VERSION:
        raise SettingsError(
            f"{path} was written by a newer Stentor (version {version} of the file; this one knows {VERSION}). "
            "Update Stentor, or choose another folder with data_dir."
        )


def _write_file(path: Path, body: str) -> None:
    """Whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(f"{body}\n", encoding="utf-8", newline="\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _file(path: Path, id: str) -> Path:
    return path.parent / FILES / f"{id}.json"


def _explain(path: Path, error: sqlite3.Error | OSError | SettingsError, what: str = "written") -> str:
    if isinstance(error, SettingsError):
        return error.message
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return f"{path} is damaged ({error}). {_move(path)}"
    reason = error.strerror if isinstance(error, OSError) else str(error)
    next_step = "Free some space, fix the rights of the folder, or choose another with data_dir."
    return f"{path} cannot be {what}: {reason}. {next_step}"


def _move(path: Path) -> str:
    return f"Move {path.name} and the files beside it whose names begin so away; Stentor makes new ones."
