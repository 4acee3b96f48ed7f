"""The README is executed: a newcomer's first commands must do what it says."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Server, environment
from tests.server.test_speech import probed_seconds

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def _aimed_at(server: Server, code: str) -> str:
    assert "localhost:8300" in code
    return code.replace("localhost:8300", f"localhost:{server.port}")


def test_the_curl_example_writes_speech(bundled: Server, tmp_path: Path) -> None:
    script = next(block for block in blocks("sh") if "curl" in block and "audio/speech" in block)
    subprocess.run(["bash", "-ec", _aimed_at(bundled, script)], cwd=tmp_path, check=True, capture_output=True)
    written = list(tmp_path.glob("*.mp3"))
    assert len(written) == 1
    assert probed_seconds(written[0].read_bytes()) > 1


def test_the_openai_example_speaks_and_understands_itself(bundled: Server, tmp_path: Path) -> None:
    code = _aimed_at(bundled, next(block for block in blocks("python") if "openai" in block))
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert re.search("hello|machine", done.stdout.lower()), done.stdout  # no seed: a word may be misheard


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_two_commands_are_targets_of_the_makefile(target: str) -> None:
    assert f"make {target}" in README
    listed = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout or listed.stderr == ""


def test_the_demo_speaks_understands_itself_and_leaves_nothing_running(tmp_path: Path) -> None:
    recipe = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "-m bench.demo" in recipe
    settings = {**environment(), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    argv = [sys.executable, "-m", "bench.demo"]
    done = subprocess.run(argv, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "word error rate    0.0" in done.stdout
    assert probed_seconds((tmp_path / "demo.wav").read_bytes()) > 3
    address = re.search(r"http://127\.0\.0\.1:(\d+)", done.stdout)
    assert address
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(address.group(1))), timeout=5)


def test_every_file_the_readme_points_to_exists() -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / link).exists(), link
