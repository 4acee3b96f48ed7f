"""What clients and operators ask before they use the server: models, voices, health, metrics, keys."""

from __future__ import annotations

import http.client

import httpx
import openai
import pytest

from tests.conftest import Server, fake_settings, serving


def test_models_are_listed_in_openais_shape_and_in_open_webuis(bundled: Server) -> None:
    client = openai.OpenAI(base_url=f"{bundled.base}/v1", api_key="unused")
    assert {model.id for model in client.models.list()} == {"hibari", "whisper-tiny.en"}
    assert {model["id"] for model in bundled.get("/v1/audio/models").json()["models"]} >= {"hibari"}
    assert bundled.get("/v1/models/hibari").json()["capabilities"] == ["speed", "seed", "resume"]
    assert bundled.get("/v1/models/hibari").json()["default"] is True
    assert bundled.get("/v1/models/nobody").status_code == 404


def test_voices_are_objects_with_id_and_name(bundled: Server) -> None:
    voices = bundled.get("/v1/audio/voices").json()["voices"]
    assert [(voice["id"], voice["name"], voice["languages"]) for voice in voices] == [("heart", "Heart", ["en"])]


def test_live_ready_and_health_say_what_is_so(bundled: Server) -> None:
    assert bundled.get("/live").json() == {"status": "alive"}
    ready = bundled.get("/ready")
    assert ready.status_code == 200
    assert ready.json()["status"] == "ready"
    assert set(ready.json()["models"]) == {"hibari", "whisper-tiny.en"}
    health = bundled.get("/health")
    assert health.status_code == 200
    assert health.json()["sidecars"]["hibari"]["state"] in ("ready", "busy")


def test_ready_is_503_while_a_default_model_loads_and_while_its_load_fails() -> None:
    settings = {**fake_settings(load="fail"), "preload": "true"}
    with serving(ready=False, **settings) as server:
        answer = server.get("/ready")
        assert answer.status_code == 503
        assert answer.json()["models"]["fake"] in ("starting", "restarting")


def test_metrics_count_requests_audio_and_sidecars(bundled: Server) -> None:
    bundled.speak("Hello.")
    text = bundled.get("/metrics").text
    assert 'stentor_requests_total{route="/v1/audio/speech",status="200"}' in text
    assert 'stentor_sidecar_up{model="hibari"} 1.0' in text
    assert "stentor_audio_seconds_total" in text
    assert 'stentor_first_byte_seconds_count{model="hibari"}' in text


def test_an_unknown_path_and_a_wrong_method_have_openais_error_shape(bundled: Server) -> None:
    for answer, status in ((bundled.get("/nothing"), 404), (bundled.get("/v1/audio/speech"), 405)):
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_the_api_description_names_both_routes(bundled: Server) -> None:
    paths = bundled.get("/openapi.json").json()["paths"]
    assert {"/v1/audio/speech", "/v1/audio/transcriptions", "/v1/models"} <= set(paths)


@pytest.fixture(scope="module")
def locked() -> object:
    with serving(ready=False, api_keys="first-key,second-key", **fake_settings()) as server:
        yield server


@pytest.mark.parametrize("key", ["first-key", "second-key"])
def test_any_of_the_keys_opens(locked: Server, key: str) -> None:
    assert locked.speak("one", headers={"authorization": f"Bearer {key}"}).status_code == 200


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic first-key", "first-key"])
def test_without_a_key_speech_and_transcription_are_401(locked: Server, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    answer = locked.speak("one", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert answer.headers["www-authenticate"] == "Bearer"
    upload = httpx.post(f"{locked.base}/v1/audio/transcriptions", files={"file": b"x"}, headers=headers)
    assert upload.status_code == 401


@pytest.mark.parametrize("path", ["/v1/models", "/v1/audio/models", "/v1/audio/voices", "/live", "/health", "/metrics"])
def test_discovery_is_open_because_open_webui_asks_without_a_key(locked: Server, path: str) -> None:
    assert locked.get(path).status_code == 200


def _status_with_empty_bearer(server: Server) -> int:
    """SillyTavern's header, which httpx refuses to send."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers = {"authorization": "Bearer ", "content-type": "application/json"}
    connection.request("POST", "/v1/audio/speech", '{"input": "one", "response_format": "pcm"}', headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_an_empty_bearer_is_welcome_where_no_key_is_set_and_only_there(fake: Server, locked: Server) -> None:
    assert _status_with_empty_bearer(fake) == 200
    assert _status_with_empty_bearer(locked) == 401


def test_discovery_can_be_locked_but_live_and_ready_stay_open() -> None:
    settings = {**fake_settings(), "api_keys": "key", "lock_discovery": "true"}
    with serving(ready=False, **settings) as server:
        for path in ("/v1/models", "/v1/models/fake", "/v1/audio/models", "/v1/audio/voices", "/health", "/metrics"):
            assert server.get(path).status_code == 401, path
            assert server.get(path, headers={"authorization": "Bearer key"}).status_code == 200, path
        assert server.get("/live").status_code == 200
        assert server.get("/ready").status_code == 200


def test_a_browser_is_answered_only_where_its_origin_is_listed() -> None:
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    settings = {**fake_settings(), "api_keys": "key", "cors_origins": "https://app.example"}
    with serving(ready=False, **settings) as server:
        for origin, allowed in (("https://app.example", True), ("https://evil.example", False)):
            answer = httpx.options(f"{server.base}/v1/audio/speech", headers={"origin": origin, **preflight})
            assert (answer.headers.get("access-control-allow-origin") == origin) is allowed
            assert (answer.status_code == 200) is allowed


def test_no_origin_is_allowed_by_default(fake: Server) -> None:
    assert "access-control-allow-origin" not in fake.get("/live", headers={"origin": "https://a.example"}).headers


@pytest.mark.parametrize("path", ["/live", "/ready", "/health", "/metrics", "/v1/models", "/v1/audio/voices"])
def test_a_monitor_that_only_asks_for_the_head_gets_it(bundled: Server, path: str) -> None:
    answer = httpx.head(bundled.base + path, timeout=30)
    assert (answer.status_code, answer.content) == (200, b"")
