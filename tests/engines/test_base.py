"""What every engine shares: what was not offered is refused, requests take turns, numerics are a hash of facts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stentor.engines.base import Rotation, numerics, require_offered
from stentor.errors import StentorError
from stentor.protocol import (
    Device,
    Done,
    Error,
    FromSidecar,
    Hello,
    Reference,
    Started,
    Synthesize,
    Transcribe,
    VoiceFacts,
)


def hello(*capabilities: str) -> Hello:
    return Hello(
        pid=1,
        kind="tts",
        engine="e",
        model="m",
        backend="b",
        numerics="n",
        device=Device(name="cpu"),
        slots=1,
        voices=[VoiceFacts(id="heart", name="Heart")],
        languages=["en", "zh"],
        capabilities=list(capabilities),
    )


def speak(**fields: object) -> Synthesize:
    return Synthesize(id="a", text="x", seed=1, **fields)  # type: ignore[arg-type]


LACKS = [
    (speak(voice="emma"), "voice_not_found", "voice"),
    (speak(voice="Heart"), "voice_not_found", "voice"),
    (speak(language="de"), "unsupported_language", "language"),
    (speak(language="klingon"), "unsupported_language", "language"),
    (speak(instructions="sadly"), "unsupported_option", "instructions"),
    (speak(references=[Reference(path="/x")]), "unsupported_option", "ref_audio"),
    (speak(speed=2.0), "unsupported_option", "speed"),
    (Transcribe(id="t", path="/x", context="names"), "unsupported_option", "prompt"),
    (Transcribe(id="t", path="/x", timestamps="word"), "unsupported_option", "timestamp_granularities"),
    (Transcribe(id="t", path="/x", language="fr"), "unsupported_language", "language"),
]


@pytest.mark.parametrize(("request_", "code", "param"), LACKS)
def test_what_an_engine_did_not_offer_is_refused_and_named(
    request_: Synthesize | Transcribe, code: str, param: str
) -> None:
    with pytest.raises(StentorError) as caught:
        require_offered(request_, hello())
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize("language", ["en", "EN", "en-US", "English", "zh-Hans", "Chinese", "Mandarin", None, "auto"])
def test_a_language_is_understood_by_code_tag_and_name(language: str | None) -> None:
    require_offered(speak(language=language), hello())


def test_what_was_offered_is_taken() -> None:
    offered = hello("instructions", "clone", "speed", "context", "word_timestamps")
    require_offered(speak(voice="heart", instructions="x", speed=2.0, references=[Reference(path="/x")]), offered)
    require_offered(Transcribe(id="t", path="/x", context="names", timestamps="word"), offered)


def test_numerics_change_with_any_fact_and_not_with_their_order() -> None:
    assert numerics(engine="a", threads=1) == numerics(threads=1, engine="a")
    assert numerics(engine="a", threads=1) != numerics(engine="a", threads=2)


class Careless(Rotation):
    """Its requests end without a `done`, or after one."""

    def __init__(self) -> None:
        super().__init__()
        self.hello = hello()

    def work(self, request: Synthesize) -> Iterator[list[FromSidecar]]:
        yield [Started(id=request.id, slot=0)]
        if request.text == "goes on":
            yield [Done(id=request.id)]
            yield [Started(id=request.id, slot=0)]


def test_a_request_whose_work_ends_without_done_ends_with_an_error() -> None:
    engine = Careless()
    engine.submit(speak())
    assert isinstance(engine.advance()[0], Started)
    assert isinstance(engine.advance()[0], Error)
    assert engine.advance() == []


def test_nothing_comes_of_a_request_after_its_end() -> None:
    engine = Careless()
    engine.submit(Synthesize(id="a", text="goes on", seed=1))
    assert [type(one) for _ in range(4) for one in engine.advance()] == [Started, Done]
