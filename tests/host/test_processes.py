"""Sidecar processes seen from outside: restarts, stalls, failed loads, and that no process is ever left behind."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.conftest import Server, environment, fake_settings, serving, until
from tests.server.test_speech import spoken

LONG = " ".join(["word"] * 200)


def _fake(server: Server) -> psutil.Process:
    return psutil.Process(server.health("fake")["pid"])


def _alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def _expect_broken(server: Server) -> None:
    with pytest.raises(httpx.TransportError):
        server.speak("HANG")


def _folders(pid: int) -> list[str]:
    return [one.name for one in Path("/dev/shm").iterdir() if one.name.startswith(f"stentor-{pid}-")]


def test_a_sidecar_that_dies_is_replaced_and_the_next_request_is_served() -> None:
    with serving(ready=False, **fake_settings()) as server:
        server.speak("warm up")
        first = _fake(server)
        first.kill()
        answer = server.speak("one two")
        assert answer.content == spoken("one two", 2)
        assert server.health("fake")["pid"] != first.pid
        assert server.health("fake")["restarts"] == 1


def test_a_request_whose_sidecar_dies_under_it_ends_with_a_clear_error() -> None:
    with serving(ready=False, attempts=2, **fake_settings()) as server:
        before = server.speak("CRASH")
        assert before.status_code == 503
        assert before.json()["error"]["code"] == "sidecar_died"
        assert "signal 9" in before.json()["error"]["message"]
        with pytest.raises(httpx.RemoteProtocolError):
            server.speak("one two three four five " * 4 + "CRASH")
        assert server.speak("one").status_code == 200


def test_a_sidecar_that_makes_no_progress_is_killed_and_live_stays_200() -> None:
    with serving(ready=False, frame_timeout=1.0, attempts=1, **fake_settings()) as server:
        server.speak("warm up")
        hung = _fake(server)
        codes: list[int] = []
        asking = threading.Event()

        def ask_live() -> None:
            while not asking.wait(0.05):
                codes.append(server.get("/live").status_code)

        watcher = threading.Thread(target=ask_live)
        watcher.start()
        answer = server.speak("HANG")
        asking.set()
        watcher.join()
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "sidecar_stalled"
        assert set(codes) == {200}
        assert not _alive(hung)
        assert server.speak("one two").content == spoken("one two", 2)


def test_a_stopped_process_is_a_stall_too() -> None:
    with serving(ready=False, frame_timeout=1.0, **fake_settings(frame_s=0.02)) as server:
        server.speak("warm up")
        stopped = _fake(server)
        timer = threading.Timer(0.3, lambda: stopped.send_signal(signal.SIGSTOP))
        timer.start()
        assert server.speak(LONG).content == spoken(LONG, 200)
        assert not _alive(stopped)


def test_a_load_that_fails_is_told_at_once_and_tried_again_when_asked() -> None:
    with serving(ready=False, **fake_settings(load="fail")) as server:
        for _ in range(3):
            answer = server.speak("one")
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "load_failed"
            assert "asked to fail" in answer.json()["error"]["message"]
        assert server.health("fake")["state"] == "failed"
        assert "asked to fail" in server.health("fake")["last_failure"]
        assert server.get("/live").status_code == 200


def test_a_default_model_that_fails_to_load_is_tried_again_with_back_off_and_makes_health_503() -> None:
    with serving(ready=False, **{**fake_settings(load="fail"), "preload": "true"}) as server:
        until(lambda: server.health("fake")["restarts"] >= 2, "it is tried again", 20)
        assert server.get("/health").status_code == 503
        assert server.get("/ready").status_code == 503
        time.sleep(2)
        assert server.health("fake")["restarts"] <= 4


def test_a_broken_model_that_is_no_default_does_not_make_the_server_unhealthy() -> None:
    settings = fake_settings()
    settings["models"]["broken"] = {"engine": "whisper", "path": "/nowhere"}
    with serving(ready=False, **settings) as server:
        answer = httpx.post(f"{server.base}/v1/models/broken/load", timeout=30)
        assert answer.status_code == 503
        assert "/nowhere" in answer.json()["error"]["message"]
        assert server.get("/health").status_code == 200


def test_a_fault_in_the_keeper_itself_is_a_failed_load_and_not_a_request_that_waits_for_ever() -> None:
    settings = fake_settings()
    settings["models"]["fake"]["python"] = "a\0b"  # no process can be started with this name: ValueError
    with serving(ready=False, **settings) as server:
        assert server.speak("one").json()["error"]["code"] == "load_failed"


def test_a_hang_whose_client_gave_up_is_a_stall_all_the_same() -> None:
    """The client's patience is shorter than the deadline: the sidecar must be judged by its page, not by who waits."""
    with serving(ready=False, frame_timeout=2.0, attempts=1, **fake_settings()) as server:
        server.speak("warm up")
        hung = _fake(server)
        for _ in range(2):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{server.base}/v1/audio/speech", json={"input": "HANG"}, timeout=0.7)
        until(lambda: not _alive(hung), "the hung process is killed", 10)
        assert server.speak("one two").content == spoken("one two", 2)


def test_requests_that_wait_behind_a_hung_one_are_served_by_the_next_process() -> None:
    with serving(ready=False, frame_timeout=1.0, attempts=3, **fake_settings(slots=2)) as server:
        server.speak("warm up")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            hung = pool.submit(server.speak, "HANG")
            until(lambda: server.health("fake")["running"] == 1, "the first hangs")
            behind = pool.submit(server.speak, "one two")
            assert behind.result().content == spoken("one two", 2)
            assert hung.result().status_code == 503


def test_a_sidecar_that_works_between_its_deaths_is_restarted_at_once_each_time() -> None:
    with serving(ready=False, **fake_settings()) as server:
        for _ in range(6):
            assert server.speak("one").status_code == 200
            _fake(server).kill()
        began = time.monotonic()
        assert server.speak("one").status_code == 200
        assert time.monotonic() - began < 8  # the sixth back-off would be 30 s


def test_a_request_that_waits_for_a_load_is_answered_when_the_server_ends() -> None:
    with serving(ready=False, **fake_settings(load_s=30)) as server, concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(server.speak, "one")
        until(lambda: server.health("fake")["state"] == "starting", "it loads")
        server.process.terminate()
        server.process.wait(15)
        assert waiting.result().status_code == 503
        assert waiting.result().json()["error"]["code"] == "unavailable"


def test_hosts_in_other_containers_do_not_remove_each_others_folders() -> None:
    """A process id means another process there, so the lock counts: here the id of a live one is not believed."""
    with serving(ready=False, **fake_settings()) as first:
        folder = next(Path("/dev/shm").glob(f"stentor-{first.process.pid}-*"))
        dead = folder.with_name("stentor-1-gone")
        dead.mkdir()
        (dead / "lock").write_bytes(b"left by a host that was killed")
        with serving(ready=False, **fake_settings()):
            assert folder.is_dir()
            assert not dead.exists()


def test_what_a_library_prints_does_not_reach_the_protocol() -> None:
    with serving(ready=False, **fake_settings()) as server:
        assert server.speak("one PRINT two").content == spoken("one PRINT two", 3)
        assert 'stentor_sidecar_noise_lines{model="fake"} 0.0' in server.get("/metrics").text


def test_sidecars_are_gone_within_two_seconds_of_a_host_killed_with_sigkill() -> None:
    with serving(**{"speech_model": "hibari"}) as server:
        children = server.sidecars()
        assert len(children) == 2
        server.process.kill()
        server.process.wait()
        until(lambda: not any(map(_alive, children)), "no orphan is left", 2)


def test_a_sidecar_stuck_in_its_loop_is_gone_too_when_the_host_is_killed() -> None:
    with serving(ready=False, **fake_settings()) as server:
        server.speak("warm up")
        stuck = _fake(server)
        request = threading.Thread(target=_expect_broken, args=(server,))
        request.start()
        until(lambda: server.health("fake")["running"] == 1, "the request runs")
        server.process.kill()
        until(lambda: not _alive(stuck), "no orphan is left", 2)
        request.join()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_the_host_and_all_its_sidecars_and_leaves_no_folder(ending: signal.Signals) -> None:
    with serving(ready=False, **fake_settings()) as server:
        server.speak("warm up")
        children = server.sidecars()
        server.process.send_signal(ending)
        server.process.wait(15)
        until(lambda: not any(map(_alive, children)), "the sidecars are gone", 3)
        assert _folders(server.process.pid) == []


def test_ctrl_c_reaches_the_host_alone() -> None:
    """The terminal signals its whole foreground group; the sidecars are in sessions of their own."""
    with serving(ready=False, **fake_settings()) as server:
        server.speak("warm up")
        child = _fake(server)
        assert os.getsid(child.pid) == child.pid
        assert os.getpgid(child.pid) != os.getpgid(server.process.pid)


def test_the_folders_of_a_host_that_was_killed_are_removed_by_the_next_one() -> None:
    with serving(ready=False, **fake_settings()) as first:
        first.process.kill()
        first.process.wait()
        assert len(_folders(first.process.pid)) == 1
        with serving(ready=False, **fake_settings()):
            assert _folders(first.process.pid) == []


def test_a_port_in_use_is_one_clear_sentence() -> None:
    with serving(ready=False, **fake_settings()) as server:
        argv = [sys.executable, "-m", "stentor", "serve", "--port", str(server.port)]
        run = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=30)
    assert run.returncode == 2
    assert run.stderr.startswith("stentor: cannot listen on 127.0.0.1:")
    assert "--port" in run.stderr


def test_an_open_address_without_a_key_is_refused() -> None:
    argv = [sys.executable, "-m", "stentor", "serve", "--host", "0.0.0.0", "--port", "0"]
    run = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=30)
    assert run.returncode == 2
    assert "without an API key" in run.stderr


def test_the_host_never_imports_an_engine_or_its_libraries() -> None:
    """Every module of the host side at once; the verb `sidecar` imports its own main only when it is run."""
    code = (
        "import importlib, pkgutil, sys, stentor.cli, stentor.host, stentor.server\n"
        "for package in (stentor.cli, stentor.host, stentor.server):\n"
        "    for module in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "bad = {'torch', 'onnxruntime', 'hibari', 'faster_whisper', 'ctranslate2', 'stentor.engines',"
        " 'stentor.sidecar', 'stentor.audio.read'}\n"
        "print(sorted(bad & set(sys.modules)), 'stentor.server.app' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[] True"
