"""Uploads as people have them: any container, judged by its bytes; short commands; times that hold."""

from __future__ import annotations

import functools
import re
from itertools import pairwise

import httpx
import numpy as np
import pytest

from stentor.audio import pcm
from tests.audio.files import Samples, recording, wav
from tests.conftest import Server
from tests.server.test_transcription import hear, silence, words

SENTENCE = "Please call me tomorrow morning."


@functools.cache
def spoken(server_base: str, text: str, rate: int) -> Samples:
    """The sentence as samples at a rate, said by the server's own voice, with a little silence around it."""
    body = {"input": text, "response_format": "pcm", "seed": 3}
    answer = httpx.post(f"{server_base}/v1/audio/speech", json=body, timeout=60)
    samples = np.frombuffer(answer.content, "<i2").astype(np.float32) / 32768
    resampler = pcm.Resampler(24_000, rate)
    return np.concatenate([resampler.push(samples), resampler.finish(), np.zeros(rate // 2, np.float32)])


def s24(samples: Samples) -> bytes:
    whole = np.round(samples * (2**23 - 1)).astype("<i4")
    return whole.view("u1").reshape(-1, 4)[:, :3].tobytes()


CONTAINERS = {
    "m4a": lambda say: recording("ipod", "aac", [say(24_000)], 24_000),
    "webm as a browser records it, without a duration": lambda say: recording(
        "webm", "libopus", [say(48_000)], 48_000, piped=True
    ),
    "mp4 video": lambda say: recording("mp4", "aac", [say(24_000)], 24_000, video=True),
    "telephone": lambda say: recording("wav", "pcm_mulaw", [say(8_000)], 8_000),
    "stereo with one silent channel": lambda say: recording(
        "wav", "pcm_s16le", [np.zeros_like(say(16_000)), say(16_000)], 16_000
    ),
    "24 bit wav": lambda say: wav(s24(say(24_000)), sample_rate=24_000, bits=24),
    "float wav": lambda say: wav(say(24_000).astype("<f4").tobytes(), sample_rate=24_000, bits=32, tag=3),
    "wav from a pipe, its size a lie": lambda say: wav(
        pcm.to_s16(say(16_000)), sample_rate=16_000, stated=2**32 - 1 - 36
    ),
    "ogg": lambda say: recording("ogg", "libopus", [say(48_000)], 48_000),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_any_container_is_understood(bundled: Server, name: str) -> None:
    data = CONTAINERS[name](functools.partial(spoken, bundled.base, SENTENCE))
    answer = hear(bundled, data, "x.txt")
    assert answer.status_code == 200, answer.text
    assert words(answer.json()["text"]) == words(SENTENCE)


@pytest.mark.parametrize("name", ["speech.pdf", "录音 «1».mp3", "a" * 3000, "../../etc/passwd", "x.m3u8", 'q";\\.wav'])
def test_the_name_of_the_file_says_nothing(bundled: Server, name: str) -> None:
    data = recording("ipod", "aac", [spoken(bundled.base, SENTENCE, 24_000)], 24_000)
    assert words(hear(bundled, data, name).json()["text"]) == words(SENTENCE)


@pytest.mark.parametrize("command", ["Stop.", "Yes.", "Lights on.", "No.", "Turn it off."])
def test_a_short_command_is_heard(bundled: Server, command: str) -> None:
    data = wav(pcm.to_s16(spoken(bundled.base, command, 16_000)))
    assert words(hear(bundled, data).json()["text"]) == words(command)


def test_silence_is_empty_in_every_format(bundled: Server) -> None:
    for format, empty in (("text", "\n"), ("srt", ""), ("vtt", "WEBVTT\n")):
        assert hear(bundled, silence(3), response_format=format).text == empty
    verbose = hear(bundled, silence(3), response_format="verbose_json").json()
    assert (verbose["text"], verbose["segments"], verbose["duration"]) == ("", [], 3.0)


@pytest.mark.parametrize(("seconds", "status"), [(0.05, 400), (0.099, 400), (0.1, 200), (0.2, 200)])
def test_less_than_a_tenth_of_a_second_is_refused_as_openai_does(bundled: Server, seconds: float, status: int) -> None:
    answer = hear(bundled, silence(seconds))
    assert answer.status_code == status
    assert status == 200 or "0.1 s is the least" in answer.json()["error"]["message"]


def test_times_lie_in_the_recording_and_in_order(bundled: Server) -> None:
    text = "The meeting begins at nine. Bring the papers with you. Please do not be late again."
    data = wav(pcm.to_s16(spoken(bundled.base, text, 16_000)))
    body = hear(bundled, data, response_format="verbose_json", **{"timestamp_granularities[]": "word"}).json()
    assert (body["task"], body["language"]) == ("transcribe", "english")
    assert words("".join(f" {one['word']}" for one in body["words"])) == words(body["text"])
    for pieces in (body["words"], body["segments"]):
        assert pieces
        assert all(0 <= one["start"] <= one["end"] <= body["duration"] for one in pieces)
        assert all(one["end"] <= after["start"] for one, after in pairwise(pieces))
    assert body["words"][-1]["end"] > body["duration"] / 2


def test_subtitles_are_cut_at_sentences_and_hold_every_word(bundled: Server) -> None:
    text = "The meeting begins at nine. Bring the well-known papers with you. Please do not be late again."
    data = wav(pcm.to_s16(spoken(bundled.base, text, 16_000)))
    heard = hear(bundled, data).json()["text"]
    srt = hear(bundled, data, response_format="srt").text
    blocks = [block.splitlines() for block in srt.strip().split("\n\n")]
    assert [block[0] for block in blocks] == [str(number) for number in range(1, len(blocks) + 1)]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d,\d{3} --> \d\d:\d\d:\d\d,\d{3}", block[1]) for block in blocks)
    assert " ".join(" ".join(block[2:]) for block in blocks) == heard
    assert len(blocks) >= 3
    assert hear(bundled, data, response_format="vtt").text.startswith("WEBVTT\n\n00:00:0")
