"""What language models write around their words is not spoken: Kokoro-FastAPI#227, #260, hexgrad/kokoro#217."""

from __future__ import annotations

import pytest

from stentor.text.normalise import normalise

ROWS = {
    "emphasis": ("**bold** *it* __init__ _em_ ~~gone~~", "bold it init em gone"),
    "stars in Chinese": ("这是**重点**内容", "这是重点内容"),
    "a star is never spoken": ("a * b ** c *", "a b c"),
    "a star between numbers multiplies": ("5 * 3 and 5*3", "five times three and five times three"),
    "heading": ("# Title\n\nText", "Title.\n\nText"),
    "closed heading": ("## Learn C# ##", "Learn C sharp."),
    "a hashtag is no heading": ("#Title", "hashtag Title"),
    "bullets": ("- one\n* two\n+ three!", "one.\ntwo.\nthree!"),
    "numbered": ("1. Apples\n2) Pears", "one. Apples.\ntwo. Pears."),
    "Chinese list": ("- 苹果\n- 香蕉", "苹果。\n香蕉。"),
    "tasks": ("- [x] done\n- [ ] todo", "done.\ntodo."),
    "quote": ("> said\n> twice", "said\ntwice"),
    "rule": ("a\n\n---\n\nb", "a\n\nb"),
    "table": ("| a | b |\n|---|:-:|\n| c | d |", "a, b.\nc, d."),
    "link keeps its label": ('[the docs](https://x.com/a_(b) "Title")', "the docs"),
    "image keeps its alt": ("![a cat](cat.png)", "a cat"),
    "badge": ("[![build](http://b)](http://c) ok", "build ok"),
    "reference link": ("[docs][d] here\n\n[d]: https://x.com", "docs here"),
    "index is no link": ("m[i][j]", "m[i][j]"),
    "a speaker is no definition": ("[Alice]: Hello", "[Alice]: Hello"),
    "an aside is no link": ("[sic](not a link)", "[sic](not a link)"),
    "footnote": ("Fact.[^1]\n\n[^1]: Source", "Fact.\n\nSource"),
    "autolink": ("<https://x.com>", "x dot com"),
    "html": ("a <b>b</b> H<sub>2</sub>O<br/>c <!-- no --> d", "a b H two O\nc d"),
    "html entity": ("a &amp; b&nbsp;c", "a and b c"),
    "less than is no tag": ("if x<b and c>d", "if x<b and c>d"),
    "escaped": (r"\*not\* 1\. a", "not one. a"),
    "fenced code": ("Run:\n```sh\nls *\n```\nDone.", "Run:\n\nDone."),
    "longer fence": ("````md\n```\nx\n```\n````\nDone.", "Done."),
    "tilde fence": ("~~~\nx\n~~~\nDone.", "Done."),
    "open fence keeps its text": ("```\nprint me", "print me"),
    "inline code": ("Run `ls` or use`foo`now", "Run ls or use foo now"),
    "thought": ("<think>2 and 2?\n</think>\nFour.", "Four."),
    "nested thought": ("A <think>b<think>c</think>d</think> E", "A\nE"),
    "open thought": ("Hi. <think>what now", "Hi."),
    "thought opened in the prompt": ("hmm</think>Four.", "Four."),
    "text about the tag": ("Use `<think>` tags.", "Use think tags."),
    "emoji": ("Great 🎉🎉! I ❤️ you 👍🏽👨‍👩‍👧 🇺🇸.", "Great! I you."),
    "keycap": ("Press 1️⃣", "Press one"),
    "curly apostrophe": ("I’m, it’s, ’tis", "I'm, it's, 'tis"),
    "invisible": ("a\u200bb\ufeff \u202ec\u00ad", "ab c"),
    "pause tags stay": ("a [pause 0.5s] b [PAUSE 500ms]", "a [pause 0.5s] b [PAUSE 500ms]"),
    "a malformed pause is text": ("[pause 5]", "[pause five]"),
}


@pytest.mark.parametrize(("written", "spoken"), ROWS.values(), ids=ROWS.keys())
def test_markup_goes_and_words_stay(written: str, spoken: str) -> None:
    assert normalise(written) == spoken


@pytest.mark.parametrize("written", ["🎉", "```\nx\n```", "<think>x</think>", "***", "", " \n\t", "\u200b", "| |\n|-|"])
def test_markup_alone_leaves_nothing(written: str) -> None:
    assert normalise(written) == ""


def test_markup_nested_to_be_difficult_ends_flat_and_keeps_its_words() -> None:
    nested = "word"
    for _ in range(30):
        nested = f"&l<b>t;b>{nested}"
    once = normalise(nested)
    assert "word" in once
    assert normalise(once) == once
