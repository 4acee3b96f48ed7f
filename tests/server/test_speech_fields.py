"""The fields of a speech request beyond OpenAI's, and other servers' spellings of them."""

from __future__ import annotations

import base64

import httpx
import numpy as np
import pytest

from stentor.server.speech_request import SpeechRequest
from tests.conftest import Server, fake_settings, serving
from tests.fake_engine import FRAME, RATE
from tests.server.test_speech import spoken


def test_a_pause_tag_is_silence_of_its_length_between_the_words(fake: Server) -> None:
    audio = fake.speak("one two [pause 500ms] three").content
    assert audio == spoken("one two", 2) + bytes(2 * RATE // 2) + spoken("three", 1)


def test_pauses_at_both_ends_and_next_to_each_other_are_kept(fake: Server) -> None:
    audio = fake.speak("[pause 0.1s] one [pause 0.1s][PAUSE 100ms] two [pause 0.2s]").content
    tenth = bytes(2 * RATE // 10)
    assert audio == tenth + spoken("one", 1) + 2 * tenth + spoken("two", 1) + 2 * tenth


def test_only_pauses_are_nothing_to_say(fake: Server) -> None:
    assert fake.speak("[pause 1s] [pause 1s]").json()["error"]["code"] == "nothing_to_say"


@pytest.mark.parametrize("speed", [0.25, 0.5, 2.0, 4.0])
def test_an_engine_without_a_speed_of_its_own_gets_it_from_the_server_with_the_pitch_kept(
    fake: Server, speed: float
) -> None:
    text = "a " * 20
    normal = np.frombuffer(fake.speak(text).content, "<i2").astype(np.float64)
    changed = np.frombuffer(fake.speak(text, speed=speed).content, "<i2").astype(np.float64)
    assert len(changed) == pytest.approx(20 * FRAME / speed, rel=0.02)
    assert _pitch(changed) == pytest.approx(_pitch(normal), rel=0.02)


def _pitch(samples: np.ndarray) -> float:
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    return float(np.argmax(spectrum)) * RATE / len(middle)


def test_fields_nobody_knows_are_ignored_and_named_in_a_header(fake: Server) -> None:
    answer = fake.speak("one", volume_multiplier=2, exaggeration=0.5, 声音="x", **{"a\r\nX-Evil: 1": 1})
    assert answer.status_code == 200
    assert (
        answer.headers["x-stentor-ignored"]
        == "a%0D%0AX-Evil%3A%201, exaggeration, volume_multiplier, %E5%A3%B0%E9%9F%B3"
    )
    assert "x-evil" not in answer.headers
    assert "x-stentor-ignored" not in fake.speak("one").headers


def test_with_strict_an_unknown_field_is_a_400_that_names_it() -> None:
    with serving(ready=False, strict="true", **fake_settings()) as server:
        error = server.speak("one", volume_multiplier=2).json()["error"]
        assert (error["code"], error["param"]) == ("invalid_request", "volume_multiplier")
        assert server.speak("one").status_code == 200


def test_a_recording_to_clone_is_refused_by_a_model_that_cannot(bundled: Server) -> None:
    recording = base64.b64encode(b"RIFF").decode()
    for audio in (recording, f"data:audio/wav;base64,{recording}"):
        error = bundled.speak("Hello.", ref_audio=audio, ref_text="Hi").json()["error"]
        assert (error["code"], error["param"]) == ("unsupported_option", "ref_audio")


def test_a_recording_that_is_no_base64_is_a_400_that_names_the_field(bundled: Server) -> None:
    answer = bundled.speak("Hello.", ref_audio="§§§")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "ref_audio")


def test_instruct_is_instructions(bundled: Server) -> None:
    assert bundled.speak("Hello.", instruct="sadly").json()["error"]["param"] == "instructions"


def test_the_voices_route_of_the_qwen_servers_answers_too(fake: Server) -> None:
    assert fake.get("/v1/voices").json() == fake.get("/v1/audio/voices").json()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"model": "tts-1-zh"}, {"model": "tts-1", "language": "zh"}),
        ({"model": "tts-1-hd-ja", "language": "en"}, {"model": "tts-1-hd", "language": "en"}),
        ({"model": "tts-1"}, {"model": "tts-1", "language": None}),
        ({"model": "", "voice": " ", "language": "", "instructions": "None"}, {"model": None, "voice": None}),
        ({"speed": None, "response_format": None, "stream": None}, {"speed": 1.0, "response_format": "mp3"}),
        ({"instruct": "softly"}, {"instructions": "softly"}),
        ({"task_type": "CustomVoice"}, {"task_type": "CustomVoice"}),
    ],
)
def test_a_spelling_means(body: dict[str, object], expected: dict[str, object]) -> None:
    request = SpeechRequest.model_validate({"input": "x", **body})
    assert {name: getattr(request, name) for name in expected} == expected
    assert request.unknown_fields == []


@pytest.mark.parametrize(
    ("options", "off"),
    [
        ({"url_normalization": False, "unit_normalization": False}, {"urls", "units"}),
        ({"email": False, "optional_pluralization_normalization": True}, {"emails"}),
        ({"replace_remaining_symbols": False, "phone_normalization": True}, {"numbers"}),
        ({"money": False, "normalize": True}, {"money"}),
        (None, set()),
    ],
)
def test_normalization_options_of_other_servers_switch_ours(options: dict[str, bool] | None, off: set[str]) -> None:
    request = SpeechRequest.model_validate({"input": "x", "normalization_options": options})
    assert {name for name, on in request.normalization_options if not on} == off


def test_normalize_false_leaves_the_text_as_it_is(fake: Server) -> None:
    plain = fake.speak("pay $5 now", normalization_options={"normalize": False}).content
    assert plain == spoken("pay $5 now", 3)
    assert fake.speak("pay $5 now").content == spoken("pay five dollars now", 4)


def test_an_unknown_normalization_option_is_a_400(fake: Server) -> None:
    error = fake.speak("x", normalization_options={"nonsense": True}).json()["error"]
    assert error["param"] == "normalization_options.nonsense"


@pytest.mark.parametrize(
    ("field", "value"),
    [("ref_text", "Hi"), ("x_vector_only_mode", True), ("task_type", "Base"), ("task_type", "VoiceDesign")],
)
def test_a_field_of_what_a_model_lacks_is_refused_by_its_name(bundled: Server, field: str, value: object) -> None:
    error = bundled.speak("Hello.", **{field: value}).json()["error"]
    assert (error["code"], error["param"]) == ("unsupported_option", field)


@pytest.mark.parametrize("empty", ["", None, "None"])
@pytest.mark.parametrize("field", ["voice", "instructions", "language", "seed", "task_type", "ref_audio", "ref_text"])
def test_an_empty_optional_field_is_an_absent_one(bundled: Server, field: str, empty: str | None) -> None:
    body = {"input": "Hi.", "response_format": "pcm", field: empty}
    assert httpx.post(f"{bundled.base}/v1/audio/speech", json=body).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"voice": {"id": None}},
        {"voice": {"id": ""}},
        {"x_vector_only_mode": None},
        {"x_vector_only_mode": ""},
        {"normalization_options": {"units": None}},
        {"response_format": "PCM"},
        {"instructions": "", "instruct": ""},
    ],
)
def test_odd_spellings_of_nothing_in_particular_are_understood(bundled: Server, fields: dict[str, object]) -> None:
    assert bundled.speak("Hi.", **fields).status_code == 200


def test_instruct_is_heard_beside_empty_instructions(bundled: Server) -> None:
    assert bundled.speak("Hi.", instructions="", instruct="sad").json()["error"]["param"] == "instructions"


def test_a_voice_of_no_known_shape_is_told_by_its_own_name(bundled: Server) -> None:
    assert {bundled.speak("Hi.", voice=voice).json()["error"]["param"] for voice in ({}, 1, [1])} == {"voice"}
