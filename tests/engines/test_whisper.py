"""The bundled ears, in this process: offsets over windows, refusals, a damaged model file."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from stentor.audio import pcm
from stentor.engines.base import Launch
from stentor.engines.hibari import HibariEngine
from stentor.engines.whisper import WhisperEngine
from stentor.errors import LoadFailed, UnsupportedLanguage, UnsupportedOption
from stentor.models import store
from stentor.protocol import Done, Error, FromSidecar, Text, Transcribe
from tests.engines.test_hibari import samples, speak


@pytest.fixture(scope="module")
def ears() -> WhisperEngine:
    return WhisperEngine(Launch("whisper-tiny.en"), lambda stage, fraction: None)


@pytest.fixture(scope="module")
def voice() -> HibariEngine:
    return HibariEngine(Launch("hibari"), lambda stage, fraction: None)


def write(path: Path, audio: np.ndarray, rate: int = 24_000) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm.to_s16(audio.astype(np.float32)))
    return path


def hear(ears: WhisperEngine, path: Path, **fields: object) -> list[FromSidecar]:
    ears.submit(Transcribe(id="t", path=str(path), **fields))  # type: ignore[arg-type]
    heard: list[FromSidecar] = []
    while not heard or not isinstance(heard[-1], Done | Error):
        heard += ears.advance()
    return heard


def test_times_are_of_the_whole_file_over_several_windows(
    ears: WhisperEngine, voice: HibariEngine, tmp_path: Path
) -> None:
    sentence = samples(speak(voice, "The meeting begins at nine."))
    starts = [1.0, 20.0, 41.0, 63.0]
    audio = np.zeros(70 * 24_000)
    for start in starts:
        at = int(start * 24_000)
        audio[at : at + len(sentence)] += sentence
    heard = hear(ears, write(tmp_path / "a.wav", audio), timestamps="word")
    texts = [one for one in heard if isinstance(one, Text)]
    segments = [segment for one in texts for segment in one.segments or []]
    words = [word for one in texts for word in one.words or []]
    assert [segment.text.startswith("The meeting begins at") for segment in segments] == [True] * 4
    assert [segment.start for segment in segments] == pytest.approx(starts, abs=0.5)
    assert [word.start for word in words if word.word == " The"] == pytest.approx(starts, abs=0.5)
    committed = [one.committed_samples for one in texts]
    assert committed == sorted(committed)
    assert committed[-1] == 70 * 16_000


def test_digital_silence_gives_no_segment(ears: WhisperEngine, tmp_path: Path) -> None:
    heard = hear(ears, write(tmp_path / "a.wav", np.zeros(24_000 * 40)))
    assert "".join(one.delta for one in heard if isinstance(one, Text)) == ""
    assert isinstance(heard[-1], Done)


def test_a_language_it_does_not_have_is_refused_by_code_and_by_name(ears: WhisperEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", np.zeros(24_000))
    for language in ("zh", "Chinese", "fr-CA", "klingon"):
        with pytest.raises(UnsupportedLanguage, match="multilingual"):
            ears.submit(Transcribe(id="t", path=str(path), language=language))
    for language in ("en", "EN", "English", "en-US", "auto", ""):
        assert isinstance(hear(ears, path, language=language)[-1], Done)


def test_of_candidates_the_ones_it_lacks_are_left_out(ears: WhisperEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", np.zeros(24_000))
    assert isinstance(hear(ears, path, options={"languages": ["zh", "English"]})[-1], Done)
    with pytest.raises(UnsupportedLanguage, match="zh, de") as caught:
        ears.submit(Transcribe(id="t", path=str(path), options={"languages": ["zh", "German"]}))
    assert caught.value.param == "languages[]"


def test_ears_of_one_language_name_it_even_for_silence(ears: WhisperEngine, tmp_path: Path) -> None:
    heard = hear(ears, write(tmp_path / "a.wav", np.zeros(24_000)))
    assert [one.language for one in heard if isinstance(one, Text)] == ["en"]


def test_ears_that_are_english_only_do_not_translate(ears: WhisperEngine, tmp_path: Path) -> None:
    assert "translate" not in ears.hello.capabilities
    path = write(tmp_path / "a.wav", np.zeros(24_000))
    with pytest.raises(UnsupportedOption, match="English only"):
        ears.submit(Transcribe(id="t", path=str(path), options={"task": "translate"}))


def test_a_temperature_is_the_one_that_is_used(ears: WhisperEngine, voice: HibariEngine, tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", samples(speak(voice, "The meeting begins at nine.")))
    for asked, used in ((0.0, {0.0}), (0.3, {0.3})):
        heard = hear(ears, path, options={"temperature": asked})
        assert {
            round(one.temperature, 2) for text in heard if isinstance(text, Text) for one in text.segments or []
        } == used


def test_the_threshold_of_voice_activity_decides_what_is_speech(
    ears: WhisperEngine, voice: HibariEngine, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.wav", samples(speak(voice, "The meeting begins at nine.")))
    for threshold, heard_any in ((0.4, True), (1.0, False)):
        heard = hear(ears, path, options={"vad": {"threshold": threshold}})
        assert any(one.segments for one in heard if isinstance(one, Text)) == heard_any


def test_a_recording_over_the_limit_is_refused_before_its_first_window(
    ears: WhisperEngine, voice: HibariEngine, tmp_path: Path
) -> None:
    sentence = samples(speak(voice, "The meeting begins at nine."))
    audio = np.resize(sentence, 24_000 * 40)
    heard = hear(ears, write(tmp_path / "a.wav", audio), options={"limits": {"max_seconds": 35}})
    assert [one.code for one in heard if isinstance(one, Error)] == ["too_large"]
    assert len(heard) == 1


def test_a_cancel_between_two_windows_ends_the_work(ears: WhisperEngine, tmp_path: Path) -> None:
    ears.submit(Transcribe(id="t", path=str(write(tmp_path / "a.wav", np.zeros(24_000 * 120)))))
    ears.advance()
    ears.cancel("t")
    assert ears.advance() == []


def test_a_file_that_is_gone_is_an_error_of_the_request(ears: WhisperEngine, tmp_path: Path) -> None:
    error = hear(ears, tmp_path / "nothing.wav")[-1]
    assert isinstance(error, Error)
    assert error.code == "undecodable_audio"


def test_damaged_bundled_weights_are_found_before_they_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"not the weights")
    with pytest.raises(LoadFailed, match="SHA-256"):
        store.require_sha256(tmp_path / "model.bin", store.BUNDLED_WHISPER_SHA256)


@pytest.mark.parametrize("make", [lambda folder: None, lambda folder: (folder / "model.bin").write_bytes(b"junk")])
def test_a_folder_that_is_no_whisper_model_is_a_load_failure_that_names_it(tmp_path: Path, make: object) -> None:
    make(tmp_path)  # type: ignore[operator]
    with pytest.raises(LoadFailed, match=str(tmp_path)):
        WhisperEngine(Launch("mine", path=str(tmp_path)), lambda stage, fraction: None)


def test_any_other_whisper_folder_is_loaded_by_path(tmp_path: Path) -> None:
    engine = WhisperEngine(Launch("copy", path=str(store.bundled_whisper())), lambda stage, fraction: None)
    assert (engine.hello.model, engine.hello.languages) == ("copy", ["en"])
