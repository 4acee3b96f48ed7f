"""The tables of what is known about chips, environment variables and log lines, each row with its source.

A device quirk is a row, never an `if` (DESIGN.md 1.7). Owns their shape; what follows from a row is decided elsewhere.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

Grade = Literal["A", "B", "C", "?"]
"""A: source code or the vendor's documentation; B: a maintainer or several reports; C: one report; ?: contradictory."""

Where = Literal["stderr", "kernel"]


def _a_pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"not a pattern: {error}") from error
    return value


class Row(BaseModel):
    """What every row has."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    grade: Grade
    source: str


class Chip(Row):
    """One gfx target. `override` is for wheels without code for it; `forbid_override`: any one breaks it."""

    gfx: str
    products: str
    apu: bool
    override: str | None = None
    override_when: Literal["no native code"] | None = None  # the wheel's arch list lacks the chip
    forbid_override: bool = False
    vgpr_per_simd: int | None = None
    native_since: str | None = None  # the first torch wheel with code for it
    recommended: Literal["gpu", "cpu"] = "gpu"
    note: str = ""

    @property
    def families(self) -> frozenset[str]:
        """The selectors of knobs.toml that mean this chip."""
        rdna = not self.gfx.startswith("gfx9")
        return frozenset({"any", "rocm", self.gfx, *(["apu"] if self.apu else []), *(["rdna"] if rdna else [])})


class Knob(Row):
    """One environment variable (`name`) or engine option (`option`); `set = false` rows are only warned of."""

    name: str | None = None
    option: str | None = None
    value: JsonValue
    applies: Annotated[tuple[str, ...], Field(strict=False)]  # TOML has lists only
    rung: Literal["default", "safe"] = "default"
    set: bool = True
    effect: str

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.name) == bool(self.option):
            raise ValueError("a knob has either a name or an option")
        return self


class Signature(Row):
    """One line that a runtime or the kernel writes when something is wrong."""

    name: str
    pattern: Annotated[str, AfterValidator(_a_pattern)]
    where: Where
    kind: str
    critical: bool = False
    lost: bool = False  # the device needs a reset or a reboot before it is tried again
    act: str
    example: str


@dataclass(frozen=True, slots=True)
class Match:
    """A line of a log, and what it means."""

    signature: Signature
    line: str


@functools.cache
def chips() -> tuple[Chip, ...]:
    return tuple(Chip(**row) for row in _rows("chips"))


def chip(gfx: str) -> Chip | None:
    """The row of a target; None for one that the table does not have."""
    return next((one for one in chips() if one.gfx == gfx), None)


@functools.cache
def knobs() -> tuple[Knob, ...]:
    return tuple(Knob(**row) for row in _rows("knobs"))


@functools.cache
def signatures() -> tuple[Signature, ...]:
    return tuple(Signature(**row) for row in _rows("signatures"))


def matches(lines: Iterable[str], where: Where) -> list[Match]:
    """Each line that a signature knows, with the first that does."""
    known = [(one, re.compile(one.pattern)) for one in signatures() if one.where == where]
    found = ((line, next((row for row, pattern in known if pattern.search(line)), None)) for line in lines)
    return [Match(row, line) for line, row in found if row]


def _rows(table: str) -> list[dict[str, Any]]:
    text = importlib.resources.files(__package__).joinpath(f"{table}.toml").read_text("utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)[table]
    return rows
