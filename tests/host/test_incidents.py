"""The one sentence, in every kind of incident; and what is taken out of evidence before it is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.host.incidents import TEXT_NOTE, Incident, as_dict, as_json, from_json, scrub, scrub_all

AT = datetime(2026, 12, 1, 13, 3, 7, tzinfo=UTC)
STALL: dict[str, Any] = {
    "at": AT,
    "model": "hibari",
    "rung": "cpu",
    "device": "cpu",
    "kind": "stalled",
    "phase": "frame",
    "unit": 12,
    "how": "no progress for 5.1 s",
    "open_requests": 2,
    "action": "killed",
    "speaks_now": "hibari on cpu",
    "pause_s": 0.8,
    "recovered": True,
}
TEXT = "The quick brown fox jumps over the lazy dog, and nobody else may read that."


@pytest.fixture(autouse=True)
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def test_the_sentence_says_what_when_what_was_done_and_what_speaks_now() -> None:
    assert Incident(**STALL).sentence() == (
        "hibari on cpu stopped making progress at 14:03:07 on 2026-12-01 (no progress for 5.1 s in phase 'frame', "
        "unit 12); its process was killed and its 2 open requests went on in a new one after 0.8 s; "
        "hibari on cpu speaks now."
    )


def test_the_sentence_says_when_the_gpu_is_tried_again_and_on_what_day() -> None:
    gpu = {**STALL, "device": "AMD Radeon 780M", "action": "killed and restarted", "open_requests": 1}
    soon = Incident(**gpu, gpu_retry_at=AT + timedelta(minutes=15)).sentence()
    assert "; its process was killed and restarted, and its open request went on" in soon
    assert soon.endswith("; hibari on cpu speaks now; the GPU is tried again at 14:18:07.")
    late = Incident(**gpu, gpu_retry_at=AT + timedelta(hours=12)).sentence()
    assert late.endswith("; the GPU is tried again at 02:03:07 on 2026-12-02.")
    assert "tried again" not in Incident(**gpu).sentence()


def test_a_lost_gpu_is_tried_again_after_a_reboot() -> None:
    lost = Incident(**{**STALL, "kind": "lost", "device": "AMD Radeon 780M", "action": "left behind"}).sentence()
    assert lost.startswith("hibari on AMD Radeon 780M hung in the driver, where no signal ends it, at 14:03:07")
    assert lost.endswith("; the GPU is tried again after a reboot.")


def test_while_nothing_speaks_the_sentence_says_so() -> None:
    open_yet = Incident(**{**STALL, "speaks_now": None, "recovered": False, "pause_s": None}).sentence()
    assert "and its 2 open requests have not gone on; nothing speaks in its place now." in open_yet


def test_a_model_that_listens_does_not_speak() -> None:
    ears = {**STALL, "model": "whisper", "speaks_now": "whisper on cpu", "listens": True}
    assert Incident(**ears).sentence().endswith("; whisper on cpu listens now.")
    assert Incident(**{**ears, "speaks_now": None}).sentence().endswith("; nothing listens in its place now.")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("died", "hibari on cpu died at"),
        ("load_failed", "hibari on cpu could not be loaded at"),
        ("out_of_memory", "hibari on cpu ran out of memory at"),
        ("recycled", "hibari on cpu was replaced at"),
    ],
)
def test_every_kind_has_its_words(kind: str, words: str) -> None:
    assert Incident(**{**STALL, "kind": kind}).sentence().startswith(words)


def test_a_phase_that_the_reason_names_is_not_said_twice_and_a_long_reason_stays_one_line() -> None:
    said = Incident(**{**STALL, "how": "no progress for 5.1 s in phase 'frame', unit 12"}).sentence()
    assert said == Incident(**STALL).sentence()
    long = Incident(**{**STALL, "how": "RuntimeError:\n" + "x" * 5000, "phase": ""}).sentence()
    assert "\n" not in long
    assert len(long) < 500


def test_the_least_there_can_be_is_a_sentence_too() -> None:
    least = Incident(at=AT, model="m", rung="r", device="cpu", kind="died").sentence()
    assert least == "m on cpu died at 14:03:07 on 2026-12-01; nothing speaks in its place now."


def test_an_incident_comes_back_from_json_as_it_was() -> None:
    evidence = {"stacks": ["a", "b"], "cpu": {"user": 1.5, "busy": None}, "chinese": "你好"}
    full = Incident(**STALL, engine="hibari", pid=7, gpu_retry_at=AT, evidence=evidence)
    assert from_json(as_json(full)) == full
    assert as_dict(full)["sentence"] == full.sentence()


def test_evidence_of_any_type_becomes_text_rather_than_an_error() -> None:
    odd: dict[Any, Any] = {
        "path": Path("/x"),
        "when": AT,
        "bytes": b"\xff",
        "half": "\udcff",
        3: {1},
        (1, 2): "gone",
    }
    kept = from_json(as_json(Incident(**STALL, evidence=odd))).evidence
    assert kept == {"path": "/x", "when": AT.isoformat(), "bytes": "b'\\xff'", "half": "?", "3": "{1}"}


def test_what_is_no_incident_is_a_value_error() -> None:
    for text in ("", "[]", '{"model": "x"}', json.dumps({**as_dict(Incident(**STALL)), "kind": "unheard of"})):
        with pytest.raises(ValueError, match=r".+"):
            from_json(text)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("GET / Authorization: Bearer abc.def-123", "GET / Authorization: Bearer [secret]"),
        ("sent bearer abc.def", "sent bearer [secret]"),
        ("using sk-proj-ABCDEFGH12345678 now", "using [secret] now"),
        ("token hf_ABCDEFGHIJKL", "token [secret]"),
        ("https://me:p@ss@ntfy.example/topic?x=1", "https://[secret]@ntfy.example/topic?x=1"),
        ('{"api_key": "x1y2", "n": 3}', '{"api_key": "[secret]", "n": 3}'),
        ("HF_TOKEN=abc OPENAI_API_KEY=def PATH=/bin", "HF_TOKEN=[secret] OPENAI_API_KEY=[secret] PATH=/bin"),
        ("the key sesame, in a line", "the key [secret], in a line"),
        ("max_tokens=4096 at https://example.com/a@b", "max_tokens=4096 at https://example.com/a@b"),
    ],
)
def test_keys_and_what_looks_like_one_are_taken_out(line: str, kept: str) -> None:
    assert scrub([line], ["", "sesame"], []) == [kept]


def test_the_home_folder_is_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert scrub(["in /home/ada/x.py, /home/ada: /home/adam"], [], []) == ["in ~/x.py, ~: /home/adam"]
    monkeypatch.setenv("HOME", "/")
    assert scrub(["in /home/ada/x.py"], [], []) == ["in /home/ada/x.py"]


@pytest.mark.parametrize(
    "line",
    [
        f"cannot say {TEXT!r}",
        "ValueError: BROWN   FOX  JUMPS",
        "at brown\\nfox jumps",
        json.dumps({"input": "我今天想去公园里散步然后回家吃饭"}),
        json.dumps({"input": "我今天想去公园里散步然后回家吃饭"}, ensure_ascii=False),
        json.dumps("he said 😀 to the ones there"),
    ],
)
def test_a_line_that_shares_a_run_with_a_text_becomes_a_note(line: str) -> None:
    texts = [TEXT, "我今天想去公园里散步然后回家吃饭。", "And he said 😀 to the ones there."]
    assert scrub(["before", line, "after"], [], texts) == ["before", TEXT_NOTE, "after"]


def test_a_line_that_shares_less_stays() -> None:
    lines = ["the lazy day", "            indented", "frame 12 took 80 ms"]
    assert scrub(lines, [], [TEXT, "a            b"]) == lines


def test_of_a_short_text_only_itself_is_taken_out() -> None:
    assert scrub(["cannot say 'My PIN 1234'", "go on"], [], ["my pin 1234", "on"]) == ["cannot say '[text]'", "go on"]


@given(st.text(min_size=40, max_size=80), st.integers(0, 20), st.text(max_size=20))
def test_no_run_of_a_text_survives(text: str, at: int, around: str) -> None:
    part = text[at : at + 20]
    (kept,) = scrub([f"{around}{part}{around}"], [], [text])
    assert kept == TEXT_NOTE or len(" ".join(part.casefold().split())) < 15


def test_evidence_is_scrubbed_however_deep_it_lies() -> None:
    evidence = {"stderr": ["fine", f"x {TEXT}"], "one": {"two": [{"three": f"fine\n{TEXT}\nsesame"}]}, "cpu": 1.5}
    assert scrub_all(evidence, ["sesame"], [TEXT]) == {
        "stderr": ["fine", TEXT_NOTE],
        "one": {"two": [{"three": f"fine\n{TEXT_NOTE}\n[secret]"}]},
        "cpu": 1.5,
    }


def test_many_long_texts_are_looked_for_within_the_time_there_is_for_evidence() -> None:
    texts = ["".join(f"{number * 7919 % 100_003} " for number in range(17_000)) for _ in range(8)]
    lines = [f"line {number} of a stack that says nothing of any text" for number in range(500)]
    start = time.monotonic()
    assert scrub(lines, [], texts) == lines
    assert time.monotonic() - start < 2
