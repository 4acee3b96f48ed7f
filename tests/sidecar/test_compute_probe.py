"""The compute probe's own body: what each step says, and that a wrong number is never believed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from stentor.machine.tables import matches
from stentor.sidecar.probes import compute


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_on_a_cpu_it_computes_once_and_is_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert compute.main(["--device", "cpu"]) == 0
    begin, end = said(capsys)
    assert begin == {"step": "fp32 matmul", "begin": True}
    assert end["step"] == "fp32 matmul"
    assert end["ok"] is True
    assert end["seconds"] >= 0


def test_on_a_cpu_torch_is_not_imported() -> None:
    program = (
        "import sys; from stentor.sidecar.probes import compute; compute.main([]); "
        "sys.exit(any(one.split('.')[0] in ('torch', 'onnxruntime') for one in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=False).returncode == 0


def test_the_first_step_that_fails_is_the_last_one_begun(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as where it is not installed
    assert compute.main(["--device", "cuda:0"]) == 1
    begin, end = said(capsys)
    assert begin == {"step": "import torch", "begin": True}
    assert end["ok"] is False
    assert "torch" in end["detail"]


@pytest.mark.parametrize("wrong", [1.05, np.nan, np.inf, 0.0])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_device_that_computes_nonsense_is_found(dtype: str, wrong: float) -> None:
    right = np.arange(1.0, 10.0)
    seen = right.copy()
    seen[-1] *= wrong
    with pytest.raises(AssertionError, match="differs from the CPU"):
        compute.compare(seen, right, dtype)
    assert compute.compare(right, right, dtype) == "within 0 of the CPU"


def test_an_error_of_the_device_is_one_short_line_and_its_whole_text_is_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def body() -> str:
        raise RuntimeError("HIP error: invalid device function\n" + "for debugging consider " * 100)

    assert compute.run("fp32 matmul", body) is False
    written = capsys.readouterr()
    assert json.loads(written.out.splitlines()[-1])["detail"] == "RuntimeError: HIP error: invalid device function"
    assert {one.signature.kind for one in matches(written.err.splitlines(), "stderr")} == {"wrong target"}


def test_the_steps_for_torch_pass_where_torch_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert all(compute.run(*step) for step in compute.torch_steps("cpu"))
    ends = [one for one in said(capsys) if "ok" in one]
    assert [one["step"] for one in ends] == ["import torch", "allocate", "fp32 matmul", "bf16 matmul"]
    assert ends[0]["detail"].startswith("torch ")


def test_a_device_that_torch_does_not_have_fails_at_its_allocation(capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    assert compute.main(["--device", "cuda:0"]) == 1
    assert said(capsys)[-1]["step"] == "allocate"
