"""Probes with real children: one that passes, and those that fail, hang, die, lie, or never start."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from stentor.machine.probe import KEPT, ProbeResult, probe
from stentor.machine.profile import Profile

CPU = Profile("cpu")
ENOUGH = 60.0

HELPERS = """
import json, os, signal, subprocess, sys, time
def say(**facts): print(json.dumps(facts), flush=True)
def begin(step): say(step=step, begin=True)
def passed(step): say(step=step, ok=True, seconds=0.1, detail="fine")
"""


def run(program: str, deadline: float = ENOUGH, profile: Profile = CPU) -> ProbeResult:
    return asyncio.run(probe(profile, deadline, [sys.executable, "-c", HELPERS + program]))


def test_the_compute_probe_passes_on_this_cpu() -> None:
    result = asyncio.run(probe(CPU, ENOUGH))
    assert result.ok, result.why
    assert result.step == "fp32 matmul"
    assert result.lines[-1]["ok"] is True
    assert "of the CPU" in result.lines[-1]["detail"]
    assert result.matches == ()


def test_a_child_that_hangs_is_killed_at_the_deadline_and_its_step_named() -> None:
    result = run("begin('one'); passed('one'); begin('two'); say(pid=os.getpid(), step='two'); time.sleep(600)", 1.5)
    assert not result.ok
    assert result.step == "two"
    assert result.why == "the step 'two' did not end within 1.5 s"
    assert 1.5 <= result.seconds < 30
    assert not psutil.pid_exists(result.lines[-1]["pid"])


def test_what_the_child_started_is_killed_with_it() -> None:
    result = run("begin('x'); say(pid=subprocess.Popen(['sleep', '600']).pid); time.sleep(600)", 1.5)
    end = time.monotonic() + 10
    pid = result.lines[-1]["pid"]
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_child_that_crashes_is_a_result_that_names_step_and_signal() -> None:
    result = run("begin('fp32 matmul'); os.kill(os.getpid(), signal.SIGSEGV); time.sleep(600)")
    assert not result.ok
    assert result.step == "fp32 matmul"
    assert "'fp32 matmul' ended the process with signal 11" in result.why


def test_a_message_of_the_runtime_is_known_and_says_what_to_do() -> None:
    text = "Memory access fault by GPU node-1 (Agent handle: 0x1) on address 0x7f00. Reason: Page not present."
    result = run(f"begin('allocate'); print('noise', file=sys.stderr); print({text!r}, file=sys.stderr); os._exit(134)")
    assert [(one.signature.kind, one.line) for one in result.matches] == [("page fault", text)]
    assert "page fault" in result.why
    assert "stentor doctor" in result.why


def test_a_step_that_says_it_failed_is_believed_and_quoted() -> None:
    result = run("begin('bf16 matmul'); say(step='bf16 matmul', ok=False, detail='differs'); sys.exit(1)")
    assert not result.ok
    assert result.why == "the step 'bf16 matmul' failed: differs"


@pytest.mark.parametrize("program", ["pass", "begin('one')", "begin('one'); passed('one'); begin('two'); os._exit(0)"])
def test_a_child_that_leaves_in_the_middle_has_not_passed_even_with_exit_code_0(program: str) -> None:
    result = run(program)
    assert not result.ok
    assert "exit code 0" in result.why


def test_what_a_library_prints_between_the_steps_is_skipped() -> None:
    result = run("begin('one'); print('hello'); print('[1]'); sys.stdout.flush(); passed('one')")
    assert result.ok
    assert len(result.lines) == 2


def test_a_child_that_floods_its_pipes_is_drained_and_only_the_end_is_kept() -> None:
    flood = f"sys.stderr.write(('x' * 99 + chr(10)) * {KEPT // 20}); print('MemoryError', file=sys.stderr)"
    result = run(f"begin('one'); {flood}; passed('one')")
    assert result.ok
    assert [one.line for one in result.matches] == ["MemoryError"]


def test_the_environment_of_the_profile_is_there_before_the_first_line_runs() -> None:
    profile = Profile("gpu", "cuda:0", {"HSA_ENABLE_SDMA": "0"})
    result = run("say(step=os.environ['HSA_ENABLE_SDMA'], ok=True)", profile=profile)
    assert result.step == "0"
    assert "HSA_ENABLE_SDMA" not in os.environ


def test_an_interpreter_that_is_not_there_is_a_result(tmp_path: Path) -> None:
    result = asyncio.run(probe(Profile("gpu", "cuda:0", python=str(tmp_path / "python")), ENOUGH))
    assert not result.ok
    assert "cannot be started" in result.why


@pytest.mark.skipif(sys.platform == "win32", reason="sessions")
def test_the_child_has_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it() -> None:
    assert run("say(step=str(os.getsid(0) == os.getpid()), ok=True)").step == "True"


def test_a_probe_that_is_cancelled_leaves_no_child(tmp_path: Path) -> None:
    mark = tmp_path / "pid"

    async def scenario() -> int:
        program = f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
        task = asyncio.create_task(probe(CPU, ENOUGH, [sys.executable, "-c", HELPERS + program]))
        while not (mark.exists() and mark.read_text()):  # noqa: ASYNC110 another process writes it
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(mark.read_text())

    assert not psutil.pid_exists(asyncio.run(scenario()))
