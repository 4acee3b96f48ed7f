from __future__ import annotations

import numpy as np
import pytest

from stentor import errors
from stentor.audio import pcm
from tests.audio.files import noise, tone


def in_blocks(stream: pcm.Resampler | pcm.Tempo, samples: pcm.Samples, block: int) -> pcm.Samples:
    parts = [stream.push(samples[i : i + block]) for i in range(0, samples.size, block)]
    return np.concatenate([*parts, stream.finish()])


def pitch(samples: pcm.Samples, sample_rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(samples.size)))
    return float(spectrum.argmax()) * sample_rate / samples.size


def test_sixteen_bit_samples_survive_the_way_through_floats() -> None:
    every = np.arange(-32768, 32768).astype("<i2")
    assert pcm.to_s16((every / 32768).astype(np.float32)) == every.tobytes()


def test_samples_out_of_range_are_clipped_and_never_wrap() -> None:
    assert np.frombuffer(pcm.to_s16(np.array([-2.0, 1.0, 2.0], np.float32)), "<i2").tolist() == [-32768, 32767, 32767]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers_are_an_error_of_the_engine(bad: float) -> None:
    samples = np.array([0.0, bad], np.float32)
    with pytest.raises(errors.EngineFailed, match="not numbers"):
        pcm.require_finite(samples)
    with pytest.raises(errors.EngineFailed):
        pcm.to_s16(samples)


def test_floats_survive_the_way_through_bytes_and_can_be_written_to() -> None:
    samples = noise(0.01, 24_000)
    again = pcm.from_f32(pcm.to_f32(samples))
    assert np.array_equal(again, samples)
    again[0] = 0.0


def test_half_a_sample_is_a_protocol_error() -> None:
    with pytest.raises(errors.ProtocolError, match="7 bytes"):
        pcm.from_f32(bytes(7))


def test_level_is_in_decibels_below_full_scale() -> None:
    assert pcm.rms_db(tone(1.0, 24_000, level=1.0)) == pytest.approx(-3.01, abs=0.01)
    assert pcm.rms_db(np.full(100, 0.1, np.float32)) == pytest.approx(-20.0, abs=0.01)


@pytest.mark.parametrize("count", [0, 100])
def test_silence_has_a_level_that_is_finite(count: int) -> None:
    assert pcm.rms_db(np.zeros(count, np.float32)) == pcm.SILENCE_DB


def test_silence_is_trimmed_at_both_ends_down_to_the_margins() -> None:
    speech = tone(0.5, 24_000)
    padded = np.concatenate([np.zeros(12_000, np.float32), speech, np.zeros(7_200, np.float32)])
    trimmed = pcm.trim_silence(padded, 24_000, lead_s=0.02, tail_s=0.05)
    assert np.array_equal(trimmed, padded[12_000 - 480 : 24_000 + 1_200])
    assert np.array_equal(pcm.trim_silence(padded, 24_000, keep_s=0.0), speech)


def test_trimming_keeps_pauses_inside_and_speech_that_fills_the_whole() -> None:
    speech = tone(0.105, 24_000)
    with_pause = np.concatenate([speech, np.zeros(24_000, np.float32), speech])
    assert np.array_equal(pcm.trim_silence(with_pause, 24_000), with_pause)


@pytest.mark.parametrize("count", [0, 1, 239, 24_000])
def test_silence_alone_is_trimmed_to_nothing(count: int) -> None:
    assert pcm.trim_silence(np.full(count, 1e-4, np.float32), 24_000).size == 0


def test_a_gain_is_the_same_for_every_sample_and_clips_hard() -> None:
    assert pcm.apply_gain(np.array([0.1, -0.2, 0.6], np.float32), 2.0) == pytest.approx([0.2, -0.4, 1.0])


def test_the_gain_to_a_level_reaches_it_unless_a_peak_would_clip() -> None:
    quiet = tone(1.0, 24_000, level=0.01)
    assert pcm.rms_db(pcm.apply_gain(quiet, pcm.gain_to(quiet, -20.0))) == pytest.approx(-20.0, abs=0.01)
    assert np.abs(pcm.apply_gain(quiet, pcm.gain_to(quiet, 0.0))).max() == pytest.approx(0.98, abs=1e-3)
    assert pcm.gain_to(np.zeros(10, np.float32), -20.0) == 1.0


@pytest.mark.parametrize(("source", "target"), [(24_000, 16_000), (22_050, 24_000), (32_000, 24_000), (8_000, 48_000)])
def test_resampling_is_bit_for_bit_the_same_in_any_blocks(source: int, target: int) -> None:
    samples = noise(0.5, source)[:-37]
    whole = in_blocks(pcm.Resampler(source, target), samples, samples.size)
    for block in (7, 160, 2_400):
        assert np.array_equal(in_blocks(pcm.Resampler(source, target), samples, block), whole)
    assert abs(whole.size - samples.size * target / source) <= 1


def test_resampling_keeps_pitch_and_level() -> None:
    out = in_blocks(pcm.Resampler(24_000, 16_000), tone(1.0, 24_000), 1_000)
    assert pitch(out, 16_000) == pytest.approx(440, abs=1)
    assert pcm.rms_db(out[1_000:-1_000]) == pytest.approx(-9.03, abs=0.02)


def test_resampling_stays_within_full_scale_at_steep_edges() -> None:
    square = np.sign(tone(0.5, 24_000, hertz=300)).astype(np.float32)
    assert np.abs(in_blocks(pcm.Resampler(24_000, 16_000), square, 2_400)).max() <= 1.0


def test_equal_rates_pass_through_untouched() -> None:
    samples = noise(0.1, 24_000)
    same = pcm.Resampler(24_000, 24_000)
    assert same.push(samples) is samples
    assert same.finish().size == 0


@pytest.mark.parametrize("speed", [0.25, 0.4, 0.5, 0.9, 1.0, 1.3, 2.0, 3.0, 4.0])
def test_tempo_changes_the_length_exactly_and_keeps_the_pitch(speed: float) -> None:
    samples = tone(1.5, 24_000, hertz=220)[:-11]
    out = in_blocks(pcm.Tempo(speed, 24_000), samples, 2_400)
    assert out.size == round(samples.size / speed)
    assert pitch(out, 24_000) == pytest.approx(220, rel=0.02)
    assert pcm.rms_db(out[-out.size // 10 :]) > -20  # the end is speech, not padding


@pytest.mark.parametrize("speed", [0.5, 0.8, 3.0])
def test_tempo_is_bit_for_bit_the_same_in_any_blocks(speed: float) -> None:
    samples = noise(0.5, 24_000)
    whole = in_blocks(pcm.Tempo(speed, 24_000), samples, samples.size)
    for block in (37, 777, 2_400):
        assert np.array_equal(in_blocks(pcm.Tempo(speed, 24_000), samples, block), whole)


@pytest.mark.parametrize("count", [0, 1, 100])
def test_tempo_takes_less_than_its_window(count: int) -> None:
    assert in_blocks(pcm.Tempo(0.5, 24_000), noise(1, count), 50).size == 2 * count


@pytest.mark.parametrize("speed", [0.2, 4.1, 0.0, -1.0, float("nan")])
def test_a_speed_out_of_range_names_the_field_and_the_limits(speed: float) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"between 0\.25 and 4") as caught:
        pcm.Tempo(speed, 24_000)
    assert caught.value.param == "speed"
