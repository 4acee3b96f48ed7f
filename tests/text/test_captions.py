"""Subtitle files that every player can read, whatever the times and the text are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.text.captions import Cue, cues_from_words, lines, srt, vtt

STAMPS = {
    0: "00:00:00,000",
    59.9996: "00:01:00,000",
    1.9999: "00:00:02,000",
    3661.5: "01:01:01,500",
    3600 * 100 + 61.25: "100:01:01,250",
    -5: "00:00:00,000",
    float("nan"): "00:00:00,000",
}


@pytest.mark.parametrize(("seconds", "stamp"), STAMPS.items())
def test_timestamps_are_right_past_an_hour(seconds: float, stamp: str) -> None:
    """LocalAI wrote 01:61:01 for 3661 s."""
    assert srt([Cue(seconds, seconds + 1, "a")]).splitlines()[1].startswith(f"{stamp} --> ")
    assert vtt([Cue(seconds, seconds + 1, "a")]).splitlines()[2].startswith(f"{stamp.replace(',', '.')} --> ")


def test_an_srt_file_byte_for_byte() -> None:
    cues = [Cue(0, 1.5, " Hello "), Cue(1.5, 2, ""), Cue(2, 3, "two\n\n\nlines")]
    assert srt(cues) == ("1\n00:00:00,000 --> 00:00:01,500\nHello\n\n2\n00:00:02,000 --> 00:00:03,000\ntwo\nlines\n")


def test_a_vtt_file_byte_for_byte() -> None:
    cues = [Cue(0, 1.5, "R&D <b> --> x"), Cue(2, 3, "b")]
    assert vtt(cues) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nR&amp;D &lt;b&gt; --&gt; x\n\n00:00:02.000 --> 00:00:03.000\nb\n"
    )


def test_no_cues_are_a_valid_file() -> None:
    assert srt([]) == ""
    assert vtt([]) == "WEBVTT\n"


def test_an_arrow_in_the_text_cannot_be_taken_for_a_time() -> None:
    body = srt([Cue(0, 1, "00:00:05,000 --> 00:00:06,000\ra---->b")])
    assert body.count("-->") == 1


def test_cues_that_overlap_or_run_backwards_are_put_in_order() -> None:
    assert re.findall(r"[\d:,]{12}", srt([Cue(0, 2, "a"), Cue(1, 0.5, "b"), Cue(9, 8, "c")])) == [
        "00:00:00,000", "00:00:02,000", "00:00:02,000", "00:00:02,001", "00:00:09,000", "00:00:09,001",
    ]  # fmt: skip


TIMES = st.one_of(st.floats(-10, 400_000), st.sampled_from([float("nan"), float("inf"), float("-inf")]))
CUES = st.lists(st.builds(Cue, TIMES, TIMES, st.text(max_size=60)), max_size=8)


@settings(max_examples=300, deadline=None)
@given(CUES)
def test_every_file_has_the_shape_that_players_read(cues: list[Cue]) -> None:
    stamp = r"(\d{2,}):([0-5]\d):([0-5]\d)[.,](\d{3})"
    for body in (srt(cues), vtt(cues)):
        body.encode("utf-8")
        assert "\r" not in body
        assert not body or (body.endswith("\n") and not body.endswith("\n\n"))
        blocks = [block for block in body.removeprefix("WEBVTT\n").strip("\n").split("\n\n") if block]
        before = 0
        for block in blocks:
            timed = [row for row in block.split("\n") if "-->" in row]
            assert len(timed) == 1
            found = re.fullmatch(rf"{stamp} --> {stamp}", timed[0])
            assert found
            start, end = (_milliseconds(*found.groups()[at : at + 4]) for at in (0, 4))
            assert before <= start < end
            before = end


def _milliseconds(hours: str, minutes: str, seconds: str, rest: str) -> int:
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(rest)


LINES = {
    "one line": ("Hello there.", 42, ["Hello there."]),
    "even lines": ("The quick fox jumps over the lazy dogs.", 30, ["The quick fox jumps", "over the lazy dogs."]),
    "wide characters count twice": ("我有一个苹果你没有", 10, ["我有一个苹", "果你没有"]),
    "a closing mark does not begin a line": ("我有一个。你没有", 8, ["我有一", "个。你没", "有"]),
    "a long word is broken": ("a" * 10, 4, ["aaaa", "aaaa", "aa"]),
    "nothing": ("  ", 42, []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "width", "expected"), LINES.values(), ids=LINES.keys())
def test_lines_are_readable(text: str, width: int, expected: list[str]) -> None:
    assert lines(text, width) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.integers(2, 50))
def test_lines_lose_nothing(text: str, width: int) -> None:
    assert "".join("".join(lines(text, width)).split()) == "".join(text.split())


def _spoken(text: str, seconds: float = 0.4) -> list[tuple[float, float, str]]:
    return [(at * seconds, (at + 1) * seconds, word) for at, word in enumerate(text.split())]


def test_cues_end_at_sentences_but_not_at_abbreviations() -> None:
    cues = cues_from_words(_spoken("Hello Dr. Smith. He is in."))
    assert [cue.text for cue in cues] == ["Hello Dr. Smith.", "He is in."]
    assert (cues[0].start, cues[0].end) == (0, pytest.approx(1.2))


def test_cues_end_at_gaps() -> None:
    cues = cues_from_words([(0, 1, "well"), (3, 4, "then")])
    assert cues == [Cue(0, 1, "well"), Cue(3, 4, "then")]


def test_cues_fit_two_lines_and_seven_seconds_and_keep_every_word() -> None:
    text = "one two three, four five six seven eight nine ten eleven " * 12
    cues = cues_from_words(_spoken(text))
    assert " ".join(cue.text for cue in cues) == text.strip()
    assert all(len(lines(cue.text)) <= 2 and cue.end - cue.start <= 7.001 for cue in cues)
    assert sum(cue.text.endswith(",") for cue in cues) > 3


def test_words_that_bring_their_spaces_keep_them() -> None:
    cues = cues_from_words([(0, 1, " I"), (1, 2, " don"), (2, 3, "'t.")])
    assert cues == [Cue(0, 3, "I don't.")]


def test_chinese_words_are_joined_without_spaces() -> None:
    assert cues_from_words([(0, 1, "你好"), (1, 2, "，"), (2, 3, "世界。"), (3, 4, "好")]) == [
        Cue(0, 3, "你好，世界。"),
        Cue(3, 4, "好"),
    ]


def test_korean_words_keep_their_spaces() -> None:
    assert cues_from_words([(0, 1, "안녕"), (1, 2, "세상")]) == [Cue(0, 2, "안녕 세상")]
