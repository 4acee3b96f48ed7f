"""The child's start and its three threads: reader, driver (the main thread), writer.

stdout carries the protocol alone. The real one is taken away before any heavy import, so that a library that prints
writes to stderr instead of into the protocol (the ASR child of the second seed broke on one print).
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import logging
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import BinaryIO

from .. import catalog, platform
from ..engines.base import Engine, Launch, report, unexpected
from ..errors import LoadFailed, OutOfMemory, ProtocolError, StentorError
from ..journal import StatusPage
from ..protocol import (
    MAX_LINE,
    FromSidecar,
    Loading,
    Ping,
    Pong,
    Shutdown,
    ToSidecar,
    decode_request,
    encode,
    request_id,
)
from . import faults
from .driver import Driver, EndOfInput, Inbox, Outbox

log = logging.getLogger(__name__)

OUTBOX_MESSAGES = 64  # then the driver waits for the host: audio of a few seconds, never all of a book
LEAVE_AFTER_S = 1.5  # after stdin ends the host is gone; a loop that is stuck is not waited for


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    stdout = take_stdout()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    platform.die_with_parent(arguments.parent)
    outbox: Outbox = queue.Queue(OUTBOX_MESSAGES)
    writer = threading.Thread(target=write_loop, args=(stdout, outbox), name="writer", daemon=True)
    writer.start()
    code = serve(arguments, outbox, stdout.fileno())
    outbox.put(None)  # type: ignore[arg-type]  # the writer's end, behind the last message
    writer.join(LEAVE_AFTER_S)
    sys.stderr.flush()
    os._exit(code)  # the reader may sit in a read for ever, and a device library's exit handlers may hang


def serve(arguments: argparse.Namespace, outbox: Outbox, stdout: int) -> int:
    """Load the engine, then drive it until `shutdown`. The exit code says whether it ever could serve."""
    inbox: Inbox = queue.SimpleQueue()
    threading.Thread(
        target=read_loop, args=(sys.stdin.buffer, inbox, outbox, arguments.parent), name="reader", daemon=True
    ).start()
    page = StatusPage.open(arguments.status) if arguments.status else StatusPage.anonymous()
    folder = arguments.status and arguments.status.parent
    show_stacks_when_asked(arguments.status)
    try:
        engine = load(arguments, outbox)
    except StentorError as error:
        outbox.put(report(error))
        return 1
    except Exception as error:
        log.exception("load failed")
        outbox.put(report(LoadFailed(f"{arguments.engine} did not load: {unexpected(error).detail}")))
        return 1
    outbox.put(engine.hello)
    try:
        Driver(faults.Faulty(engine, stdout, folder) if arguments.drills else engine, inbox, outbox, page).run()
    except OutOfMemory as error:
        outbox.put(report(error))
        return 1
    return 0


def show_stacks_when_asked(status: Path | None) -> None:
    """On SIGUSR1, and at a crash, every thread's Python stack is written by a handler in C.

    It needs no GIL and no loop: the loop may be stuck in a driver. (DESIGN.md 7 arms `dump_traceback_later` in the loop
    instead: that starts a thread for each frame, and its time is not the watchdog's.)
    """
    faulthandler.enable()
    if sys.platform != "win32":  # alone: mypy follows it only where nothing else is asked
        if status is not None:
            file = Path(f"{status}.stacks").open("w")  # noqa: SIM115 open as long as the process
            faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)


def load(arguments: argparse.Namespace, outbox: Outbox) -> Engine:
    """The engine that was asked for. Raises LoadFailed that names the package to install."""

    def progress(stage: str, fraction: float) -> None:
        outbox.put(Loading(stage=stage, fraction=fraction))

    entry = catalog.ENGINES.get(arguments.engine)
    module, _, name = (entry.path if entry else arguments.engine).partition(":")
    if not name:
        raise LoadFailed(
            f"unknown engine {arguments.engine!r}: use one of {', '.join(catalog.ENGINES)} or module:Class"
        )
    launch = Launch(
        arguments.model or arguments.engine, arguments.path, arguments.device, arguments.slots, arguments.options
    )
    if arguments.drills:
        faults.fail_load_if_asked(arguments.status and arguments.status.parent)
    try:
        factory = getattr(importlib.import_module(module), name)
        engine: Engine = factory(launch, progress)
    except ImportError as error:
        needs = f"; run: pip install '{entry.needs}'" if entry else ""
        raise LoadFailed(f"the engine {arguments.engine} cannot be imported ({error}){needs}") from error
    if engine.hello.kind != arguments.kind:
        raise LoadFailed(f"{arguments.engine} is a {engine.hello.kind} engine, not {arguments.kind}")
    return engine


def read_loop(stdin: BinaryIO, inbox: Inbox, outbox: Outbox, parent: int | None) -> None:
    """Lines to messages until stdin ends: the host is gone, or a person's pipe has said all."""
    while line := stdin.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            _skip_rest_of_line(stdin, line)
            outbox.put(report(ProtocolError(f"a line over {MAX_LINE} bytes was skipped: {line[:80]!r}…")))
        elif line.strip():
            _receive(line, inbox, outbox)
    if parent is None:
        inbox.put(EndOfInput())
        return
    inbox.put(Shutdown())
    threading.Timer(LEAVE_AFTER_S, os._exit, (0,)).start()


def _receive(line: bytes, inbox: Inbox, outbox: Outbox) -> None:
    try:
        message: ToSidecar = decode_request(line)
    except ProtocolError as error:
        outbox.put(report(error, request_id(line)))
        return
    if isinstance(message, Ping):  # answered here: it says that the process reads, not that the loop lives
        outbox.put(Pong())
    else:
        inbox.put(message)


def _skip_rest_of_line(stdin: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stdin.readline(MAX_LINE)


def write_loop(stdout: BinaryIO, outbox: Outbox) -> None:
    """Messages to lines until the end mark. A host that closed the pipe is gone, and so are we."""
    while (message := outbox.get()) is not None:
        try:
            stdout.write(_line(message))
            stdout.flush()
        except BrokenPipeError:
            os._exit(0)


def _line(message: FromSidecar) -> bytes:
    try:
        return encode(message)
    except ProtocolError as error:
        return encode(report(error, getattr(message, "id", None)))


def take_stdout() -> BinaryIO:
    """The protocol's own stdout; everyone else's `print` and C-level output goes to stderr from here on."""
    real = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return real


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stentor sidecar",
        description="One engine with one model, driven by protocol v1 on stdin and stdout (docs/protocol.md).",
    )
    parser.add_argument("kind", choices=["tts", "stt"])
    parser.add_argument("--engine", required=True, help=f"{', '.join(catalog.ENGINES)}, or module:Class")
    parser.add_argument("--model", help="the id to be known by (default: the engine's name)")
    parser.add_argument("--path", help="the model's folder, where the engine has no bundled one")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:0, mps (default: cpu)")
    parser.add_argument("--slots", type=int, help="utterances at a time")
    parser.add_argument("--options", type=json.loads, default={}, help="engine options as JSON")
    parser.add_argument("--status", type=Path, help="the status page the host made")
    parser.add_argument("--drills", action="store_true", help="obey the faults that requests ask for")
    parser.add_argument("--parent", type=int, help="the host's process id: die with it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
