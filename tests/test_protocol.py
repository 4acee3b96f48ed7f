"""Every message, byte for byte and without a process."""

from __future__ import annotations

import dataclasses
import json
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor import protocol
from stentor.errors import ProtocolError
from stentor.protocol import (
    Append,
    Audio,
    AudioIn,
    Cancel,
    Cancelled,
    Device,
    Done,
    End,
    Error,
    Event,
    Frames,
    Hello,
    Loading,
    Ping,
    Pong,
    Reference,
    Resume,
    Segment,
    Shutdown,
    Started,
    StatsReport,
    StatsRequest,
    Synthesize,
    Text,
    Transcribe,
    VoiceFacts,
    Word,
    decode_reply,
    decode_request,
    encode,
)

REQUESTS: list[tuple[protocol.ToSidecar, str]] = [
    (
        Synthesize(id="a", text="你好", seed=7, voice="v", resume=Resume(frames=3, first_sample=5700, samples=5760)),
        '{"type":"synthesize","id":"a","text":"\\u4f60\\u597d","seed":7,"voice":"v","speed":1.0,"attempt":0,'
        '"sampling":{},"references":[],"options":{},"more":false,"resume":{"frames":3,"first_sample":5700,"samples":5760}}',
    ),
    (
        Synthesize(id="a", text="x", seed=1, references=[Reference(pcm=b"\x00\x00\x80\x3f", sample_rate=24000)]),
        '{"type":"synthesize","id":"a","text":"x","seed":1,"speed":1.0,"attempt":0,"sampling":{},'
        '"references":[{"pcm":"AACAPw==","sample_rate":24000}],"options":{},"more":false}',
    ),
    (Append(id="a", text="more"), '{"type":"append","id":"a","text":"more"}'),
    (End(id="a"), '{"type":"end","id":"a","text":""}'),
    (
        Transcribe(id="t", path="/tmp/x", language="en", timestamps="word"),
        '{"type":"transcribe","id":"t","path":"/tmp/x","language":"en","timestamps":"word","options":{},"committed_samples":0}',
    ),
    (
        AudioIn(id="t", first_sample=480, pcm=b"\x00\x00\x00\x00", final=True),
        '{"type":"audio_in","id":"t","first_sample":480,"pcm":"AAAAAA==","final":true}',
    ),
    (Cancel(id="a"), '{"type":"cancel","id":"a"}'),
    (Ping(), '{"type":"ping"}'),
    (StatsRequest(), '{"type":"stats"}'),
    (Shutdown(), '{"type":"shutdown"}'),
]

REPLIES: list[tuple[protocol.FromSidecar, str]] = [
    (Loading(stage="weights", fraction=0.5), '{"type":"loading","stage":"weights","fraction":0.5}'),
    (
        Hello(
            pid=1,
            kind="tts",
            engine="e",
            model="m",
            backend="torch",
            numerics="n",
            slots=2,
            device=Device(name="Radeon 780M", gfx="gfx1103", memory=1),
            voices=[VoiceFacts(id="v", name="V")],
        ),
        '{"type":"hello","pid":1,"kind":"tts","engine":"e","model":"m","backend":"torch","numerics":"n",'
        '"device":{"name":"Radeon 780M","gfx":"gfx1103","memory":1},"slots":2,"versions":{},'
        '"voices":[{"id":"v","name":"V","languages":[]}],"languages":[],"capabilities":[],"options":{},"protocol":1}',
    ),
    (Started(id="a", slot=1, sample_rate=24000), '{"type":"started","id":"a","slot":1,"sample_rate":24000}'),
    (Frames(id="a", first=2, codes=[[1, 2], [3, 4]]), '{"type":"frames","id":"a","first":2,"codes":[[1,2],[3,4]]}'),
    (
        Audio(id="a", first_sample=0, pcm=np.array([1.0], "<f4").tobytes()),
        '{"type":"audio","id":"a","first_sample":0,"pcm":"AACAPw=="}',
    ),
    (
        Text(
            id="t",
            delta="hi",
            committed_samples=16000,
            words=[Word(word="hi", start=0.0, end=0.5)],
            segments=[Segment(start=0.0, end=0.5, text="hi")],
        ),
        '{"type":"text","id":"t","delta":"hi","committed_samples":16000,"segments":[{"start":0.0,"end":0.5,'
        '"text":"hi","tokens":[],"temperature":0.0}],"words":[{"word":"hi","start":0.0,"end":0.5}]}',
    ),
    (Event(id="t", event="speech_started", at=1.5), '{"type":"event","id":"t","event":"speech_started","at":1.5}'),
    (
        Done(id="a", finish_reason="length", stats={"frames": 4}),
        '{"type":"done","id":"a","finish_reason":"length","stats":{"frames":4.0}}',
    ),
    (Cancelled(id="a"), '{"type":"cancelled","id":"a"}'),
    (
        Error(id="a", code="x", message="é", retryable=True),
        '{"type":"error","code":"x","message":"\\u00e9","retryable":true,"id":"a"}',
    ),
    (Pong(), '{"type":"pong"}'),
    (StatsReport(values={"rss": 1.0}), '{"type":"stats","values":{"rss":1.0}}'),
]


@pytest.mark.parametrize(("message", "line"), REQUESTS, ids=lambda value: getattr(value, "type", ""))
def test_a_request_is_this_line_and_comes_back_equal(message: protocol.ToSidecar, line: str) -> None:
    assert encode(message) == line.encode() + b"\n"
    assert decode_request(line.encode()) == message


@pytest.mark.parametrize(("message", "line"), REPLIES, ids=lambda value: getattr(value, "type", ""))
def test_a_reply_is_this_line_and_comes_back_equal(message: protocol.FromSidecar, line: str) -> None:
    assert encode(message) == line.encode() + b"\n"
    assert decode_reply(line.encode()) == message


def test_every_message_of_the_protocol_is_in_the_tables_above() -> None:
    sent = {type(message) for message, _ in REQUESTS}
    received = {type(message) for message, _ in REPLIES}
    assert sent == set(typing.get_args(protocol.ToSidecar))
    assert received == set(typing.get_args(protocol.FromSidecar))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"type":"nope","id":"a"}', "'nope'"),
        (b'{"type":"synthesize","id":"a"}', "text: Field required"),
        (b'{"id":"a"}', "Unable to extract tag"),
        (b"not json", "Invalid JSON"),
        (b"[1, 2]", "an object"),
        (b'{"type":"cancel","id":""}', "at least 1 character"),
        (b'{"type":"cancel","id":7}', "valid string"),
        (b'{"type":"audio_in","id":"a","first_sample":0,"pcm":"!"}', "not base64"),
        (b"\xff\xfe", "Invalid JSON"),
        (b'{"type":"synthesize","id":"a","text":"\\ud800","seed":1}', "Invalid JSON"),
    ],
)
def test_a_bad_line_is_an_error_that_quotes_it(line: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_request(line)
    assert reason in caught.value.message
    assert line[:20].decode("utf-8", "backslashreplace") in caught.value.message.replace("\\\\", "\\")


def test_the_quote_of_a_huge_bad_line_is_short() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_request(b"x" * 1_000_000)
    assert len(caught.value.message) < 500


def test_a_field_of_a_later_version_is_ignored() -> None:
    assert decode_request(b'{"type":"cancel","id":"a","why":"new field"}') == Cancel(id="a")


def test_a_message_over_the_line_limit_is_refused_where_it_is_made() -> None:
    with pytest.raises(ProtocolError, match="over the"):
        encode(Audio(id="a", first_sample=0, pcm=bytes(protocol.MAX_LINE)))


@given(st.text(), st.binary(max_size=64).map(lambda data: data[: len(data) // 4 * 4]))
def test_any_text_and_any_samples_survive_the_wire_as_ascii(text: str, pcm: bytes) -> None:
    encodable = text.encode("utf-8", "ignore").decode()
    line = encode(Append(id="a", text=encodable)) + encode(Audio(id="a", first_sample=0, pcm=pcm))
    assert line.isascii()
    first, second = line.splitlines()
    assert decode_request(first) == Append(id="a", text=encodable)
    assert decode_reply(second) == Audio(id="a", first_sample=0, pcm=pcm)


@pytest.mark.parametrize(
    ("line", "found"),
    [(b'{"id":"a","type":"nope"}', "a"), (b'{"id":7}', None), (b"[]", None), (b"{", None), (b"\xff", None)],
)
def test_the_id_of_a_line_that_cannot_be_decoded_is_found_where_there_is_one(line: bytes, found: str | None) -> None:
    assert protocol.request_id(line) == found


def test_the_documented_fields_are_the_fields_of_the_messages() -> None:
    """docs/protocol.md lists each message with its fields; it must not drift from the code."""
    from .conftest import ROOT

    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    rows = {
        tuple(row.split("|")[1].strip(" `").split("`")[0:1]): row for row in page.splitlines() if row.startswith("| `")
    }
    for message in typing.get_args(protocol.ToSidecar) + typing.get_args(protocol.FromSidecar):
        names = [one.name for one in dataclasses.fields(message) if one.name != "type"]
        kind = json.loads(encode_empty(message))["type"]
        matching = [row for key, row in rows.items() if key == (kind,)]
        assert any(all(f"`{name}" in row for name in names) for row in matching), (kind, names)


def encode_empty(message: type) -> str:
    literal = typing.get_args(typing.get_type_hints(message)["type"])[0]
    return json.dumps({"type": literal})
