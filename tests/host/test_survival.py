"""What the project exists for: a process dies in mid-utterance, and the client hears a pause and no more."""

from __future__ import annotations

import concurrent.futures
import http.server
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import psutil
import pytest

from stentor.host.store import IncidentStore
from tests.conftest import FAKE, Server, environment, serving, until
from tests.fake_engine import FRAME, RATE, tone
from tests.server.test_speech import spoken

SENTENCES = " ".join(f"This is sentence number {number} of a long story." for number in range(30))
FAKE_TEXT = " ".join(["word"] * 40)


def rungs(**gpu: Any) -> dict[str, Any]:
    """The fake engine on a ladder of two: a device that misbehaves as `gpu` says, and one that works."""
    spec = {
        **FAKE,
        "slots": 2,
        "rungs": [
            {"name": "gpu", "device": "cuda:0", "environment": {"FAKE_RUNG": "gpu"}, "options": gpu},
            {"name": "cpu", "environment": {"FAKE_RUNG": "cpu"}},
        ],
    }
    return {"models": {"fake": spec}, "speech_model": "fake", "preload": "false"}


def incidents(folder: Path) -> list[Any]:
    return IncidentStore(folder).read()


def pids(server: Server) -> set[int]:
    return {one.pid for one in server.sidecars()}


@pytest.mark.parametrize("kind", ["pcm", "mp3", "opus"])
@pytest.mark.parametrize("fault", ["kill@3", "hang@3", "half-line@3", "oom@3"])
def test_an_utterance_through_a_fault_has_the_bytes_of_the_undisturbed_one(
    drilled: Server, kind: str, fault: str
) -> None:
    undisturbed = drilled.speak(SENTENCES, response_format=kind)
    disturbed = drilled.speak(SENTENCES, response_format=kind, fault=fault)
    assert disturbed.status_code == 200
    assert disturbed.content == undisturbed.content


@pytest.mark.parametrize("speed", [0.3, 1.7, 3.5])
def test_a_speed_that_a_filter_makes_is_resumed_to_the_sample_too(drilled: Server, speed: float) -> None:
    undisturbed = drilled.speak(SENTENCES, speed=speed)
    assert drilled.speak(SENTENCES, speed=speed, fault="kill@3").content == undisturbed.content


def test_pauses_between_parts_survive_a_fault_in_each_of_them(drilled: Server) -> None:
    text = "One sentence. Two. [pause 0.4s] Three sentences. Four. [pause 1s] Five. And six."
    assert drilled.speak(text, fault="kill@1").content == drilled.speak(text).content


def test_a_transcription_goes_on_behind_what_was_understood(drilled: Server) -> None:
    from stentor.cli.drills import LONG

    recording = drilled.speak(LONG, response_format="wav", stream=False).content

    def heard(**fields: str) -> dict[str, Any]:
        answer = httpx.post(
            f"{drilled.base}/v1/audio/transcriptions",
            data={"response_format": "verbose_json", **fields},
            files={"file": ("a.wav", recording)},
            timeout=120,
        )
        assert answer.status_code == 200
        return dict(answer.json())

    undisturbed, disturbed = heard(), heard(fault="kill@1")
    assert disturbed["text"] == undisturbed["text"]
    assert [one["start"] for one in disturbed["segments"]] == [one["start"] for one in undisturbed["segments"]]


@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="ffprobe is not installed")
@pytest.mark.parametrize("kind", ["mp3", "pcm"])
def test_the_official_client_streams_through_a_kill_and_gets_a_whole_file(
    drilled: Server, kind: str, tmp_path: Path
) -> None:
    client = openai.OpenAI(base_url=f"{drilled.base}/v1", api_key="unused")

    def stream(name: str, **extra: Any) -> bytes:
        path = tmp_path / name
        asked: Any = {"model": "tts-1", "voice": "alloy", "input": SENTENCES, "response_format": kind}
        with client.audio.speech.with_streaming_response.create(**asked, extra_body={"seed": 1, **extra}) as answer:
            answer.stream_to_file(path)
        return path.read_bytes()

    assert stream(f"disturbed.{kind}", fault="kill@5") == stream(f"whole.{kind}")
    if kind == "mp3":
        probe = ["ffprobe", "-v", "error", "-show_format", "-of", "json", str(tmp_path / "disturbed.mp3")]
        run = subprocess.run(probe, capture_output=True, text=True, check=True)
        assert run.stderr == ""
        assert float(json.loads(run.stdout)["format"]["duration"]) > 30


def test_an_engine_that_cannot_resume_says_it_again_and_nothing_is_heard_twice(tmp_path: Path) -> None:
    settings = {**fake(frame_s=0.05), "data_dir": str(tmp_path)}
    with serving(ready=False, drills="true", **settings) as server:
        assert server.speak(FAKE_TEXT, fault="kill@20").content == spoken(FAKE_TEXT, 40)
        [incident] = until(lambda: incidents(tmp_path), "it is recorded")
        until(lambda: incidents(tmp_path)[0].pause_s is not None, "its pause is known")
        assert incident.kind == "died"
        assert "signal 9" in incident.how


def fake(**options: Any) -> dict[str, Any]:
    from tests.conftest import fake_settings

    return fake_settings(**options)


def test_health_turns_503_while_nothing_moves_and_recovers_by_itself_and_live_stays_200() -> None:
    with serving(drills="true", frame_timeout=2.0) as server:
        seen: list[tuple[int, int]] = []
        asking = threading.Event()

        def ask() -> None:
            while not asking.wait(0.05):
                seen.append((server.get("/live").status_code, server.get("/health").status_code))

        watcher = threading.Thread(target=ask)
        watcher.start()
        answer = server.speak(SENTENCES, fault="hang@3")
        until(lambda: seen[-1][1] == 200, "it is healthy again")
        asking.set()
        watcher.join()
        assert answer.status_code == 200
        assert {one[0] for one in seen} == {200}
        assert 503 in {one[1] for one in seen}


def test_a_standby_takes_over_at_once_with_the_same_bytes() -> None:
    with serving(drills="true", standby="true") as server:
        until(lambda: server.health("hibari")["standby"] == "ready", "the standby is warm", 60)
        undisturbed = server.speak(SENTENCES)
        standby = pids(server)
        assert server.speak(SENTENCES, fault="kill@3").content == undisturbed.content
        assert len(standby & pids(server)) >= 2  # it is one of those that were there
        until(lambda: server.health("hibari")["standby"] == "ready", "there is a standby again", 60)


def test_after_two_incidents_the_next_rung_speaks_and_the_sentence_says_so(tmp_path: Path) -> None:
    settings = {**rungs(crash_at=3), "data_dir": str(tmp_path)}
    with serving(ready=False, **settings) as server:
        assert server.speak(FAKE_TEXT).content == spoken(FAKE_TEXT, 40)
        facts = server.health("fake")
        assert facts["rung"] == "cpu"
        assert server.get("/health").json()["status"] == "degraded"
        assert "fake on cpu speaks now" in facts["incident"]
        assert "the GPU is tried again at" in facts["incident"]
        until(lambda: len(incidents(tmp_path)) == 2, "both are recorded")


def test_a_rung_that_does_not_load_is_no_error_where_the_next_one_does() -> None:
    with serving(ready=False, **rungs(load="fail")) as server:
        assert server.speak("one two").content == spoken("one two", 2)
        assert server.health("fake")["rung"] == "cpu"


def test_a_rung_is_probed_and_serves_again_or_stays_out() -> None:
    """The probe of this `GPU` is the real one, and there is none here: it fails, and the rung waits twice as long."""
    with serving(ready=False, breaker_pause=1.0, **rungs(crash_at=3)) as server:
        server.speak(FAKE_TEXT)
        time.sleep(4)
        assert server.health("fake")["rung"] == "cpu"
        assert server.speak("one").status_code == 200


def test_a_rung_that_passes_its_probe_serves_again() -> None:
    """This `GPU` is the processor, on which the real probe passes."""
    settings = rungs(crash_at=3)
    settings["models"]["fake"]["rungs"][0]["device"] = "cpu"
    with serving(ready=False, breaker_pause=1.0, **settings) as server:
        assert server.speak(FAKE_TEXT).content == spoken(FAKE_TEXT, 40)
        assert server.health("fake")["rung"] == "cpu"
        until(lambda: server.health("fake")["rung"] == "gpu", "the better rung serves again")
        assert server.speak("one two").content == spoken("one two", 2)
        assert server.get("/health").json()["status"] == "ok"


def test_other_numerics_go_on_from_the_same_frame_without_a_gap_or_a_click_and_the_answer_says_so() -> None:
    settings = rungs(crash_at=20, resume=True, frame_s=0.02)
    settings["models"]["fake"]["rungs"][1]["options"] = {"resume": True, "level": 0.25}
    with serving(ready=False, **settings) as server:
        answer = server.speak(FAKE_TEXT, stream=False)
        metrics = server.get("/metrics").text
    heard = np.frombuffer(answer.content, np.int16) / 32768
    loud = np.concatenate([tone(FAKE_TEXT, index) for index in range(40)])
    assert answer.headers["x-stentor-resumed"] == "approximate"
    assert 'stentor_resumed_total{exact="false"' in metrics
    assert len(heard) == len(loud)
    at = int(np.argmax(np.abs(heard - loud) > 1e-4))  # the first sample of the other voice
    assert 15 * FRAME < at <= 20 * FRAME
    np.testing.assert_allclose(heard[at + RATE // 100 :], loud[at + RATE // 100 :] / 2, atol=1e-4)
    assert np.max(np.abs(np.diff(heard))) < 1.05 * np.max(np.abs(np.diff(loud)))  # a click would be a step


def test_a_request_that_kills_every_process_ends_in_one_error_after_its_attempts(tmp_path: Path) -> None:
    settings = {**fake(), "data_dir": str(tmp_path), "attempts": 3}
    with serving(ready=False, **settings) as server:
        answer = server.speak("CRASH")
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "sidecar_died"
        until(lambda: len(incidents(tmp_path)) == 3, "each is recorded")
        assert server.speak("one").status_code == 200


def test_a_cancel_is_obeyed_before_the_next_sentence_also_when_each_is_slow() -> None:
    with serving(drills="true") as server:
        body = {"input": SENTENCES, "response_format": "pcm", "fault": "slow:40@0"}
        with httpx.stream("POST", f"{server.base}/v1/audio/speech", json=body, timeout=30) as answer:
            next(answer.iter_raw())
        until(lambda: server.health("hibari")["running"] == 0, "the slot is free", 10)
        assert server.health("hibari")["restarts"] == 0


def test_a_fault_is_refused_by_a_server_in_earnest(bundled: Server) -> None:
    answer = bundled.speak("one", fault="crash@0")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "fault"


def test_a_sidecar_killed_while_idle_is_there_again_before_anyone_asks() -> None:
    with serving(speech_model="hibari") as server:
        pid = server.health("hibari")["pid"]
        psutil.Process(pid).send_signal(signal.SIGKILL)
        until(lambda: server.health("hibari")["pid"] not in (None, pid), "another one is ready")


def test_no_journal_is_left_behind_whatever_happened(drilled: Server) -> None:
    drilled.speak(SENTENCES, fault="kill@2")
    with httpx.stream("POST", f"{drilled.base}/v1/audio/speech", json={"input": SENTENCES}, timeout=30) as answer:
        next(answer.iter_raw())
    folder = Path("/dev/shm")
    until(lambda: not list(folder.glob(f"stentor-{drilled.process.pid}-*/*.journal")), "all journals are removed", 10)


def test_an_idle_process_that_has_grown_is_replaced_and_no_request_is_lost(tmp_path: Path) -> None:
    settings = {**fake(), "data_dir": str(tmp_path), "recycle_mb": 50}
    with serving(ready=False, **settings) as server:
        server.speak("one")
        first = server.health("fake")["pid"]
        assert server.speak("GROW two").status_code == 200
        until(lambda: server.health("fake")["pid"] not in (None, first), "a fresh process is there")
        assert server.speak("one").content == spoken("one", 1)
        until(lambda: [one.kind for one in incidents(tmp_path)] == ["recycled"], "it is recorded")


def test_an_idle_model_makes_room_for_the_next_where_memory_is_bounded() -> None:
    settings = fake()
    settings["models"]["other"] = {**settings["models"]["fake"]}
    with serving(ready=False, memory_budget_mb=1, **settings) as server:  # less than one of them takes, anywhere
        server.speak("one")
        assert server.speak("one", model="other").status_code == 200
        assert server.health("fake")["state"] == "unloaded"
        assert server.speak("one").status_code == 200
        assert server.health("other")["state"] == "unloaded"


def test_a_notification_is_the_one_sentence_and_says_what_speaks_now() -> None:
    posted: list[str] = []

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{receiver.server_port}/stentor"
        with serving(drills="true", notify_url=url) as server:
            server.speak(SENTENCES, fault="kill@3")
            until(lambda: posted, "it is posted")
            assert server.health("hibari")["incident"] == posted[0]
        receiver.shutdown()
    assert "hibari on cpu died" in posted[0]
    assert "its open request went on in a new one after" in posted[0]
    assert posted[0].endswith("hibari on cpu speaks now.")


def test_two_hosts_on_one_machine_do_not_disturb_each_other(tmp_path: Path) -> None:
    settings = {"drills": "true", "data_dir": str(tmp_path)}
    with serving(**settings) as one, serving(**settings) as other:
        expected = one.speak(SENTENCES).content
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = list(pool.map(lambda server: server.speak(SENTENCES, fault="kill@2"), (one, other, one, other)))
        assert {answer.content for answer in answers} == {expected}
        until(lambda: len(incidents(tmp_path)) >= 2, "both wrote their incidents")


def test_a_full_shared_memory_is_an_error_at_start() -> None:
    code = (
        "from stentor import platform\nfrom pathlib import Path\n"
        "platform.shared_memory_root = lambda: Path('/proc')\n"  # a folder in which nobody can make a file
        "from stentor.cli import main\nimport sys\nsys.argv = ['stentor', 'serve', '--port', '0']\nsys.exit(main())"
    )
    run = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert "cannot write" in run.stderr


def test_a_store_that_cannot_be_written_does_not_stop_the_server(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where a folder should be")
    with serving(drills="true", data_dir=str(tmp_path / "file")) as server:
        assert server.speak(SENTENCES, fault="kill@3").content == server.speak(SENTENCES).content
        assert "died" in server.health("hibari")["incident"]


def test_a_model_that_never_loads_is_one_incident_and_not_one_for_each_try(tmp_path: Path) -> None:
    settings = {**fake(load="fail"), "preload": "true", "data_dir": str(tmp_path)}
    with serving(ready=False, **settings) as server:
        until(lambda: server.health("fake")["restarts"] >= 3, "it is tried again and again")
        assert [one.kind for one in incidents(tmp_path)] == ["load_failed"]
        began = time.monotonic()
        server.process.terminate()
        server.process.wait(10)
        assert time.monotonic() - began < 8  # no sentence is waited for
