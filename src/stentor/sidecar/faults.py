"""Deliberate faults by name, at a frame of one request: how recovery is proved on a user's own machine (DESIGN.md 8).

Off unless the sidecar was started with --drills. A request asks for one as `options.fault`, NAME[:VALUE][@FRAME], as in
"hang@3" or "slow:10@0". Knows no engine: it stands around any of them.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ..engines.base import Engine, Feed, Request
from ..errors import InvalidRequest, LoadFailed
from ..protocol import Audio, FromSidecar, Text

_SPELLING = re.compile(r"(?P<name>[a-z-]+)(:(?P<value>[0-9.]+))?(@(?P<frame>\d+))?")
LOAD_FAIL = "the-next-load-fails"


@dataclass(slots=True)
class Fault:
    """One fault, due when `frame` frames of its request have been sent."""

    name: str
    value: float
    frame: int
    frames: int = 0

    @classmethod
    def parse(cls, text: object) -> Fault:
        """Raises InvalidRequest that lists the names."""
        found = _SPELLING.fullmatch(str(text))
        if not found or found["name"] not in (*FAULTS, "slow", "lossy"):
            names = ", ".join((*FAULTS, "slow:N", "lossy:P"))
            raise InvalidRequest(f"no fault {text!r}; write NAME@FRAME with one of: {names}", param="fault")
        return cls(found["name"], float(found["value"] or 0), int(found["frame"] or 0))


class Faulty:
    """An engine in which the faults that its requests ask for happen."""

    def __init__(self, engine: Engine, stdout: int, folder: Path | None) -> None:
        self.hello = engine.hello
        self._engine = engine
        self._place = Place(stdout, folder)
        self._armed: dict[str, Fault] = {}
        self._lossy: Any = None

    @property
    def phase(self) -> str:
        return self._engine.phase

    def submit(self, request: Request) -> None:
        fault = request.options.pop("fault", None)
        self._engine.submit(request)
        if fault is not None:
            self._armed[request.id] = Fault.parse(fault)

    def feed(self, message: Feed) -> None:
        self._engine.feed(message)

    def advance(self) -> list[FromSidecar]:
        started = time.perf_counter()
        messages = self._advance_lossily()
        took = time.perf_counter() - started
        for request_id in {one.id for one in messages if isinstance(one, Audio | Text)}:
            if fault := self._armed.get(request_id):
                self._happen(fault, took)
        return messages

    def cancel(self, request_id: str) -> None:
        self._armed.pop(request_id, None)
        self._engine.cancel(request_id)

    def close(self) -> None:
        self._engine.close()

    def _advance_lossily(self) -> list[FromSidecar]:
        lossy = next((one for one in self._armed.values() if one.name == "lossy"), None)
        if lossy is None:
            return self._engine.advance()
        if self._lossy is None:
            from .lossy import Lossy  # needs torch, as the engine under it does

            self._lossy = Lossy(lossy.value, on_loss="hang")
        with self._lossy:  # one for all of its frames: another would draw the same losses again
            return self._engine.advance()

    def _happen(self, fault: Fault, took: float) -> None:
        due = fault.frames >= fault.frame
        if due and fault.name == "slow":
            time.sleep(took * max(0.0, fault.value - 1))
        elif fault.frames == fault.frame and fault.name in FAULTS:
            FAULTS[fault.name](self._place)
        fault.frames += 1


@dataclass(frozen=True, slots=True)
class Place:
    """What a fault may damage: the real stdout, and the run's folder."""

    stdout: int
    folder: Path | None


def fail_load_if_asked(folder: Path | None) -> None:
    """Raises LoadFailed once, where the process before asked for it."""
    mark = folder / LOAD_FAIL if folder else None
    if mark and mark.exists():
        mark.unlink()
        raise LoadFailed("a drill made this load fail")


def _hang(_: Place) -> None:
    """Waits in C with the GIL released, as a thread does whose completion signal is lost."""
    if sys.platform == "win32":
        threading.Event().wait()
    while True:
        ctypes.CDLL(None).pause()


def _spin(_: Place) -> None:
    while True:
        continue


def _stop(_: Place) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)  # type: ignore[attr-defined, unused-ignore]


def _kill(_: Place) -> None:
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))  # as the kernel does that is out of memory


def _crash(_: Place) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _abort(_: Place) -> None:
    os.abort()


def _exit(_: Place) -> NoReturn:
    os._exit(7)


def _noise(place: Place) -> None:
    """What a C library prints on a stdout that it does not know to be a protocol."""
    for line in (b"Warning: a library says hello\n", b"\xff\xfe not even text\n", b"{}\n"):
        os.write(place.stdout, line)


def _half_line(place: Place) -> NoReturn:
    os.write(place.stdout, b'{"type":"audio","id":"')
    os._exit(7)


def _blocked_pipe(place: Place) -> None:
    """The writer writes into a pipe that nobody reads; the real one stays open, or the host would see its end."""
    os.dup(place.stdout)
    _, full = os.pipe()
    os.dup2(full, place.stdout)


def _out_of_memory(_: Place) -> NoReturn:
    raise MemoryError("a drill")


def _load_fail(place: Place) -> None:
    """Dies, and so does the load of the next process."""
    if place.folder:
        (place.folder / LOAD_FAIL).touch()
    os.kill(os.getpid(), signal.SIGABRT)


FAULTS: dict[str, Callable[[Place], None]] = {
    "hang": _hang,
    "spin": _spin,
    "stop": _stop,
    "kill": _kill,
    "crash": _crash,
    "abort": _abort,
    "exit": _exit,
    "stdout-noise": _noise,
    "half-line": _half_line,
    "blocked-pipe": _blocked_pipe,
    "oom": _out_of_memory,
    "load-fail": _load_fail,
}
"""By name; beside them `slow:N` (every unit takes N times as long) and `lossy:P` (device reads get lost)."""
