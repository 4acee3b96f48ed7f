"""What an incident holds of a process that hung: enough to say where, and honest about what could not be read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stentor.host.store import IncidentStore
from tests.conftest import serving, until

SECRET = "A sentence that nobody else may ever read in a report"


@pytest.mark.parametrize(
    ("fault", "stacks"), [("hang@1", "_hang"), ("spin@1", "_spin"), ("stop@1", "not readable"), ("crash@1", "_crash")]
)
def test_the_incident_shows_where_every_thread_stood_and_no_text_of_the_user(
    fault: str, stacks: str, tmp_path: Path
) -> None:
    with serving(drills="true", frame_timeout=1.0, data_dir=str(tmp_path), api_keys="sk-geheim") as server:
        began = time.monotonic()
        text = f"First. {SECRET}. Third. Fourth."
        answer = server.speak(text, fault=fault, headers={"authorization": "Bearer sk-geheim"})
        assert answer.status_code == 200
        assert time.monotonic() - began < 30
        store = IncidentStore(tmp_path)
        [incident] = until(lambda: store.read() if (tmp_path / "incidents.db").exists() else [], "it is recorded")
    if fault.startswith("crash"):
        assert any(stacks in line for line in incident.evidence["stderr"])
        assert any("[crash]" in line for line in incident.evidence["signatures"])
    else:
        assert stacks in str(incident.evidence["stacks"])
        assert any("state" in line for line in incident.evidence["threads"])
        assert 1.0 < incident.waited_s < 3.0
    assert incident.evidence["kernel_log"] is not None
    kept = "".join(one.read_text("utf-8") for one in tmp_path.rglob("*.json"))
    assert SECRET[:20] not in kept
    assert "geheim" not in kept
