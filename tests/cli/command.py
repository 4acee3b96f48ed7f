"""`stentor` as a person runs it: in a pipe, on a terminal of some width, and interrupted half way."""

from __future__ import annotations

import codecs
import contextlib
import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import environment

STENTOR = [sys.executable, "-m", "stentor"]
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def run(*arguments: str, stdin: str = "", **settings: object) -> subprocess.CompletedProcess[str]:
    return run_with({}, *arguments, stdin=stdin, **settings)


def run_with(
    variables: dict[str, str], *arguments: str, stdin: str = "", **settings: object
) -> subprocess.CompletedProcess[str]:
    """With these environment variables, which are no settings."""
    env = {**environment(**settings), **variables}
    return subprocess.run(
        [*STENTOR, *arguments], env=env, input=stdin, capture_output=True, encoding="utf-8", timeout=90
    )


def binary(*arguments: str, stdin: bytes = b"", **settings: object) -> subprocess.CompletedProcess[bytes]:
    argv = [*STENTOR, *arguments]
    return subprocess.run(argv, env=environment(**settings), input=stdin, capture_output=True, timeout=90)


@contextlib.contextmanager
def started(
    *arguments: str, variables: dict[str, str] | None = None, **settings: object
) -> Iterator[subprocess.Popen[bytes]]:
    """A command that is still running; killed at the end if the test has not ended it."""
    env = {**environment(**settings), **(variables or {})}
    process = subprocess.Popen([*STENTOR, *arguments], env=env, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class Terminal:
    """What a command writes to a terminal, as it writes it."""

    def __init__(self, *arguments: str, columns: int = 80, variables: dict[str, str] | None = None, **settings: object):
        self._mine, theirs = pty.openpty()
        env = {**environment(**settings), "TERM": "xterm-256color", "COLUMNS": str(columns), **(variables or {})}
        argv = [*STENTOR, *arguments]
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end inside a character
        self.raw = ""

    @property
    def text(self) -> str:
        return STYLES.sub("", self.raw)

    def until(self, pattern: str, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end, f"{pattern!r} never appeared in {self.text!r}"
            assert self._read(), f"the command ended without {pattern!r}: {self.text!r}"
        return found.group()

    def rest(self) -> str:
        while self._read():
            continue
        self.process.wait(30)
        return self.text

    def _read(self) -> bool:
        if not select.select([self._mine], [], [], 60)[0]:
            return False
        try:
            data = os.read(self._mine, 65536)
        except OSError:  # Linux' way to say that the other end is closed
            return False
        self.raw += self._decoder.decode(data)
        return bool(data)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)


def terminal(*arguments: str, columns: int = 80, variables: dict[str, str] | None = None, **settings: object) -> str:
    """All that a command shows on a terminal of this width."""
    with contextlib.closing(Terminal(*arguments, columns=columns, variables=variables, **settings)) as shown:
        return shown.rest()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def fake_player(folder: Path, script: str, name: str = "aplay") -> dict[str, str]:
    """The variables with which this script is the only player there is."""
    folder.mkdir(exist_ok=True)
    player = folder / name
    player.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n", encoding="utf-8")
    player.chmod(0o755)
    return {"PATH": str(folder)}
