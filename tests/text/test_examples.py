"""The examples in the docstrings of stentor.text are run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["captions", "clean", "markup", "normalise", "split"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"stentor.text.{name}"))
    assert result.attempted
    assert not result.failed
