"""Settings: one name in file, variable and flag; the later source wins; a wrong one is named with its origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from stentor.errors import SettingsError
from stentor.settings import Settings, load


def _toml(folder: Path, text: str) -> Path:
    path = folder / "stentor.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_need_no_source() -> None:
    loaded = load({}, {})
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    path = _toml(tmp_path, 'port = 1\nhost = "::1"\nqueue_limit = 3')
    loaded = load({"port": 3, "host": None}, {"STENTOR_PORT": "2", "STENTOR_QUEUE_LIMIT": "4"}, path)
    assert (loaded.settings.port, loaded.settings.host, loaded.settings.queue_limit) == (3, "::1", 4)
    assert (loaded.origins["port"], loaded.origins["queue_limit"]) == ("flag", "environment")
    assert loaded.origins["host"] == str(path)


def test_the_file_may_be_named_by_a_variable(tmp_path: Path) -> None:
    path = _toml(tmp_path, "port = 9")
    assert load({}, {"STENTOR_SETTINGS": str(path)}).settings.port == 9


def test_models_are_a_table_in_the_file_and_a_list_in_a_variable(tmp_path: Path) -> None:
    path = _toml(tmp_path, '[models]\nsmall = "whisper:/m/small"\n[models.big]\nengine = "whisper"\npath = "/m/big"')
    assert {"small", "big", "hibari"} <= set(load({}, {}, path).settings.offered)
    for text in ("a=whisper:/m/a, b=hibari", '{"a": "whisper:/m/a", "b": {"engine": "hibari"}}'):
        offered = load({}, {"STENTOR_MODELS": text}).settings.offered
        assert (offered["a"].path, offered["b"].engine) == ("/m/a", "hibari")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"STENTOR_PROT": "1"}, "unknown setting 'STENTOR_PROT' (environment); did you mean 'port'?"),
        ({"STENTOR_XYZZY": "1"}, "unknown setting 'STENTOR_XYZZY' (environment); settings are: host, port"),
        ({"STENTOR_PORT": "many"}, "port (environment): Input should be a valid integer"),
        ({"STENTOR_PORT": "70000"}, "port (environment): Input should be less than or equal to 65535"),
        ({"STENTOR_SPEECH_MODEL": "nobody"}, "speech_model = 'nobody' is not among the models: hibari"),
        ({"STENTOR_SPEECH_MODEL": "whisper-tiny.en"}, "is not among the models"),
        ({"STENTOR_MODELS": "a"}, "write id=ENGINE:PATH"),
        ({"STENTOR_MODELS": "a=nothing:/x"}, "unknown engine 'nothing'"),
        ({"STENTOR_MODELS": "{"}, "models (environment)"),
    ],
)
def test_a_wrong_setting_is_named_with_its_origin_and_the_nearest_valid_name(
    environ: dict[str, str], message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load({}, environ)
    assert message in caught.value.message


@pytest.mark.parametrize(("text", "message"), [("port = ", "is not TOML"), ("prot = 1", "did you mean 'port'")])
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = _toml(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load({}, {}, path)
    assert message in caught.value.message
    assert str(path) in caught.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load({}, {}, tmp_path / "missing.toml")


def test_an_empty_variable_means_absent() -> None:
    assert load({}, {"STENTOR_PORT": ""}).settings.port == Settings().port


def test_keys_never_show_in_a_print() -> None:
    settings = load({}, {"STENTOR_API_KEYS": "one, two"}).settings
    assert [key.get_secret_value() for key in settings.api_keys] == ["one", "two"]
    assert "one" not in repr(settings)


@pytest.mark.parametrize("key", ["kä1", "a\nb", "密钥"])
def test_a_key_that_no_header_can_carry_is_refused_at_start(key: str) -> None:
    with pytest.raises(SettingsError, match="ASCII"):
        load({}, {"STENTOR_API_KEYS": key})
