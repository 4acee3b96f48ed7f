"""One child's pipes, with a child that is no sidecar at all."""

from __future__ import annotations

import asyncio
import sys

import pytest

from stentor.errors import ProtocolError
from stentor.host.process import STDERR_LINES, SidecarProcess
from stentor.protocol import MAX_LINE, FromSidecar, Pong

PONG = '{"type":"pong"}'


def _run(program: str) -> tuple[list[FromSidecar], SidecarProcess, int]:
    async def scenario() -> tuple[list[FromSidecar], SidecarProcess, int]:
        process = await SidecarProcess.spawn([sys.executable, "-c", program])
        try:
            messages = [message async for message in process.messages()]
        finally:
            process.kill()
            code = await process.ended()
        return messages, process, code

    return asyncio.run(scenario())


def test_noise_on_stdout_is_counted_and_the_messages_between_are_heard() -> None:
    lines = ["hello", PONG, "{}", PONG, "half a line"]
    messages, process, code = _run(f"print({chr(10).join(lines)!r}, end='')")
    assert messages == [Pong(), Pong()]
    assert process.noise == 3
    assert code in (0, -9)  # it may be killed before it has ended by itself


def test_stderr_is_always_read_and_its_last_lines_are_kept() -> None:
    code = "import sys\nfor number in range(100_000): print('line', number, file=sys.stderr)"
    _, process, _ = _run(code)
    assert len(process.last_words) == STDERR_LINES
    assert process.last_words[-1] == "line 99999"


def test_a_line_without_an_end_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="over"):
        _run(f"import sys\nsys.stdout.write('x' * {MAX_LINE + 100})\nsys.stdout.flush()\nimport time\ntime.sleep(60)")


def test_a_child_that_ignores_everything_is_gone_after_stop() -> None:
    async def scenario() -> int | None:
        deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
        code = f"import signal, time\n{deaf}\nprint('{PONG}', flush=True)\ntime.sleep(600)"
        process = await SidecarProcess.spawn([sys.executable, "-c", code])
        messages = process.messages()
        assert await anext(messages) == Pong()
        stopping = asyncio.create_task(process.stop())
        assert [message async for message in messages] == []
        await stopping
        await process.ended()
        return process.returncode

    assert asyncio.run(scenario()) == -9
