"""Where text is cut: sentences, pieces of a budget, pauses; and what counts as something to say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.errors import SettingsError
from stentor.text.split import LONGEST_PAUSE_S, Pause, is_speakable, segments, sentences, split
from stentor.text.tables import words

SENTENCES = {
    "titles": ["Dr. Smith met Mrs. Jones.", "They left."],
    "initials": ["J. K. Rowling wrote it.", "So what?"],
    "e.g.": ["Fruit, e.g. apples, i.e. food.", "Yes."],
    "U.S.": ["The U.S. Army left the U.S.", "The end."],
    "No. 5 and no": ["No. 5 is alive.", "No.", "I won't."],
    "p.m.": ["He left at 5 p.m.", "The bus came."],
    "decimals": ["Pi is 3.14.", "Not 3.15!"],
    "addresses": ["See example.com/a.b now.", "Or v2.13.0?"],
    "ellipsis goes on": ["Wait... what?", "Well...", "I see…", "Good."],
    "exclamations": ["What?!", "No!!!", "hi! how are you?"][:2],
    "quotes": ['He said "Go."', "Then he left.", "(Really.)", "Yes."],
    "question in a quote": ["“Really?” she asked.", "“Yes.”"],
    "Chinese": ["你好。", "好吗？", "走！", "一；", "二……", "三"],
    "Chinese quotes": ["“你好。”", "他说：「走吧！」", "（真的。）", "好"],
    "a quote before a comma": ["“走！”，他说。", "好"],
    "mixed scripts": ["OK.", "然后我们走。", "Then we go.", "好！"],
    "lowercase goes on": ["This is approx. five and so on.", "Yes."],
}


@pytest.mark.parametrize("expected", SENTENCES.values(), ids=SENTENCES.keys())
def test_sentences_are_found(expected: list[str]) -> None:
    glue = "" if any("。" in piece for piece in expected) and "Then we go." not in expected else " "
    assert sentences(glue.join(expected)) == expected


LINES = {
    "paragraphs": ("One line\n\nanother", ["One line", "another"]),
    "short lines": ("Roses are red\nViolets are blue", ["Roses are red", "Violets are blue"]),
    "a wrapped line": ("This is a\nwrapped sentence.", ["This is a\nwrapped sentence."]),
    "a long wrapped line": (f"{'word ' * 12}\nI wrapped.", [f"{'word ' * 12}\nI wrapped."]),
    "list": ("- a\n- b\n1. C d\n2. E f", ["- a", "- b", "1. C d", "2. E f"]),
    "blank": (" \n\n ", []),
}


@pytest.mark.parametrize(("text", "expected"), LINES.values(), ids=LINES.keys())
def test_lines_end_sentences_where_their_writer_ended_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def _bare(text: str) -> str:
    return "".join(text.split())


PIECES = words(
    "Dr. A. U.S. No. 5 3.14 word don't , ; : — ( ) [ ] \" ” 」 。 ！ …… … ... ? ! 好 我们 が 한국 👍🏽 e\u0301 🇺🇸🇩🇪 "
    "\ud800 \udc00 1,234 supercalifragilistic"
)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from([*PIECES, " ", " ", "\n", "\n\n", "\u3000"]), max_size=30).map("".join),
)


@settings(max_examples=500, deadline=None)
@given(TEXTS, st.integers(1, 40))
def test_nothing_is_lost_and_no_piece_is_too_long(text: str, budget: int) -> None:
    pieces = split(text, budget)
    assert _bare("".join(pieces)) == _bare(text)
    assert _bare("".join(sentences(text))) == _bare(text)
    assert all(0 < len(piece) <= budget for piece in pieces)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_a_budget_that_fits_leaves_one_piece(text: str) -> None:
    assert split(text, max(1, len(text))) == ([text.strip()] if text.strip() else [])


SPLITS = {
    "whole sentences": ("One two. Three. Four five.", 16, ["One two. Three.", "Four five."]),
    "clauses": ("One, two three; four five six", 16, ["One, two three;", "four five six"]),
    "words": ("one two three four", 9, ["one two", "three", "four"]),
    "Chinese clauses": ("我有一个，你有两个、他没有", 6, ["我有一个，", "你有两个、", "他没有"]),
    "Chinese characters": ("我有一个苹果你没有", 4, ["我有一个", "苹果你没", "有"]),
    "a number in Chinese stays whole": ("我有一千1234个", 6, ["我有一千", "1234个"]),
    "a closing mark stays": ("“我有一个”苹果", 5, ["“我有一", "个”苹果"]),
    "one long word": ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
    "a decimal stays whole": ("costs 3.14159 now", 8, ["costs", "3.14159", "now"]),
    "an abbreviation stays with its name": ("He saw Dr. Smith", 12, ["He saw Dr.", "Smith"]),
    "a mark stays on its letter": (
        "ae\u0301" * 3,
        4,
        ["ae\u0301a", "e\u0301a", "e\u0301"],
    ),
    "flags stay whole": ("🇺🇸🇩🇪🇫🇷", 3, ["🇺🇸", "🇩🇪", "🇫🇷"]),
    "a family stays whole": ("👨‍👩‍👧👨‍👩‍👧", 7, ["👨‍👩‍👧", "👨‍👩‍👧"]),
}


@pytest.mark.parametrize(("text", "budget", "expected"), SPLITS.values(), ids=SPLITS.keys())
def test_text_is_cut_at_the_best_place(text: str, budget: int, expected: list[str]) -> None:
    assert split(text, budget) == expected


@pytest.mark.parametrize("character", ["a", "好", "9", "\u0301", "👍"])
def test_a_hundred_thousand_characters_without_a_place_to_cut_are_cut(character: str) -> None:
    pieces = split(character * 100_000, 400)
    assert "".join(pieces) == character * 100_000
    assert len(pieces) == 250


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_of_nothing_is_refused(budget: int) -> None:
    with pytest.raises(SettingsError, match="at least 1"):
        split("text", budget)


SEGMENTS = {
    "seconds": ("a [pause 0.5s] b", ["a", Pause(0.5), "b"]),
    "milliseconds in capitals": ("a[PAUSE 500MS]b", ["a", Pause(0.5), "b"]),
    "adjacent add up": ("[pause 1s] [pause 2s]", [Pause(3.0)]),
    "capped": ("[pause 99s]", [Pause(LONGEST_PAUSE_S)]),
    "capped together": ("[pause 9s][pause 9s]", [Pause(LONGEST_PAUSE_S)]),
    "no time is no pause": ("a [pause 0s] b", ["a", "b"]),
    "malformed stays text": ("[pause] [pause 5] [pause -1s] [pause:1s]", ["[pause] [pause 5] [pause -1s] [pause:1s]"]),
    "plain": ("a b", ["a b"]),
    "empty": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), SEGMENTS.values(), ids=SEGMENTS.keys())
def test_pause_tags_become_pauses(text: str, expected: list[str | Pause]) -> None:
    assert segments(text) == expected


@pytest.mark.parametrize("text", ["a", "5", "好", "が", "%", "½", "é", "[pause]", "… a"])
def test_something_to_say(text: str) -> None:
    assert is_speakable(text)


@pytest.mark.parametrize(
    "text",
    ["", " \n", "...", "?!", "——", "。。。", "***", "---", "👍🏽", "🇺🇸", "\u200b\u200d", "\u3164", "\u0301", "“”"],
)
def test_nothing_to_say(text: str) -> None:
    assert not is_speakable(text)


def test_all_pauses_of_a_text_together_are_bounded_and_the_text_is_not() -> None:
    parts = segments("word [pause 10s]" * 5000)
    assert sum(one.seconds for one in parts if isinstance(one, Pause)) == 600
    assert [one for one in parts if isinstance(one, str)] == ["word"] * 5000
