"""POST /v1/audio/transcriptions through a real server: what the bundled voice says, the bundled ears understand."""

from __future__ import annotations

import io
import re
import wave
from pathlib import Path

import httpx
import jiwer
import numpy as np
import openai
import pytest

from tests.conftest import Server

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Please call me tomorrow morning, and bring the papers with you.",
    "A local speech server keeps talking when the graphics card does not.",
]


def words(text: str) -> str:
    return re.sub(r"[^a-z0-9' ]+", " ", text.lower()).strip()


def hear(server: Server, data: bytes, name: str = "speech", **fields: str) -> httpx.Response:
    files = {"file": (name, data)}
    return httpx.post(f"{server.base}/v1/audio/transcriptions", files=files, data=fields, timeout=120)


def silence(seconds: float, rate: int = 16_000) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * int(seconds * rate)))
    return buffer.getvalue()


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("format", ["mp3", "wav", "opus"])
def test_what_the_voice_says_the_ears_understand(bundled: Server, sentence: str, format: str) -> None:
    audio = bundled.speak(sentence, response_format=format, seed=3).content
    heard = hear(bundled, audio, model="whisper-1").json()["text"]
    assert jiwer.wer(words(sentence), words(heard)) <= 0.1, heard


def test_a_text_longer_than_one_window_is_heard_whole(bundled: Server) -> None:
    text = " ".join(SENTENCES * 4)
    answer = hear(bundled, bundled.speak(text, response_format="mp3", seed=3).content)
    assert answer.json()["usage"]["seconds"] > 35
    assert jiwer.wer(words(text), words(answer.json()["text"])) <= 0.1


def test_a_command_of_one_second_is_not_swallowed(bundled: Server) -> None:
    audio = bundled.speak("Stop now.", response_format="wav", stream=False).content
    assert "stop" in hear(bundled, audio).json()["text"].lower()


def test_the_text_format_is_plain_text(bundled: Server) -> None:
    audio = bundled.speak("Good morning.", response_format="mp3").content
    answer = hear(bundled, audio, response_format="text")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.strip().lower().startswith("good morning")


def test_silence_is_empty_text(bundled: Server) -> None:
    answer = hear(bundled, silence(5))
    assert (answer.status_code, answer.json()["text"]) == (200, "")


def test_noise_is_empty_text_and_not_an_invention(bundled: Server) -> None:
    noise = np.random.default_rng(1).normal(0, 0.02, 16_000 * 4)
    data = bytearray(silence(4))
    data[44:] = (noise * 32767).astype("<i2").tobytes()
    assert hear(bundled, bytes(data)).json()["text"] == ""


def test_the_openai_client_transcribes_a_file(bundled: Server, tmp_path: Path) -> None:
    path = tmp_path / "录音 one.mp3"
    path.write_bytes(bundled.speak(SENTENCES[0], response_format="mp3").content)
    client = openai.OpenAI(base_url=f"{bundled.base}/v1", api_key="unused")
    with path.open("rb") as file:
        heard = client.audio.transcriptions.create(model="gpt-4o-transcribe", file=file, language="en")
    assert jiwer.wer(words(SENTENCES[0]), words(heard.text)) <= 0.1


@pytest.mark.parametrize(
    ("data", "fields", "status", "code"),
    [
        (b"", {}, 400, "undecodable_audio"),
        (b"this is no audio at all" * 100, {}, 400, "undecodable_audio"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", {}, 400, "undecodable_audio"),
        (silence(0), {}, 400, "undecodable_audio"),
        (silence(1), {"language": "zh"}, 400, "unsupported_language"),
        (silence(1), {"model": "nobody"}, 404, "model_not_found"),
        (silence(1), {"model": "hibari"}, 404, "model_not_found"),
        (silence(1), {"response_format": "docx"}, 400, "invalid_request"),
    ],
)
def test_a_bad_upload_is_a_clear_error(
    bundled: Server, data: bytes, fields: dict[str, str], status: int, code: str
) -> None:
    answer = hear(bundled, data, **fields)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b"{}", {"content-type": "application/json"}),
        (b"", {}),
        (b"garbage", {"content-type": "multipart/form-data; boundary=x"}),
        (b"garbage", {"content-type": "multipart/form-data"}),
        (
            b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--x--\r\n',
            {"content-type": "multipart/form-data; boundary=x"},
        ),
        (
            b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nnot a file\r\n--x--\r\n',
            {"content-type": "multipart/form-data; boundary=x"},
        ),
    ],
)
def test_a_body_that_is_no_form_with_a_file_is_a_400(bundled: Server, content: bytes, headers: dict[str, str]) -> None:
    answer = httpx.post(f"{bundled.base}/v1/audio/transcriptions", content=content, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_empty_strings_in_optional_fields_mean_absent(bundled: Server) -> None:
    answer = hear(bundled, silence(1), model="", language="", prompt="", response_format="")
    assert answer.status_code == 200


def test_no_upload_is_left_on_disk(bundled: Server) -> None:
    hear(bundled, silence(1))
    hear(bundled, b"garbage")
    assert bundled.spooled() == []
