"""A process that SIGKILL does not end, as one in state D: its device is lost, and nobody waits for it.

Real state D needs a broken driver; here the kill is taken away from the host, which sees the same: a signal was sent,
and the process is still there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from stentor import platform
from stentor.host.resume import persistently
from stentor.host.supervisor import Supervisor
from stentor.platform import RunFolder
from stentor.protocol import Done, FromSidecar, Hello, Synthesize, new_id
from stentor.settings import Settings
from tests.conftest import FAKE, ROOT


class OneWord:
    """The least work there is."""

    def request(self, hello: Hello) -> Synthesize:
        return Synthesize(id=new_id(), text="one HANG" if hello.pid in self.hanging else "one", seed=1)

    def check(self, message: FromSidecar) -> None:
        return

    def __init__(self) -> None:
        self.hanging: set[int] = set()


def test_a_lost_device_is_not_waited_for_and_the_next_rung_speaks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    immortal: set[int] = set()
    real_kill = platform.kill
    monkeypatch.setattr(platform, "kill", lambda pid: None if pid in immortal else real_kill(pid))
    try:
        kinds, rung, seconds = asyncio.run(_speak_on_a_device_that_is_lost(immortal, tmp_path))
    finally:
        for pid in immortal:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert kinds == ["lost"]
    assert rung == "cpu"
    assert seconds < 15


async def _speak_on_a_device_that_is_lost(immortal: set[int], data: Path) -> tuple[list[str], str, float]:
    rungs = [{"name": "gpu", "device": "cuda:0"}, {"name": "cpu"}]
    models: Any = {"fake": {**FAKE, "slots": 1, "rungs": rungs}}
    settings = Settings(
        models=models, speech_model="fake", preload=False, frame_timeout=1.0, data_dir=str(data / "incidents")
    )
    with RunFolder() as folder:
        supervisor = Supervisor(settings, folder)
        supervisor.watch()
        service, work = supervisor.services["fake"], OneWord()
        hello = await service.ready()
        work.hanging.add(hello.pid)
        immortal.add(hello.pid)
        began = time.monotonic()
        messages = [one async for one in persistently(service, work)]
        seconds = time.monotonic() - began
        assert isinstance(messages[-1], Done)
        rung = service.primary.rung.profile.name
        await supervisor.close()
        return [one.kind for one in supervisor.store.read()], rung, seconds
