"""Every field of OpenAI's form, in every spelling its clients have, with ears that hear what the file says."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx
import openai
import pytest
from openai.types.audio import TranscriptionVerbose

from stentor.server.form import LACKING, TranscriptionRequest
from tests.conftest import ROOT, Server, serving

EARS = {"engine": "tests.fake_ears:FakeEars", "kind": "stt"}
ALL = ["language", "languages", "context", "temperature", "vad", "translate", "segment_timestamps", "word_timestamps"]
WORDS = "timestamp_granularities[]"


@pytest.fixture(scope="module")
def ears() -> Iterator[Server]:
    models = {"able": {**EARS, "options": {"capabilities": ALL}}, "bare": EARS}
    with serving(ready=False, models=models, transcription_model="able", preload="false") as server:
        yield server


def hear(
    server: Server, said: str | bytes, *fields: tuple[str, str], to: str = "transcriptions", **more: str
) -> httpx.Response:
    """Fields in order, repeated ones too, which a dict could not say."""
    parts: list[tuple[str, Any]] = [(name, (None, value)) for name, value in [*fields, *more.items()]]
    parts.append(("file", ("f", said)))
    return httpx.post(f"{server.base}/v1/audio/{to}", files=parts, timeout=60)


def asked(server: Server, *fields: tuple[str, str], **more: str) -> tuple[Any, ...]:
    """What the engine was asked: language, context, timestamps, options (without the limits)."""
    answer = hear(server, "ECHO", *fields, **more)
    assert answer.status_code == 200, answer.text
    language, context, timestamps, options = ast.literal_eval(answer.json()["text"])
    del options["limits"]
    return language, context, timestamps, options


def refused(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    return answer.status_code, error["code"], error["param"]


def test_a_request_without_fields_asks_for_nothing(ears: Server) -> None:
    assert asked(ears) == (None, None, "none", {})


def test_empty_fields_mean_absent_all_of_them(ears: Server) -> None:
    names = ["model", "language", "languages[]", "keywords[]", "prompt", "response_format", "temperature", WORDS]
    names += ["include[]", "stream", "chunking_strategy", "known_speaker_names[]", "known_speaker_references[]"]
    for empty in ("", "  "):
        assert asked(ears, *[(name, empty) for name in names]) == (None, None, "none", {})


def test_prompt_and_hot_words_are_the_context_the_hot_words_last(ears: Server) -> None:
    assert asked(ears, prompt="A talk.")[1] == "A talk."
    fields = [("prompt", "A talk."), ("keywords[]", "Stentor"), ("keywords[]", "Ryzen")]
    assert asked(ears, *fields)[1] == "A talk. Stentor, Ryzen"


@pytest.mark.parametrize(
    "fields",
    [
        [("keywords[]", "Ann"), ("keywords[]", "Bo")],
        [("keywords", "Ann"), ("keywords", "Bo")],
        [("keywords[0]", "Ann"), ("keywords[1]", "Bo")],
        [("keywords", "Ann, Bo")],
        [("keywords", '["Ann", "Bo"]')],
        [("keywords[]", "Ann"), ("keywords", "Bo"), ("keywords[]", "")],
    ],
)
def test_a_list_is_the_same_in_every_spelling(ears: Server, fields: list[tuple[str, str]]) -> None:
    assert asked(ears, *fields)[1] == "Ann, Bo"


def test_one_candidate_is_the_language_and_several_are_the_engines_choice(ears: Server) -> None:
    assert asked(ears, ("languages[]", "de"))[0] == "de"
    assert asked(ears, ("languages[]", "de"), ("languages[]", "en"))[3] == {"languages": ["de", "en"]}
    assert asked(ears, ("languages[]", "de"), ("languages[]", "en"), language="fr")[::3] == ("fr", {})


def test_temperature_zero_is_the_engines_own_way(ears: Server) -> None:
    assert asked(ears, temperature="0")[3] == {}
    assert asked(ears, temperature="0.4")[3] == {"temperature": 0.4}


def test_chunking_by_voice_activity_reaches_the_engine(ears: Server) -> None:
    assert asked(ears, chunking_strategy="auto")[3] == {}
    strategy = {"type": "server_vad", "threshold": 0.7}
    vad = {"threshold": 0.7, "prefix_padding_ms": 300, "silence_duration_ms": 200}
    assert asked(ears, chunking_strategy=json.dumps(strategy))[3] == {"vad": vad}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("response_format", "docx"),
        ("temperature", "1.5"),
        ("temperature", "-0.1"),
        ("temperature", "nan"),
        ("temperature", "warm"),
        ("timestamp_granularities", "letter"),
        ("keywords", "[" * 100_000),
        ("stream", "perhaps"),
        ("chunking_strategy", "manual"),
        ("chunking_strategy", "{}"),
        ("chunking_strategy", '{"type": "semantic_vad"}'),
        ("chunking_strategy", '{"type": "server_vad", "threshold": 2}'),
        ("chunking_strategy", '{"type": "server_vad", "silence_duration_ms": -1}'),
    ],
)
def test_a_wrong_value_is_a_400_that_names_the_field(ears: Server, field: str, value: str) -> None:
    assert refused(hear(ears, "hi", (field, value))) == (400, "invalid_request", field)


def test_a_field_twice_with_two_values_is_a_400_and_with_one_is_fine(ears: Server) -> None:
    assert refused(hear(ears, "hi", ("language", "de"), ("language", "en"))) == (400, "invalid_request", "language")
    assert asked(ears, ("language", "de"), ("language", "de"))[0] == "de"


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("response_format", "diarized_json", "response_format"),
        ("include[]", "logprobs", "include"),
        ("known_speaker_names[]", "Ann", "known_speaker_names"),
        ("known_speaker_references[]", "data:audio/wav;base64,AAAA", "known_speaker_references"),
    ],
)
def test_what_no_engine_has_is_a_400_that_says_so(ears: Server, field: str, value: str, param: str) -> None:
    assert refused(hear(ears, "hi", (field, value))) == (400, "unsupported_option", param)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ([("language", "en")], "language"),
        ([("languages[]", "en"), ("languages[]", "de")], "languages[]"),
        ([("prompt", "x")], "prompt"),
        ([("keywords[]", "x")], "keywords[]"),
        ([("temperature", "0.5")], "temperature"),
        ([("chunking_strategy", '{"type": "server_vad"}')], "chunking_strategy"),
        ([("response_format", "srt")], "response_format"),
        ([("response_format", "verbose_json")], "response_format"),
    ],
)
def test_what_this_engine_lacks_is_a_400_that_names_the_field(
    ears: Server, fields: list[tuple[str, str]], param: str
) -> None:
    assert refused(hear(ears, "hi", *fields, model="bare")) == (400, "unsupported_option", param)
    assert hear(ears, "hi", model="bare").json()["text"] == "hi"


def test_unknown_fields_are_ignored_and_named_in_a_header(ears: Server) -> None:
    answer = hear(ears, "hi", ("vad_filter", "true"), ("näme: y", "1"), ("vad_filter", "false"))
    assert answer.json()["text"] == "hi"
    assert answer.headers["x-stentor-ignored"] == "vad_filter, n%C3%A4me%3A%20y"
    assert "x-stentor-ignored" not in hear(ears, "hi", language="en").headers


def test_unknown_fields_are_a_400_where_the_server_is_strict() -> None:
    with serving(
        ready=False, models={"able": EARS}, transcription_model="able", preload="false", strict=True
    ) as server:
        assert refused(hear(server, "hi", vad_filter="true")) == (400, "invalid_request", "vad_filter")


def test_json_counts_begun_seconds(ears: Server) -> None:
    body = hear(ears, "one two three").json()
    assert body == {"text": "one two three", "usage": {"type": "duration", "seconds": 3}}


def test_json_names_the_languages_where_candidates_were_given(ears: Server) -> None:
    assert hear(ears, "hi", ("languages[]", "de"), ("languages[]", "en")).json()["languages"] == []
    assert hear(ears, "hi", ("languages[]", "German")).json()["languages"] == [{"code": "de"}]


def test_verbose_json_has_every_key_and_the_sdk_reads_it(ears: Server) -> None:
    client = openai.OpenAI(base_url=f"{ears.base}/v1", api_key="unused")
    heard = client.audio.transcriptions.create(
        model="whisper-1",
        file=("a.wav", b"one two"),
        language="de",
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert isinstance(heard, TranscriptionVerbose)
    assert (heard.language, float(heard.duration), heard.text) == ("german", 2.0, "one two")
    assert [(one.word, one.start, one.end) for one in heard.words or []] == [("one", 0, 1), ("two", 1, 2)]
    keys = {"id", "seek", "start", "end", "text", "tokens", "temperature"}
    keys |= {"avg_logprob", "compression_ratio", "no_speech_prob"}
    raw = hear(ears, "one two", response_format="verbose_json").json()
    assert [set(one) for one in raw["segments"]] == [keys, keys]
    assert "words" not in raw
    assert raw["task"] == "transcribe"


@pytest.mark.parametrize("said", ["a CROSS b", "a b FAR c", "CROSS FAR CROSS FAR", "FAR"])
def test_times_an_engine_got_wrong_are_put_in_order(ears: Server, said: str) -> None:
    body = hear(ears, said, (WORDS, "word"), response_format="verbose_json").json()
    for pieces in (body["words"], body["segments"]):
        assert len(pieces) == len(said.split())
        assert all(0 <= one["start"] <= one["end"] <= body["duration"] for one in pieces)
        assert all(one["end"] <= after["start"] for one, after in pairwise(pieces))


@pytest.mark.parametrize("format", ["text", "srt", "vtt"])
def test_plain_formats_are_plain_text_with_all_words(ears: Server, format: str) -> None:
    answer = hear(ears, "one two FAR. three", response_format=format)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert [word for word in answer.text.split() if word in ("one", "two", "FAR.", "three")] == [
        "one",
        "two",
        "FAR.",
        "three",
    ]
    assert answer.headers["x-stentor-audio-seconds"] == "4.000"


def test_a_translation_is_english_and_for_those_who_can(ears: Server) -> None:
    answer = hear(ears, "ECHO", to="translations", prompt="x")
    assert ast.literal_eval(answer.json()["text"])[3]["task"] == "translate"
    verbose = hear(ears, "hi", to="translations", response_format="verbose_json").json()
    assert (verbose["task"], verbose["language"]) == ("translate", "english")
    assert refused(hear(ears, "hi", to="translations", model="bare")) == (400, "unsupported_option", "model")


def test_the_page_has_every_field_and_the_description_of_the_route_too(ears: Server) -> None:
    page = (ROOT / "docs" / "transcription.md").read_text(encoding="utf-8").partition("## Fields")[2]
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    documented = set(re.findall(r"`([a-z_]+)(?:\[\])?`", " ".join(rows)))
    assert documented == {"file", *TranscriptionRequest.model_fields, *LACKING}
    route = ears.get("/openapi.json").json()["paths"]["/v1/audio/transcriptions"]["post"]
    form = route["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    assert {name.removesuffix("[]") for name in form} == {"file", *TranscriptionRequest.model_fields}


def test_the_bundled_ears_do_not_translate_and_say_so(bundled: Server) -> None:
    from tests.server.test_transcription import silence

    assert refused(hear(bundled, silence(1), to="translations")) == (400, "unsupported_option", "model")
