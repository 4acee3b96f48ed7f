from __future__ import annotations

import io
import struct
import wave

import av
import numpy as np
import pytest

from stentor import errors
from stentor.audio import pcm, write
from tests.audio.files import Samples, decoded, noise, tone

ALL = ["mp3", "opus", "aac", "flac", "wav", "pcm"]
MP3_PAD = 288  # LAME ends with at least this much silence, so its last frame can be one more than needed
# What a codec puts before the first sample, where the file has no place to say so.
LEAD = {("mp3", True): 1105, ("aac", True): 1024, ("aac", False): 1024}


def encode(
    samples: Samples, name: str, rate: int = 24_000, *, block: int = 2_400, streamed: bool = True
) -> list[bytes]:
    with write.Encoder(name, rate, streamed=streamed) as encoder:
        parts = [encoder.encode(samples[i : i + block]) for i in range(0, samples.size, block)]
        return [*parts, encoder.finish()]


def heard(data: bytes, name: str) -> tuple[Samples, int]:
    return (np.frombuffer(data, "<i2").astype(np.float32) / 32768, 24_000) if name == "pcm" else decoded(data)


def speech_like(rate: int = 24_000) -> Samples:
    times = np.arange(rate + 777) / rate
    swell = (1 + np.sin(2 * np.pi * 3 * times)) / 2
    return (tone(times.size / rate, rate)[: times.size] * swell + noise(1, times.size, level=0.01)).astype(np.float32)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", ALL)
def test_the_same_samples_give_the_same_bytes_in_any_blocks(name: str, streamed: bool) -> None:
    samples = speech_like()
    once = b"".join(encode(samples, name, block=samples.size, streamed=streamed))
    for block in (61, 480, 2_400):
        assert b"".join(encode(samples, name, block=block, streamed=streamed)) == once


@pytest.mark.parametrize("name", ALL)
def test_the_same_samples_give_the_same_bytes_when_resampled(name: str) -> None:
    samples = speech_like(22_050)
    once = b"".join(encode(samples, name, 22_050, block=samples.size))
    assert b"".join(encode(samples, name, 22_050, block=317)) == once


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000, 32_000])
@pytest.mark.parametrize("name", ALL)
def test_many_small_pushes_last_as_long_as_the_samples(name: str, rate: int, streamed: bool) -> None:
    samples = speech_like(rate)
    out, out_rate = heard(b"".join(encode(samples, name, rate, block=rate // 50, streamed=streamed)), name)
    expected = samples.size * out_rate / rate
    lead = LEAD.get((name, streamed), 0)
    frame = {"mp3": MP3_PAD + (1152 if rate >= 32_000 else 576), "aac": 1024}.get(name, 1)
    assert -1 <= out.size - lead - expected <= frame


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_missing_or_added_in_the_middle(name: str) -> None:
    samples = speech_like()
    out, rate = heard(b"".join(encode(samples, name, block=480)), name)
    lead = LEAD.get((name, True), 0)
    reference = np.concatenate([(r := pcm.Resampler(24_000, rate)).push(samples), r.finish()])
    played = out[lead : lead + reference.size]
    # One sample of shift at 440 Hz would leave -19 dB; a gap of one frame far more.
    fitted = played * float(played @ reference / (played @ played))  # LAME lowers the level by 5 %
    assert pcm.rms_db(fitted - reference) < pcm.rms_db(reference) - 20


@pytest.mark.parametrize("name", ["wav", "pcm", "flac"])
def test_lossless_formats_carry_exactly_the_sixteen_bit_samples(name: str) -> None:
    samples = noise(1.0, 24_000, level=0.5)
    out, _ = heard(b"".join(encode(samples, name, block=999)), name)
    assert pcm.to_s16(out) == pcm.to_s16(samples)


def test_flac_is_lossless_for_signals_that_are_hard_to_predict() -> None:
    # lpc_type=levinson with compression_level=2 wrote frames that no decoder took: some 3 of 125, noise over a tone.
    for seed in range(20):
        samples = np.clip(tone(0.5, 24_000, level=0.3) + noise(0.5, 24_000, level=0.01 * seed, seed=seed), -1, 1)
        out, _ = decoded(b"".join(encode(samples.astype(np.float32), "flac")))
        assert pcm.to_s16(out) == pcm.to_s16(samples)


@pytest.mark.parametrize("name", ALL)
def test_the_first_block_of_100_ms_already_gives_sound(name: str) -> None:
    with write.Encoder(name, 24_000) as encoder:
        begun = encoder.encode(speech_like()[:2_400])
    with write.Encoder(name, 24_000) as encoder:
        header = encoder.finish()
    assert len(begun) > len(header) + 100


@pytest.mark.parametrize(
    ("name", "most"), [("mp3", 50), ("opus", 40), ("aac", 90), ("flac", 30), ("wav", 10), ("pcm", 10)]
)
def test_sound_leaves_after_no_more_audio_than_the_codec_needs(name: str, most: int) -> None:
    header = {"opus": 97, "flac": 60, "wav": 44}.get(name, 0)
    parts = encode(noise(1.0, 24_000), name, block=240)
    sent = np.cumsum([len(part) for part in parts])
    assert 10 * (1 + int(np.argmax(sent > header))) <= most


@pytest.mark.parametrize("name", ALL)
def test_bytes_keep_coming_with_every_block(name: str) -> None:
    assert all(encode(noise(2.0, 24_000), name, block=2_400)[:-1])


def test_a_streamed_wav_leaves_its_lengths_open() -> None:
    data = b"".join(encode(tone(0.1, 24_000), "wav"))
    riff = (b"RIFF", 0xFFFFFFFF, b"WAVE")
    form = (b"fmt ", 16, 1, 1, 24_000, 48_000, 2, 16)
    assert struct.unpack("<4sI4s4sIHHIIHH4sI", data[:44]) == (*riff, *form, b"data", 0xFFFFFFFF)
    assert len(data) == 44 + 2 * 2_400


def test_a_whole_wav_states_its_exact_length() -> None:
    data = b"".join(encode(tone(0.5, 24_000), "wav", streamed=False))
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnframes(), file.getframerate(), file.getnchannels()) == (12_000, 24_000, 1)


def test_nothing_follows_the_samples_of_a_wav() -> None:
    # Kokoro-FastAPI#463: a trailer after the samples is a click at the end of every sentence.
    samples = tone(0.1, 24_000)
    for streamed in (True, False):
        assert b"".join(encode(samples, "wav", streamed=streamed))[44:] == pcm.to_s16(samples)


@pytest.mark.parametrize("name", ["mp3", "flac", "opus"])
def test_a_whole_file_states_its_exact_duration(name: str) -> None:
    data = b"".join(encode(tone(1.5, 24_000), name, streamed=False))
    with av.open(io.BytesIO(data)) as container:
        assert container.duration is not None
        assert container.duration / av.time_base == pytest.approx(1.5, abs=0.07)  # FFmpeg 7 counts what LAME adds


def test_a_whole_file_comes_in_one_piece_from_finish() -> None:
    assert not any(encode(tone(1.0, 24_000), "mp3", streamed=False)[:-1])


@pytest.mark.parametrize("name", ["mp3", "flac", "aac", "opus"])
def test_the_file_names_no_version_of_its_encoder(name: str) -> None:
    data = b"".join(encode(tone(0.3, 24_000), name))
    assert b"Lavf" not in data
    assert b"Lavc" not in data


def test_a_streamed_mp3_has_no_tag_and_no_header_that_states_a_length() -> None:
    data = b"".join(encode(tone(0.3, 24_000), "mp3"))
    assert data[0] == 0xFF
    assert b"Xing" not in data
    assert b"Info" not in data


@pytest.mark.parametrize(("name", "rate"), [("pcm", 32_000), ("wav", 16_000), ("wav", 48_000)])
def test_pcm_and_wav_are_24_khz_whatever_the_engine(name: str, rate: int) -> None:
    with write.Encoder(name, rate) as encoder:
        assert encoder.sample_rate == 24_000


@pytest.mark.parametrize(
    ("name", "rate", "kept"), [("mp3", 32_000, 32_000), ("opus", 32_000, 48_000), ("aac", 40_000, 44_100)]
)
def test_coded_formats_take_the_next_rate_that_loses_nothing(name: str, rate: int, kept: int) -> None:
    with write.Encoder(name, rate) as encoder:
        assert encoder.sample_rate == kept


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", ALL)
def test_a_response_without_samples_can_be_finished(name: str, streamed: bool) -> None:
    with write.Encoder(name, 24_000, streamed=streamed) as encoder:
        assert encoder.encode(pcm.empty()) == b""
        assert len(encoder.finish()) < 1_000


@pytest.mark.parametrize("name", ALL)
def test_finish_and_close_can_be_called_again(name: str) -> None:
    encoder = write.Encoder(name, 24_000)
    assert encoder.encode(tone(0.2, 24_000)) + encoder.finish()
    assert encoder.finish() == b""
    encoder.close()
    encoder.close()


@pytest.mark.parametrize("name", ALL)
def test_an_abandoned_encoder_closes_quietly_and_gives_nothing_more(name: str) -> None:
    encoder = write.Encoder(name, 24_000)
    encoder.encode(tone(0.2, 24_000))
    encoder.close()
    assert encoder.finish() == b""
    with pytest.raises(errors.EngineFailed, match="after the end"):
        encoder.encode(tone(0.1, 24_000))


@pytest.mark.parametrize("name", ALL)
def test_samples_that_are_no_numbers_are_refused_before_they_are_encoded(name: str) -> None:
    with write.Encoder(name, 24_000) as encoder, pytest.raises(errors.EngineFailed, match="not numbers"):
        encoder.encode(np.array([0.0, np.nan], np.float32))


def test_an_unknown_format_names_the_field_and_the_known_ones() -> None:
    with pytest.raises(errors.InvalidRequest, match="mp3, opus, aac, flac, wav, pcm") as caught:
        write.Encoder("ogg vorbis", 24_000)
    assert caught.value.param == "response_format"


def test_a_failure_of_ffmpeg_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = write.Format("mp3", "audio/mpeg", "mp3", (1,), "mp3", "libmp3lame", "fltp", 96_000)
    monkeypatch.setitem(write.FORMATS, "mp3", broken)
    with pytest.raises(errors.EngineFailed, match="Encoding the audio as mp3 failed") as caught:
        write.Encoder("mp3", 24_000)
    assert isinstance(caught.value.__cause__, av.FFmpegError)


def test_media_types_are_those_that_clients_decode_by() -> None:
    assert {name: entry.media_type for name, entry in write.FORMATS.items()} == {
        "mp3": "audio/mpeg",
        "opus": "audio/ogg",
        "aac": "audio/aac",
        "flac": "audio/flac",
        "wav": "audio/wav",
        "pcm": "audio/pcm",
    }
