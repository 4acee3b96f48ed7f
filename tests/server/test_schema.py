"""Schemathesis reads the API's own description and tries it: no 500, no wedge, and answers that are as described."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis

from tests.conftest import Server, fake_settings, serving

CHECKS = ("not_a_server_error", "content_type_conformance", "response_schema_conformance")
OPERATIONS = [
    ("POST", "/v1/audio/speech"),
    ("POST", "/v1/audio/transcriptions"),
    ("POST", "/v1/audio/translations"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("POST", "/v1/models/{model}/load"),
    ("POST", "/v1/models/{model}/unload"),
    ("GET", "/v1/audio/voices"),
    ("GET", "/live"),
    ("GET", "/ready"),
    ("GET", "/health"),
]


@pytest.fixture(scope="module")
def described() -> Iterator[tuple[Server, schemathesis.BaseSchema]]:
    with serving(ready=False, log_level="error", **fake_settings(slots=8)) as server:
        yield server, schemathesis.openapi.from_url(f"{server.base}/openapi.json")


def test_every_operation_of_the_description_is_tried(described: tuple[Server, schemathesis.BaseSchema]) -> None:
    found = {(one.ok().method.upper(), one.ok().path) for one in described[1].get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_whatever_is_sent_the_answer_is_one_that_the_description_allows(
    described: tuple[Server, schemathesis.BaseSchema], method: str, path: str
) -> None:
    server, schema = described

    @hypothesis.given(case=schema[path][method].as_strategy())
    @hypothesis.settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    def attempt(case: schemathesis.Case) -> None:
        answer = case.call(base_url=server.base, timeout=30)
        if answer.status_code != 503:  # a model that is asked for may be loading
            assert answer.status_code < 500, answer.text
        case.validate_response(answer, checks=[schemathesis.checks.CHECKS.get_one(name) for name in CHECKS])

    attempt()
    assert server.speak("one").status_code == 200
