"""stream=true: OpenAI's events, at once and whole; what fails in the middle cannot be taken for the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jiwer
import openai
import pytest

from tests.conftest import Server, serving, until
from tests.server.test_transcription import SENTENCES, hear, silence, words

ROUTE = "/v1/audio/transcriptions"


def settings(**options: Any) -> dict[str, Any]:
    ears = {"engine": "tests.fake_ears:FakeEars", "kind": "stt", "slots": 1, "options": options}
    return {"models": {"ears": ears}, "transcription_model": "ears", "preload": "false"}


@pytest.fixture(scope="module")
def ears() -> Iterator[Server]:
    with serving(ready=False, **settings()) as server:
        yield server


def events(body: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in body.split("\n\n") if line]


def test_the_deltas_together_are_the_text_of_done(ears: Server) -> None:
    answer = hear(ears, "SILENCE one two SILENCE three 你好 SILENCE".encode(), stream="true")
    assert answer.headers["content-type"].startswith("text/event-stream")
    *deltas, done = events(answer.text)
    assert {one["type"] for one in deltas} == {"transcript.text.delta"}
    assert [one["delta"] for one in deltas] == ["one", " two", " three", " 你好"]
    assert done == {
        "type": "transcript.text.done",
        "text": "one two three 你好",
        "usage": {"type": "duration", "seconds": 7},
    }


def test_silence_is_one_event_with_empty_text(ears: Server) -> None:
    assert [one["text"] for one in events(hear(ears, b"SILENCE", stream="true").text)] == [""]


@pytest.mark.parametrize("value", ["true", "True", "1"])
def test_the_spellings_of_true(ears: Server, value: str) -> None:
    assert "transcript.text.done" in hear(ears, b"hi", stream=value).text


@pytest.mark.parametrize("value", ["false", "False", "0", ""])
def test_the_spellings_of_false(ears: Server, value: str) -> None:
    assert hear(ears, b"hi", stream=value).json()["text"] == "hi"


@pytest.mark.parametrize("format", ["srt", "vtt", "verbose_json"])
def test_a_format_that_has_no_events_is_a_400(ears: Server, format: str) -> None:
    error = hear(ears, b"hi", stream="true", response_format=format).json()["error"]
    assert (error["code"], error["param"]) == ("invalid_request", "stream")


def test_the_first_event_is_there_while_the_rest_is_still_to_be_heard(ears: Server, tmp_path: Path) -> None:
    said = f"one WAIT={tmp_path / 'go'} two".encode()
    with httpx.stream("POST", ears.base + ROUTE, files={"file": said}, data={"stream": "true"}, timeout=60) as answer:
        chunks = answer.iter_raw()
        assert events(next(chunks).decode())[0]["delta"] == "one"
        assert ears.health("ears")["running"] == 1
        answer.close()
    until(lambda: ears.health("ears")["running"] == 0, "the client left, the slot is free", 5)
    (tmp_path / "go").touch()


@pytest.mark.parametrize("failure", ["RAISE", "CRASH"])
def test_what_fails_before_the_first_event_is_an_http_error(ears: Server, failure: str) -> None:
    answer = hear(ears, f"SILENCE {failure} one".encode(), stream="true")
    assert answer.status_code in (500, 503)
    assert answer.json()["error"]["type"] == "server_error"


@pytest.mark.parametrize(("failure", "code"), [("RAISE", "engine_failed"), ("CRASH", "sidecar_died")])
def test_what_fails_after_it_is_an_event_and_a_broken_transfer(
    ears: Server, failure: str, code: str, tmp_path: Path
) -> None:
    said = f"one WAIT={tmp_path / 'go'} {failure} two".encode()
    with httpx.stream("POST", ears.base + ROUTE, files={"file": said}, data={"stream": "true"}, timeout=60) as answer:
        assert answer.status_code == 200
        chunks = answer.iter_raw()
        received = [next(chunks)]
        (tmp_path / "go").touch()
        with pytest.raises(httpx.RemoteProtocolError):
            received.extend(chunks)
    first, last = events(b"".join(received).decode())
    assert first == {"type": "transcript.text.delta", "delta": "one"}
    assert (last["type"], last["error"]["code"]) == ("error", code)


def test_the_openai_client_raises_for_the_error_and_reads_the_rest(ears: Server) -> None:
    client = openai.OpenAI(base_url=f"{ears.base}/v1", api_key="unused")
    create = client.audio.transcriptions.create
    heard = list(create(model="gpt-transcribe", file=("a", b"one two"), stream=True))
    assert [one.type for one in heard] == ["transcript.text.delta", "transcript.text.delta", "transcript.text.done"]
    with pytest.raises(openai.APIError, match="asked to raise"):
        list(create(model="gpt-transcribe", file=("a", b"one RAISE"), stream=True))


def test_the_bundled_ears_stream_window_by_window(bundled: Server) -> None:
    text = " ".join(SENTENCES * 4)
    audio = bundled.speak(text, response_format="mp3", seed=3).content
    *deltas, done = events(hear(bundled, audio, stream="true").text)
    assert len(deltas) > 1
    assert "".join(one["delta"] for one in deltas) == done["text"]
    assert jiwer.wer(words(text), words(done["text"])) <= 0.1


def test_garbage_is_a_400_in_a_stream_too(bundled: Server) -> None:
    assert hear(bundled, b"garbage" * 100, stream="true").status_code == 400
    assert events(hear(bundled, silence(3), stream="true").text)[-1]["text"] == ""
