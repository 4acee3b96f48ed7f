"""POST /v1/audio/speech through a real server: the bundled voice, and the fake engine for what must go wrong."""

from __future__ import annotations

import base64
import concurrent.futures
import io
import json
import shutil
import subprocess

import av
import httpx
import numpy as np
import openai
import pytest

from stentor.audio import pcm
from stentor.audio.write import FORMATS
from tests.conftest import Server, fake_settings, serving, until
from tests.fake_engine import FRAME, RATE, tone

SENTENCE = "The quick brown fox jumps over the lazy dog."


def decoded(data: bytes) -> np.ndarray:
    """The samples of a file, by FFmpeg's libraries."""
    with av.open(io.BytesIO(data)) as container:
        frames = [frame.to_ndarray() for frame in container.decode(audio=0)]
    samples = np.concatenate([frame.reshape(-1) for frame in frames])
    return samples.astype(np.float64) / (32768 if samples.dtype == np.int16 else 1)


def probed_seconds(data: bytes) -> float:
    """The duration that ffprobe counts packet by packet; PyAV's libraries where no ffprobe is installed."""
    if shutil.which("ffprobe") is None:
        with av.open(io.BytesIO(data)) as container:
            return float(sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0)))
    argv = ["ffprobe", "-v", "error", "-show_entries", "packet=duration_time", "-of", "json", "-"]
    run = subprocess.run(argv, input=data, capture_output=True, check=True)
    assert run.stderr == b"", run.stderr
    return sum(float(packet["duration_time"]) for packet in json.loads(run.stdout)["packets"])


def spoken(text: str, frames: int) -> bytes:
    """What the fake engine's utterance is as 16-bit PCM."""
    return pcm.to_s16(np.concatenate([tone(text, index) for index in range(frames)]))


@pytest.mark.parametrize("format", ["mp3", "wav", "flac", "opus", "aac"])
def test_every_format_is_one_whole_file_of_the_right_length(bundled: Server, format: str) -> None:
    reference = bundled.speak(SENTENCE, response_format="pcm", seed=1)
    seconds = len(reference.content) / 2 / 24_000
    answer = bundled.speak(SENTENCE, response_format=format, seed=1)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == FORMATS[format].media_type
    assert 2.0 < seconds < 5.0
    assert abs(probed_seconds(answer.content) - seconds) < 0.15


def test_the_openai_client_streams_to_a_file(bundled: Server, tmp_path: object) -> None:
    client = openai.OpenAI(base_url=f"{bundled.base}/v1", api_key="unused")
    with client.audio.speech.with_streaming_response.create(
        model="gpt-4o-mini-tts", voice="alloy", input=SENTENCE
    ) as response:
        data = b"".join(response.iter_bytes())
        assert response.headers["content-type"] == "audio/mpeg"
    assert probed_seconds(data) > 2.0


def test_the_openai_client_reads_the_error_of_an_unknown_voice(bundled: Server) -> None:
    client = openai.OpenAI(base_url=f"{bundled.base}/v1", api_key="unused", max_retries=0)
    with pytest.raises(openai.NotFoundError) as caught:
        client.audio.speech.create(model="tts-1", voice="nobody", input="Hello.")
    assert caught.value.code == "voice_not_found"
    assert "heart" in caught.value.message


def test_pcm_is_24_khz_16_bit_of_exactly_the_engines_samples(fake: Server) -> None:
    assert fake.speak("one two three", response_format="pcm").content == spoken("one two three", 3)


def test_streamed_wav_has_sentinel_sizes_and_a_whole_one_exact_sizes(fake: Server) -> None:
    streamed = fake.speak("one two", response_format="wav").content
    whole = fake.speak("one two", response_format="wav", stream=False)
    assert streamed[4:8] == b"\xff\xff\xff\xff"
    assert int.from_bytes(whole.content[4:8], "little") == len(whole.content) - 8
    assert int(whole.headers["content-length"]) == len(whole.content)
    assert "content-length" not in fake.speak("one two", response_format="wav").headers
    assert streamed[-2 * 2 * FRAME :] == whole.content[-2 * 2 * FRAME :] == spoken("one two", 2)


def test_the_same_seed_gives_the_same_bytes_and_the_drawn_seed_is_told(bundled: Server) -> None:
    first = bundled.speak(SENTENCE, response_format="mp3", seed=None)
    again = bundled.speak(SENTENCE, response_format="mp3", seed=int(first.headers["x-stentor-seed"]))
    other = bundled.speak(SENTENCE, response_format="mp3", seed=int(first.headers["x-stentor-seed"]) + 1)
    assert first.content == again.content
    assert first.content != other.content


def test_server_sent_events_carry_the_same_audio(fake: Server) -> None:
    answer = fake.speak("one two", stream_format="sse")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line]
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [event["type"] for event in events][-1] == "speech.audio.done"
    audio = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert audio == spoken("one two", 2)


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"input": ""}, 400, "nothing_to_say", "input"),
        ({"input": "  \n\t"}, 400, "nothing_to_say", "input"),
        ({"input": "?!…"}, 400, "nothing_to_say", "input"),
        ({"input": "🎉🎉"}, 400, "nothing_to_say", "input"),
        ({}, 400, "invalid_request", "input"),
        ({"input": 7}, 400, "invalid_request", "input"),
        ({"input": "x", "speed": 9}, 400, "invalid_request", "speed"),
        ({"input": "x", "response_format": "midi"}, 400, "invalid_request", "response_format"),
        ({"input": "x", "model": "gpt-5"}, 404, "model_not_found", "model"),
        ({"input": "x", "model": "whisper-tiny.en"}, 404, "model_not_found", "model"),
        ({"input": "x", "voice": "Heart"}, 404, "voice_not_found", "voice"),
        ({"input": "x", "voice": {"id": "voice_123"}}, 404, "voice_not_found", "voice"),
        ({"input": "你好，世界。"}, 400, "unspeakable_text", "input"),
        ({"input": "Hello 世界"}, 400, "unspeakable_text", "input"),
        ({"input": "Guten Tag", "language": "de"}, 400, "unsupported_language", "language"),
        ({"input": "x", "instructions": "whisper it"}, 400, "unsupported_option", "instructions"),
        ({"input": "x" * 100_001}, 413, "too_large", "input"),
    ],
)
def test_a_bad_request_is_a_clear_error_before_any_200(
    bundled: Server, body: dict[str, object], status: int, code: str, param: str
) -> None:
    answer = httpx.post(f"{bundled.base}/v1/audio/speech", json=body, timeout=30)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["type"] == "invalid_request_error"
    assert len(error["message"]) > 10


def test_malformed_json_is_a_400_in_the_same_shape(bundled: Server) -> None:
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{bundled.base}/v1/audio/speech", content=b'{"input": "x"', headers=headers)
    assert answer.status_code == 400
    assert "JSON" in answer.json()["error"]["message"]


@pytest.mark.parametrize("text", ["None", "", "  "])
def test_home_assistants_empty_instructions_are_no_instructions(bundled: Server, text: str) -> None:
    assert bundled.speak("Hello.", instructions=text).status_code == 200


def test_only_silence_is_an_error_and_not_an_empty_200(fake: Server) -> None:
    answer = fake.speak("SILENCE SILENCE")
    assert answer.status_code == 500
    assert "silence" in answer.json()["error"]["message"]


@pytest.mark.parametrize("word", ["RAISE", "BUG", "NAN"])
def test_an_engine_error_before_the_first_byte_is_a_status_code(fake: Server, word: str) -> None:
    assert fake.speak(f"{word} one").status_code == 500


@pytest.mark.parametrize("word", ["RAISE", "BUG", "NAN"])
@pytest.mark.parametrize("format", ["pcm", "mp3", "wav"])
def test_an_engine_error_after_the_first_byte_never_ends_the_stream_cleanly(
    fake: Server, word: str, format: str
) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        fake.speak("one two three four five six " * 3 + word, response_format=format)


def test_parallel_streams_never_mix() -> None:
    """Each text has a tone of its own: an answer with another's audio, or a lost block, is other bytes."""
    with serving(ready=False, **fake_settings(slots=4)) as server, concurrent.futures.ThreadPoolExecutor(16) as pool:
        texts = [f"{chr(97 + number % 26) * (2 + number)} tone " * (1 + number % 4) for number in range(48)]
        answers = list(pool.map(server.speak, texts))
    for text, answer in zip(texts, answers, strict=True):
        assert answer.content == spoken(text.strip(), len(text.split())), text


def test_a_full_queue_answers_429_with_retry_after() -> None:
    settings = fake_settings(slots=1, frame_s=0.05)
    with serving(ready=False, queue_limit=2, **settings) as server, concurrent.futures.ThreadPoolExecutor(8) as pool:
        server.speak("warm")
        answers = list(pool.map(lambda _: server.speak("word " * 20), range(8)))
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200] * 3 + [429] * 5
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert int(refused.headers["retry-after"]) > 0
    assert refused.json()["error"]["type"] == "rate_limit_error"


def test_nothing_audible_before_the_deadline_is_504_and_frees_the_slot() -> None:
    with serving(ready=False, first_byte_timeout=0.5, **fake_settings(slots=1, frame_s=0.2)) as server:
        server.speak("warm")
        answer = server.speak("SILENCE " * 100)
        assert answer.status_code == 504
        until(lambda: server.health("fake")["running"] == 0, "the slot is free")
        assert server.speak("next").status_code == 200


def test_a_tone_stays_continuous_over_all_blocks(fake: Server) -> None:
    text = "a " * 40
    samples = decoded(fake.speak(text, response_format="flac").content)
    assert len(samples) == 40 * FRAME
    steps = np.abs(np.diff(samples))
    assert steps.max() < 2 * np.pi * 2200 / RATE * 0.5 + 0.01
