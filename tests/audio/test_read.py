from __future__ import annotations

import gc
import itertools
import logging
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import psutil
import pytest
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet

from stentor import errors
from stentor.audio import pcm, read
from tests.audio.files import Samples, mp3_with_cover, noise, recording, tone, video_only, wav

RATE = 16_000
LEVEL_DB = -9.03  # of a tone at 0.5

Save = Callable[..., Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def save(data: bytes, name: str = "upload.bin") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return save


def level_db(samples: Samples) -> float:
    return pcm.rms_db(samples[RATE // 10 : -RATE // 10])


def tone_wav(seconds: float = 1.0, **header: int) -> bytes:
    return wav(pcm.to_s16(tone(seconds, RATE)), **header)


KINDS = {
    "wav": ("wav", "pcm_s16le", 44_100),
    "24-bit wav": ("wav", "pcm_s24le", 48_000),
    "32-bit float wav": ("wav", "pcm_f32le", 24_000),
    "64-bit float wav": ("wav", "pcm_f64le", 24_000),
    "64-bit wav": ("wav", "pcm_s64le", 24_000),
    "8-bit wav": ("wav", "pcm_u8", 22_050),
    "mu-law at 8 kHz": ("wav", "pcm_mulaw", 8_000),
    "a-law at 8 kHz": ("wav", "pcm_alaw", 8_000),
    "flac": ("flac", "flac", 44_100),
    "mp3": ("mp3", "libmp3lame", 44_100),
    "m4a": ("mp4", "aac", 44_100),
    "alac": ("mp4", "alac", 44_100),
    "3gp": ("3gp", "aac", 16_000),
    "webm": ("webm", "libopus", 48_000),
    "ogg opus": ("ogg", "libopus", 48_000),
    "adts aac": ("adts", "aac", 24_000),
    "mpeg-ts": ("mpegts", "aac", 48_000),
    "matroska": ("matroska", "pcm_f32le", 16_000),
    "wavpack": ("wv", "wavpack", 24_000),
    "aiff": ("aiff", "pcm_s16be", 44_100),
    "caf": ("caf", "pcm_s16be", 44_100),
    "au": ("au", "pcm_mulaw", 8_000),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_recording_is_read_in_full_and_at_its_level(kind: str, save: Save) -> None:
    container, codec, rate = KINDS[kind]
    samples = read.read(save(recording(container, codec, [tone(1.0, rate)], rate)), RATE)
    assert samples.dtype == np.float32
    assert samples.ndim == 1
    assert samples.size == pytest.approx(RATE, abs=0.07 * RATE)  # priming and the last frame, in some containers
    assert level_db(samples) == pytest.approx(LEVEL_DB, abs=0.6)  # LAME lowers the level by 5 %


@pytest.mark.parametrize(("container", "codec"), [("webm", "libopus"), ("matroska", "libopus"), ("ogg", "flac")])
def test_a_piped_recording_without_a_duration_is_read_in_full(container: str, codec: str, save: Save) -> None:
    data = recording(container, codec, [tone(1.5, 48_000)], 48_000, piped=True)
    assert read.read(save(data), RATE).size == pytest.approx(1.5 * RATE, abs=2)


@pytest.mark.parametrize(("container", "codec"), [("mp4", "aac"), ("avi", "mp2"), ("mpegts", "aac")])
def test_a_video_gives_its_sound(container: str, codec: str, save: Save) -> None:
    samples = read.read(save(recording(container, codec, [tone(1.0, 24_000)], 24_000, video=True)), RATE)
    assert samples.size == pytest.approx(RATE, abs=0.07 * RATE)
    assert level_db(samples) == pytest.approx(LEVEL_DB, abs=0.1)


def test_a_video_without_sound_is_named_as_such(save: Save) -> None:
    with pytest.raises(errors.UndecodableAudio, match="holds no audio stream"):
        read.read(save(video_only()), RATE)


def test_an_mp3_with_cover_art_gives_its_sound(save: Save) -> None:
    sound = recording("mp3", "libmp3lame", [tone(1.0, 24_000)], 24_000)
    covered = read.read(save(mp3_with_cover(sound)), RATE)
    assert np.array_equal(covered, read.read(save(sound), RATE))


@pytest.mark.parametrize("name", ["speech.wav", "speech.mp3", "speech.m3u8", "speech.txt", "speech", "录音 ü.flac"])
def test_a_file_is_judged_by_its_bytes_and_never_by_its_name(name: str, save: Save) -> None:
    m4a = recording("mp4", "aac", [tone(1.0, 24_000)], 24_000)
    assert level_db(read.read(save(m4a, name), RATE)) == pytest.approx(LEVEL_DB, abs=0.1)


# Channels ------------------------------------------------------------------------------------------------------------


def stereo(left: Samples, right: Samples) -> bytes:
    return recording("wav", "pcm_s16le", [left, right], RATE)


@pytest.mark.parametrize("dead", [np.zeros(RATE, np.float32), noise(1.0, RATE, level=1e-4)], ids=["zeros", "hiss"])
@pytest.mark.parametrize("left", [True, False])
def test_a_stereo_file_with_one_silent_channel_keeps_its_level(left: bool, dead: Samples, save: Save) -> None:
    sound = tone(1.0, RATE)
    samples = read.read(save(stereo(sound, dead) if left else stereo(dead, sound)), RATE)
    assert pcm.to_s16(samples) == pcm.to_s16(sound)


def test_two_channels_that_both_sound_are_averaged(save: Save) -> None:
    left, right = noise(1.0, RATE, seed=1), noise(1.0, RATE, seed=2)
    assert read.read(save(stereo(left, right)), RATE) == pytest.approx((left + right) / 2, abs=1e-4)


def test_a_channel_counts_from_its_first_sound_on_without_a_click(save: Save) -> None:
    caller, callee = tone(2.0, RATE, hertz=200), tone(2.0, RATE, hertz=330)
    callee[: RATE + 800] = 0.0
    samples = read.read(save(stereo(caller, callee)), RATE)
    assert np.array_equal(np.rint(samples[:RATE] * 32768), np.rint(caller[:RATE] * 32768))
    later = slice(RATE + RATE // 4, None)
    assert samples[later] == pytest.approx((caller[later] + callee[later]) / 2, abs=1e-4)
    steepest = 0.5 * 2 * np.pi * 330 / RATE  # of either tone alone
    assert np.abs(np.diff(samples)).max() < 1.5 * steepest


def test_a_channel_that_is_the_other_upside_down_does_not_cancel_it(save: Save) -> None:
    sound = noise(1.0, RATE, level=0.2)
    samples = read.read(save(stereo(sound, -sound)), RATE)
    assert np.abs(samples) == pytest.approx(np.abs(sound), abs=1e-4)


def test_a_voice_in_one_of_six_channels_keeps_its_level(save: Save) -> None:
    quiet, sound = np.zeros(RATE, np.float32), tone(1.0, RATE)
    data = recording("wav", "pcm_s16le", [quiet, quiet, sound, quiet, quiet, quiet], RATE)
    assert level_db(read.read(save(data), RATE)) == pytest.approx(LEVEL_DB, abs=0.05)


def test_a_recorder_with_many_channels_is_read(save: Save) -> None:
    frames = np.zeros((RATE, 16), np.float32)
    frames[:, 11] = tone(1.0, RATE)
    samples = read.read(save(wav(pcm.to_s16(frames.reshape(-1)), channels=16)), RATE)
    assert level_db(samples) == pytest.approx(LEVEL_DB, abs=0.05)


# Broken files --------------------------------------------------------------------------------------------------------


def test_a_wav_of_unknown_length_is_read_in_full(save: Save) -> None:
    assert read.read(save(tone_wav(stated=0xFFFFFFFF)), RATE).size == RATE


def test_a_wav_cut_short_gives_what_is_there(save: Save) -> None:
    whole = tone_wav()
    samples = read.read(save(whole[: len(whole) // 2 + 1]), RATE)
    assert RATE / 2 - 2048 <= samples.size <= RATE / 2  # FFmpeg 7 drops a last packet that ends in half a sample
    assert pcm.to_s16(samples) == whole[44 : 44 + 2 * samples.size]


@pytest.mark.parametrize(
    ("container", "codec"), [("mp3", "libmp3lame"), ("flac", "flac"), ("ogg", "libopus"), ("webm", "libopus")]
)
def test_a_compressed_file_cut_short_gives_what_is_there(container: str, codec: str, save: Save) -> None:
    whole = recording(container, codec, [noise(4.0, 48_000)], 48_000)
    samples = read.read(save(whole[: len(whole) // 2]), RATE)
    assert 0.9 * RATE < samples.size < 2.6 * RATE  # of two seconds; Ogg loses all of the page that is cut


@pytest.mark.parametrize(("container", "codec"), [("mp3", "libmp3lame"), ("adts", "aac"), ("flac", "flac")])
def test_corrupt_packets_in_the_middle_are_left_out(container: str, codec: str, save: Save) -> None:
    data = bytearray(recording(container, codec, [tone(4.0, 24_000) + noise(4.0, 24_000, level=0.01)], 24_000))
    middle, hole = len(data) // 2, len(data) // 20
    data[middle : middle + hole] = np.random.default_rng(5).integers(0, 256, hole, np.uint8).tobytes()
    samples = read.read(save(bytes(data)), RATE)
    assert 3.3 * RATE < samples.size < 4.2 * RATE
    assert pcm.rms_db(samples[-RATE:]) == pytest.approx(LEVEL_DB, abs=0.6)


def test_corrupt_packets_are_counted_and_logged(save: Save, caplog: pytest.LogCaptureFixture) -> None:
    aac = recording("adts", "aac", [tone(2.0, 24_000)], 24_000)
    path = save(b"\xff" * 700 + aac)
    reader = read.Reader(path, RATE)
    total = sum(block.size for block in reader.blocks())
    assert reader.skipped > 0
    assert total == pytest.approx(2 * RATE, rel=0.1)
    with caplog.at_level(logging.WARNING):
        read.read(path, RATE)
    assert f"left out {reader.skipped} corrupt packets" in caplog.text


def test_a_container_that_breaks_off_gives_what_the_decoder_holds(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    # PyAV 18 ends in IndexError where a stream turned up in mid-file: 21 of 76 000 damaged MPEG-TS and other files.
    path = save(recording("adts", "aac", [tone(1.0, 24_000)], 24_000))
    opened = read._container
    monkeypatch.setattr(read, "_container", lambda file: _BreaksOff(opened(file)))
    reader = read.Reader(path, RATE)
    assert sum(block.size for block in reader.blocks()) == pytest.approx(20 * 1024 * RATE / 24_000, abs=1024)
    assert reader.skipped == 1


class _BreaksOff:
    """A container whose demuxer fails after 20 packets."""

    def __init__(self, container: InputContainer) -> None:
        self._container = container
        self.streams = container.streams

    def __enter__(self) -> _BreaksOff:
        return self

    def __exit__(self, *exit: object) -> None:
        self._container.close()

    def demux(self, stream: AudioStream) -> Iterator[Packet[AudioStream]]:
        yield from itertools.islice(self._container.demux(stream), 20)
        raise IndexError("list index out of range")


def test_samples_that_are_no_numbers_become_silence(save: Save) -> None:
    sound = tone(1.0, RATE)
    sound[100:103] = np.nan, np.inf, -np.inf
    sound[103] = 1e30
    samples = read.read(save(wav(pcm.to_f32(sound), bits=32, tag=3)), RATE)
    assert samples[99:105].tolist() == [sound[99], 0.0, 0.0, 0.0, 1.0, sound[104]]


def test_a_rate_and_channels_that_change_in_mid_stream_are_followed(save: Save) -> None:
    first = recording("adts", "aac", [tone(1.0, 24_000)], 24_000)
    second = recording("adts", "aac", [tone(1.0, 48_000), tone(1.0, 48_000)], 48_000)
    samples = read.read(save(first + second), RATE)
    assert samples.size == pytest.approx(2 * RATE, rel=0.06)
    assert level_db(samples) == pytest.approx(LEVEL_DB, abs=0.3)


@pytest.mark.parametrize(
    "header",
    [
        {"channels": 0},
        {"sample_rate": 0},
        {"sample_rate": 1},
        {"sample_rate": 2**32 - 1},
        {"channels": 65_535},
        {"bits": 0},
        {"bits": 4_096},
        {"tag": 0x9999},
    ],
    ids=str,
)
def test_a_header_with_absurd_values_is_undecodable(header: dict[str, int], save: Save) -> None:
    with pytest.raises(errors.UndecodableAudio):
        read.read(save(tone_wav(**header)), RATE)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (wav(b""), "holds no samples"),
        (wav(b"", stated=100_000), "holds no samples"),
        (b"Hello, this is the text of a letter.\n" * 100, "not audio"),
        (b"<!DOCTYPE html><html><body>404</body></html>" * 50, "not audio"),
        (b'{"error": {"message": "no such file"}}', "not audio"),
        (bytes(100_000), "not audio"),
        (np.random.default_rng(1).integers(0, 256, 100_000, np.uint8).tobytes(), "not audio"),
        (recording("webm", "libopus", [tone(1.0, 48_000)], 48_000)[600:], "not audio"),
        (recording("mp4", "aac", [tone(1.0, 24_000)], 24_000)[:4_000], "not audio"),
    ],
    ids=["empty", "header only", "header lies", "text", "html", "json", "zeros", "garbage", "webm tail", "m4a head"],
)
def test_what_holds_no_audio_is_undecodable_in_one_sentence(data: bytes, says: str, save: Save) -> None:
    with pytest.raises(errors.UndecodableAudio, match=says) as caught:
        read.read(save(data, "speech.mp3"), RATE)
    assert caught.value.message.endswith(".")
    assert "Errno" not in caught.value.message


def test_a_file_that_is_not_there_is_undecodable(tmp_path: Path) -> None:
    with pytest.raises(errors.UndecodableAudio, match="cannot be opened"):
        read.read(tmp_path / "gone.wav", RATE)


# Files that would open others ----------------------------------------------------------------------------------------

PLAYLISTS = {
    "m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1.0,\n{url}\n#EXT-X-ENDLIST\n",
    "ffconcat": "ffconcat version 1.0\nfile '{url}'\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\na=control:{url}\n",
    "mpd": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>{url}</BaseURL></MPD>',
    "pls": "[playlist]\nFile1={url}\nNumberOfEntries=1\n",
    "imf": '<?xml version="1.0"?><AssetMap><Path>{url}</Path></AssetMap>',
}


@pytest.mark.parametrize("name", ["speech.wav", "speech.m3u8"])
@pytest.mark.parametrize("kind", PLAYLISTS)
def test_a_playlist_opens_nothing(kind: str, name: str, save: Save, opened_files: list[str]) -> None:
    secret = save(tone_wav(), "secret.wav")
    path = save(PLAYLISTS[kind].format(url=secret).encode(), name)
    opened_files.clear()
    with pytest.raises(errors.UndecodableAudio, match="not audio"):
        read.read(path, RATE)
    assert opened_files == [str(path)]


@pytest.fixture
def opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every path that `read` opens or that FFmpeg asks for."""
    opened: list[str] = []
    plain, refuse = Path.open, read._refuse

    def watched(path: Path, *args: object, **kwargs: object) -> object:
        opened.append(str(path))
        return plain(path, *args, **kwargs)  # type: ignore[arg-type]

    def refused(url: str, flags: int, options: dict[str, str]) -> None:
        opened.append(url)
        refuse(url, flags, options)

    monkeypatch.setattr(Path, "open", watched)
    monkeypatch.setattr(read, "_refuse", refused)
    return opened


def test_no_reader_of_other_files_is_among_the_containers() -> None:
    allowed = set(read._CONTAINERS.split(","))
    assert not allowed & {"hls", "applehttp", "dash", "concat", "sdp", "rtsp", "rtp", "imf", "image2", "lavfi", "tee"}


def test_no_video_decoder_is_reachable(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []
    plain = av.open

    def watched(*args: Any, container_options: dict[str, str], **kwargs: Any) -> InputContainer:
        given.append(container_options)
        return plain(*args, container_options=container_options, **kwargs)

    monkeypatch.setattr(av, "open", watched)
    read.read(save(tone_wav()), RATE)
    codecs = set(given[0]["codec_whitelist"].split(","))
    assert {"mp3", "aac", "opus", "flac", "pcm_mulaw"} <= codecs
    assert not {"h264", "mpeg4", "png", "mjpeg", "vp9"} & codecs


# Limits and memory ---------------------------------------------------------------------------------------------------


def test_a_recording_over_the_limit_of_seconds_is_too_large_and_names_it(save: Save) -> None:
    path = save(tone_wav(2.0, stated=0xFFFFFFFF))
    given: list[Samples] = []
    with pytest.raises(errors.TooLarge, match=r"longer than 1\.5 seconds"):
        given.extend(read.blocks(path, RATE, read.ReadLimits(max_seconds=1.5)))
    assert RATE < sum(block.size for block in given) <= 1.5 * RATE
    assert read.read(path, RATE, read.ReadLimits(max_seconds=2.0)).size == 2 * RATE


def test_a_small_file_of_endless_silence_is_stopped_by_decoded_seconds(save: Save) -> None:
    bomb = recording("flac", "flac", [np.zeros(120 * 48_000, np.float32)], 48_000)
    assert len(bomb) < 120 * 48_000 * 2 / 100
    with pytest.raises(errors.TooLarge):
        read.read(save(bomb), RATE, read.ReadLimits(max_seconds=60))


def test_a_file_over_the_limit_of_bytes_is_too_large_before_it_is_decoded(save: Save) -> None:
    data = tone_wav()
    with pytest.raises(errors.TooLarge, match=rf"{len(data)} bytes.*at most 1000"):
        next(read.blocks(save(data), RATE, read.ReadLimits(max_bytes=1_000)))


def test_blocks_stay_small_and_memory_with_them(save: Save) -> None:
    path = save(recording("flac", "flac", [noise(60.0, 48_000)], 48_000))
    tracemalloc.start()
    largest = max(block.size for block in read.blocks(path, RATE))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest <= 0.25 * RATE
    assert peak < 2_000_000  # the whole is 3.8 MB at 16 kHz, 11.5 MB as decoded


def test_blocks_add_up_to_the_whole(save: Save) -> None:
    path = save(recording("mp3", "libmp3lame", [noise(3.0, 44_100)], 44_100))
    assert np.array_equal(np.concatenate(list(read.blocks(path, RATE))), read.read(path, RATE))


def test_a_reader_that_stops_early_leaves_no_file_open(save: Save) -> None:
    path = save(tone_wav(5.0))
    blocks = read.blocks(path, RATE)
    next(blocks)
    blocks.close()
    gc.collect()
    assert str(path) not in {file.path for file in psutil.Process().open_files()}


# Hostile files -------------------------------------------------------------------------------------------------------

SEEDS = range(40)


@pytest.mark.parametrize(
    "kind", ["m4a", "webm", "flac", "mp3", "32-bit float wav", "ogg opus", "mpeg-ts", "caf", "wavpack"]
)
def test_damaged_files_give_samples_or_one_of_our_errors(kind: str, save: Save) -> None:
    container, codec, rate = KINDS[kind]
    seconds = 3.0 if container == "ogg" else 0.3  # one damaged byte costs Ogg a page, which is a second
    whole = recording(container, codec, [tone(seconds, rate)], rate)
    outcomes = {_outcome(save(_damaged(whole, seed))) for seed in SEEDS}
    assert outcomes <= {"samples", "UndecodableAudio", "TooLarge"}
    assert "samples" in outcomes


def _damaged(data: bytes, seed: int) -> bytes:
    random = np.random.default_rng(seed)
    broken = bytearray(data)
    reach = len(data) if seed % 2 else 200
    for position in random.integers(0, reach, int(random.integers(1, 10))):
        if random.random() < 0.2:
            del broken[position : position + int(random.integers(1, 100))]
        else:
            broken[position : position + 2] = random.integers(0, 256, 2, np.uint8).tobytes()
    return bytes(broken)


def _outcome(path: Path) -> str:
    try:
        for block in read.blocks(path, RATE, read.ReadLimits(max_seconds=60)):
            assert np.isfinite(block).all()
            assert np.abs(block).max() <= 1.0
    except errors.StentorError as error:
        return type(error).__name__
    return "samples"
