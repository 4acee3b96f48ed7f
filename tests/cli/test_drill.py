"""`stentor drill`: a server of its own is broken, and the verdict can be no."""

from __future__ import annotations

import json

from tests.cli.command import run


def test_a_drill_that_is_survived_says_so_and_exits_0() -> None:
    done = run("drill", "exit", "stdout-noise")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(row[0], row[4], row[5]) for row in rows] == [("exit@2", "yes", "ok"), ("stdout-noise@2", "yes", "ok")]
    assert rows[0][2] == "at once"
    assert rows[1][2] == "nothing to detect"
    assert "pause: median" in done.stderr


def test_a_drill_that_is_not_survived_exits_1() -> None:
    """With one attempt, a process that dies takes its request along."""
    done = run("drill", "abort", "--json", "--attempts", "1")
    assert done.returncode == 1
    [outcome] = json.loads(done.stdout)["drills"]
    assert outcome["ok"] is False
    assert outcome["identical"] is False
    assert outcome["verdict"].startswith("lost")


def test_a_fault_that_does_not_exist_names_those_that_do() -> None:
    done = run("drill", "earthquake")
    assert done.returncode == 2
    assert "hang" in done.stderr
