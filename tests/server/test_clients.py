"""The clients people have, unchanged: each test sends what that client sends (facts/serving-anchors.md A.1)."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import http.client
import json
from pathlib import Path

import httpx
import openai
import pytest

from tests.conftest import Server, fake_settings, serving
from tests.server.test_speech import probed_seconds, spoken


class TestOpenAIPython:
    def test_the_sync_client_speaks_and_reads_the_whole_body(self, bundled: Server) -> None:
        client = openai.OpenAI(base_url=f"{bundled.base}/v1", api_key="unused")
        answer = client.audio.speech.create(model="tts-1", voice="nova", input="Good morning.")
        assert probed_seconds(answer.content) > 0.5

    @pytest.mark.parametrize("format", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
    def test_the_async_client_streams_every_format_to_a_file(
        self, bundled: Server, format: str, tmp_path: Path
    ) -> None:
        async def scenario() -> None:
            async with openai.AsyncOpenAI(base_url=f"{bundled.base}/v1", api_key="unused") as client:
                speech = client.audio.speech.with_streaming_response
                async with speech.create(
                    model="gpt-4o-mini-tts",
                    voice="coral",
                    input="Good morning, everyone.",
                    response_format=format,  # type: ignore[arg-type]
                ) as answer:
                    await answer.stream_to_file(tmp_path / "out")

        asyncio.run(scenario())
        data = (tmp_path / "out").read_bytes()
        assert len(data) / 48_000 > 0.5 if format == "pcm" else probed_seconds(data) > 0.5

    def test_a_voice_object_and_an_instruction_raise_the_sdks_errors(self, bundled: Server) -> None:
        client = openai.OpenAI(base_url=f"{bundled.base}/v1", api_key="unused", max_retries=0)
        with pytest.raises(openai.NotFoundError):
            client.audio.speech.create(model="tts-1", voice={"id": "voice_1"}, input="Hi.")  # type: ignore[arg-type]
        with pytest.raises(openai.BadRequestError) as caught:
            client.audio.speech.create(model="tts-1", voice="alloy", input="Hi.", instructions="Whisper.")
        assert caught.value.param == "instructions"

    def test_a_wrong_key_is_the_sdks_authentication_error(self) -> None:
        with serving(ready=False, api_keys="right", **fake_settings()) as server:
            client = openai.OpenAI(base_url=f"{server.base}/v1", api_key="wrong", max_retries=0)
            with pytest.raises(openai.AuthenticationError):
                client.audio.speech.create(model="tts-1", voice="alloy", input="Hi.")

    def test_a_full_queue_is_the_sdks_rate_limit_error_which_it_retries_by_itself(self) -> None:
        settings = fake_settings(slots=1, frame_s=0.02)
        with serving(ready=False, queue_limit=0, **settings) as server, concurrent.futures.ThreadPoolExecutor() as pool:
            server.speak("warm")
            client = openai.OpenAI(base_url=f"{server.base}/v1", api_key="unused", max_retries=5)
            busy = pool.submit(server.speak, "word " * 40)
            while server.health("fake")["running"] == 0:
                continue
            answer = client.audio.speech.create(model="tts-1", voice="one", input="one two", response_format="pcm")
            assert answer.content == spoken("one two", 2)
            assert busy.result().status_code == 200


class TestOpenWebUI:
    def test_it_finds_voices_and_models_without_a_key(self, bundled: Server) -> None:
        voices = bundled.get("/v1/audio/voices").json()["voices"]
        assert all({"id", "name"} <= set(voice) for voice in voices)
        assert all("id" in model for model in bundled.get("/v1/audio/models").json()["models"])

    def test_a_burst_of_sentences_without_a_format_is_answered_in_mp3(self, bundled: Server) -> None:
        def ask(number: int) -> httpx.Response:
            body = {"input": f"Sentence number {number} of the answer.", "voice": "alloy", "model": "tts-1"}
            headers = {"authorization": "Bearer sk-anything", "content-type": "application/json"}
            return httpx.post(f"{bundled.base}/v1/audio/speech", json=body, headers=headers, timeout=60)

        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(ask, range(24)))
        assert {answer.status_code for answer in answers} == {200}
        assert {answer.headers["content-type"] for answer in answers} == {"audio/mpeg"}
        assert all(probed_seconds(answer.content) > 1 for answer in answers)

    def test_it_shows_the_message_of_an_error(self, bundled: Server) -> None:
        answer = httpx.post(f"{bundled.base}/v1/audio/speech", json={"input": "你好", "voice": "x", "model": "tts-1"})
        assert isinstance(answer.json()["error"]["message"], str)

    def test_it_sends_a_recording_of_the_browser_for_transcription(self, bundled: Server) -> None:
        audio = bundled.speak("Good morning, everyone.", response_format="opus").content
        files = {"file": ("recording.webm", audio, "audio/webm;codecs=opus")}
        answer = httpx.post(f"{bundled.base}/v1/audio/transcriptions", files=files, data={"model": "whisper-1"})
        assert answer.json()["text"].lower().startswith("good morning")


class TestSillyTavern:
    def test_its_empty_bearer_and_its_body_are_welcome(self, bundled: Server) -> None:
        body = {"input": "Good morning.", "response_format": "mp3", "voice": "alloy", "speed": 1, "model": "tts-1"}
        connection = http.client.HTTPConnection("127.0.0.1", bundled.port, timeout=30)
        headers = {"Authorization": "Bearer ", "Content-Type": "application/json"}
        connection.request("POST", "/v1/audio/speech", json.dumps(body), headers)
        answer = connection.getresponse()
        assert answer.status == 200
        assert probed_seconds(answer.read()) > 0.5
        connection.close()


class TestHomeAssistant:
    @pytest.mark.parametrize("format", ["mp3", "opus", "wav", "pcm", "flac", "aac"])
    def test_its_openai_integration_streams_with_instructions_none_as_text(self, bundled: Server, format: str) -> None:
        async def scenario() -> bytes:
            client = openai.AsyncOpenAI(base_url=f"{bundled.base}/v1", api_key="unused")
            speech = client.audio.speech.with_streaming_response.create(
                model="gpt-4o-mini-tts",
                voice="marin",
                input="The kitchen light is on.",
                instructions=str(None),
                speed=1.0,
                response_format=format,  # type: ignore[arg-type]
            )
            async with client, speech as answer:
                return b"".join([chunk async for chunk in answer.iter_bytes()])

        assert len(asyncio.run(scenario())) > 4000

    def test_its_speech_to_text_sends_a_wav_with_the_language(self, bundled: Server) -> None:
        wav = bundled.speak("Turn on the kitchen light.", response_format="wav", stream=False).content
        client = openai.OpenAI(base_url=f"{bundled.base}/v1", api_key="unused")
        heard = client.audio.transcriptions.create(
            model="gpt-4o-mini-transcribe",
            file=("a.wav", wav),
            language="en",
            prompt="Home Assistant",
            response_format="json",
        )
        assert "kitchen light" in heard.text.lower()


class TestLiveKit:
    def test_it_asks_for_events_and_parses_by_content_type(self, fake: Server) -> None:
        client = openai.OpenAI(base_url=f"{fake.base}/v1", api_key="unused")
        with client.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts", voice="one", input="one two", response_format="pcm", stream_format="sse"
        ) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
        assert events[-1]["type"] == "speech.audio.done"
        assert {"input_tokens", "output_tokens", "total_tokens"} == set(events[-1]["usage"])
        audio = b"".join(base64.b64decode(one["audio"]) for one in events if one["type"] == "speech.audio.delta")
        assert audio == spoken("one two", 2)

    @pytest.mark.parametrize("format", ["mp3", "opus", "pcm", "wav"])
    def test_without_events_the_media_type_says_what_to_decode(self, fake: Server, format: str) -> None:
        kind = fake.speak("one", response_format=format).headers["content-type"]
        assert kind == {"mp3": "audio/mpeg", "opus": "audio/ogg", "pcm": "audio/pcm", "wav": "audio/wav"}[format]


class TestPipecat:
    @pytest.mark.parametrize(
        "voice",
        [
            "alloy",
            "ash",
            "ballad",
            "cedar",
            "coral",
            "echo",
            "fable",
            "marin",
            "nova",
            "onyx",
            "sage",
            "shimmer",
            "verse",
        ],
    )
    def test_every_openai_voice_gives_pcm_at_24_khz(self, bundled: Server, voice: str) -> None:
        answer = bundled.speak("Good morning.", voice=voice, model="gpt-4o-mini-tts", response_format="pcm")
        assert answer.status_code == 200
        assert 0.5 < len(answer.content) / 2 / 24_000 < 2.5


class TestOpenLLMVTuber:
    def test_sentences_in_parallel_come_back_whole_in_their_order(self, fake: Server) -> None:
        """It aims at Kokoro by default; its own voice name is unknown here and must be told, not replaced."""
        sentences = [f"{chr(97 + number) * 3} sentence" for number in range(12)]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda text: fake.speak(text, voice="one", response_format="wav"), sentences))
        assert [answer.content[44:] for answer in answers] == [spoken(text, 2) for text in sentences]
        assert fake.speak("one", voice="af_sky+af_bella").status_code == 404

    @pytest.mark.parametrize("text", ["", " ", "…", "😀", "*", "。"])
    def test_a_sentence_without_words_has_one_recognisable_code(self, fake: Server, text: str) -> None:
        assert fake.speak(text).json()["error"]["code"] == "nothing_to_say"
