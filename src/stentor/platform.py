"""All that differs by operating system: where shared memory lives, how a child is spawned, how it is made to die.

Common ground: the host's half and the child's half of "no orphan ever" stand side by side. Everything else in Stentor
is written as if there were one system; `mypy --platform win32` checks the other branches, which were written from the
vendors' documentation and have not been run yet.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Self

import psutil

from .errors import SettingsError

PREFIX = "stentor-"
LOCK = "lock"
SHM = Path("/dev/shm")
PR_SET_PDEATHSIG = 1  # prctl(2)


def shared_memory_root() -> Path:
    """A folder whose files are memory where the system has one; elsewhere the temporary folder, mapped."""
    if sys.platform == "linux" and os.access(SHM, os.W_OK):
        return SHM
    return Path(tempfile.gettempdir())


def data_folder(chosen: str = "") -> Path:
    """Where what outlives a run is kept: the folder chosen, or the one that the system has for a user's data."""
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "stentor"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "stentor"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "stentor"


class RunFolder:
    """What one host keeps while it runs: `shared` (status pages, journals) and `spool` (uploads), gone at its end.

    Each folder holds a lock file that is locked as long as its host lives, however it ends. The next host removes the
    folders whose lock it can take: a process id would mean another process in another container.
    """

    def __init__(self) -> None:
        """Raises SettingsError where memory or disk cannot be written: an error at start, not in mid-speech."""
        self._locks: list[IO[bytes]] = []
        _remove_stale()
        try:
            self.shared = self._make(shared_memory_root())
            self.spool = self._make(Path(tempfile.gettempdir()))
        except OSError as error:
            self.close()
            where = error.filename or tempfile.gettempdir()
            raise SettingsError(f"cannot write {where}: {error.strerror}; free some space or fix its rights") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for lock in self._locks:
            shutil.rmtree(Path(lock.name).parent, ignore_errors=True)
            lock.close()

    def _make(self, root: Path) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=root))
        lock = (folder / LOCK).open("wb")
        self._locks.append(lock)
        _try_lock(lock)
        lock.write(b"held by a running Stentor\n" * 4096)  # some room, or a full memory would show in mid-speech
        lock.flush()
        return folder


def _remove_stale() -> None:
    for root in {shared_memory_root(), Path(tempfile.gettempdir())}:
        for lock in root.glob(f"{PREFIX}[0-9]*-*/{LOCK}"):
            with contextlib.suppress(OSError), lock.open("r+b") as file:
                if _try_lock(file) and lock.stat().st_size:  # empty: its host is just making it
                    shutil.rmtree(lock.parent, ignore_errors=True)


def _try_lock(file: IO[bytes]) -> bool:
    """Whether this process now holds the file's lock, which the system drops when the process ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def cut_off_after(listener: socket.socket, seconds: float) -> None:
    """Connections of this socket are dropped when their client takes nothing for so long.

    Closing is not enough: the system keeps a closed connection as long as its client holds the window shut, and each
    would cost a file (tcp(7), TCP_USER_TIMEOUT). Other systems have no such option; theirs end with the process.
    """
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def spawn_options() -> dict[str, Any]:
    """Keyword arguments for subprocess: a child in a session of its own, so that Ctrl-C reaches the host alone."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


def bind_to_host(pid: int) -> None:
    """The host's half: on Windows the child joins a job that ends with us; on Linux it asks for that itself."""
    if sys.platform == "win32":
        _add_to_job(pid)


def die_with_parent(parent: int | None) -> None:
    """The child's half: Linux kills us when the host dies, even while the loop is stuck in C.

    Set in the child, so that the host needs no preexec_fn; getppid closes the window in which the host died before
    the call. Elsewhere the end of stdin does it (sidecar/main.py).
    """
    if sys.platform != "linux" or parent is None:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def kill(pid: int) -> None:
    """SIGKILL to the child's process group, so to what it started too; TerminateProcess on Windows."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        else:
            os.killpg(pid, signal.SIGKILL)


def terminate(pid: int) -> None:
    """The polite end before `kill`: SIGTERM; Windows has none for a process without a window."""
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).terminate()


if sys.platform == "win32":
    from ctypes import wintypes

    # One Job Object with kill-on-close holds every sidecar: when the host ends, however it ends, its last handle is
    # closed and Windows ends every process in the job. Numbers and layouts are the Windows SDK's.
    KILL_ON_JOB_CLOSE = 0x2000
    EXTENDED_LIMIT_INFORMATION = 9
    SET_QUOTA_AND_TERMINATE = 0x0100 | 0x0001

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
            ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("BasicLimitInformation", _BasicLimits),
            ("IoInfo", ctypes.c_ulonglong * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        )

    def _kernel32() -> ctypes.WinDLL:
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.CreateJobObjectW.restype = wintypes.HANDLE
        kernel32.OpenProcess.restype = wintypes.HANDLE
        kernel32.AssignProcessToJobObject.argtypes = [wintypes.HANDLE, wintypes.HANDLE]
        kernel32.CloseHandle.argtypes = [wintypes.HANDLE]
        return kernel32

    @functools.cache
    def _job() -> int:
        kernel32 = _kernel32()
        job: int = kernel32.CreateJobObjectW(None, None)
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = KILL_ON_JOB_CLOSE
        done = kernel32.SetInformationJobObject(
            wintypes.HANDLE(job), EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
        )
        if not done:
            raise ctypes.WinError(ctypes.get_last_error())
        return job

    def _add_to_job(pid: int) -> None:
        """Put a process into the job. Raises OSError where Windows refuses."""
        kernel32 = _kernel32()
        process = kernel32.OpenProcess(SET_QUOTA_AND_TERMINATE, False, pid)
        if not process or not kernel32.AssignProcessToJobObject(_job(), process):
            raise ctypes.WinError(ctypes.get_last_error())
        kernel32.CloseHandle(process)
