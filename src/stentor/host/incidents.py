"""What an incident is: one recorded failure of a sidecar, with evidence; and the one sentence that tells it.

Owns the words of that sentence, the JSON an incident is kept as, and what is taken out of evidence before it is kept.
Knows nothing of where incidents lie (store.py), whom they are told (notify.py) and how evidence is taken.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

Kind = Literal["stalled", "died", "load_failed", "out_of_memory", "lost", "recycled"]

HAPPENED: Mapping[Kind, str] = {
    "stalled": "stopped making progress",
    "died": "died",
    "load_failed": "could not be loaded",
    "out_of_memory": "ran out of memory",
    "lost": "hung in the driver, where no signal ends it,",
    "recycled": "was replaced",
}
LONGEST_HOW = 200

RUN = 12  # a line that shares so many characters in a row with a text may be read as a part of it
SHORTEST_TEXT = 4  # of a text that is shorter than a run, all is looked for; below this it may be a part of any word
TEXT_NOTE = "[a line that held text of a request]"
TEXT = "[text]"
SECRET = "[secret]"
_KEYS = tuple(
    map(
        re.compile,
        (
            r"(://)[^/\s]+(?=@)",  # user:password@ of a URL
            r"(?i)(\bbearer\s+)[^\s\"',;]+",
            r"(?i)(\bauthorization[\"']?\s*[=:]\s*[\"']?(?:\w+\s+)?)[^\s\"',;]+",
            r"(?i)(\bapi[_-]?keys?[\"']?\s*[=:]\s*[\"']?)[^\s\"',;]+",
            r"(\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)S?=)\S+",  # capitals: max_tokens=9 is none
            r"()\b(?:sk-|hf_|tk_|gh[pousr]_)[A-Za-z0-9_-]{8,}",
        ),
    )
)
_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")


@dataclass(slots=True, kw_only=True)
class Incident:
    """One failure, from its detection to what came of it: it is recorded at once, and again when it has recovered."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    model: str
    rung: str  # the name of the profile
    device: str
    engine: str | None = None
    pid: int | None = None
    kind: Kind
    phase: str = ""
    unit: int = 0
    waited_s: float = 0.0  # how long nothing moved
    how: str = ""  # "signal 9", "no progress for 5.1 s"
    open_requests: int = 0
    action: str = ""  # what was done with its process, as a participle: "killed and restarted"
    speaks_now: str | None = None  # "hibari on cpu"; None while nothing does
    listens: bool = False  # the model transcribes: then that one listens now
    gpu_retry_at: datetime | None = None
    pause_s: float | None = None
    recovered: bool = False
    evidence: dict[str, Any] = field(default_factory=dict)

    def sentence(self) -> str:
        """What happened, when, what was done, what speaks or listens now, when the GPU is tried again."""
        parts = (self._what(), self._done(), self._now(), self._retry())
        return "; ".join(part for part in parts if part) + "."

    def _what(self) -> str:
        at = self.at.astimezone()
        detail = self._detail()
        happened = f"{self.model} on {self.device} {HAPPENED[self.kind]}"
        return f"{happened} at {at:%H:%M:%S} on {at:%Y-%m-%d}" + (f" ({detail})" if detail else "")

    def _detail(self) -> str:
        how = " ".join(self.how.split()).rstrip(".")
        how = how if len(how) <= LONGEST_HOW else f"{how[:LONGEST_HOW]}…"
        if not self.phase or "phase" in how:  # a Stall says it itself
            return how
        phase = f"in phase {self.phase!r}, unit {self.unit}"
        return f"{how} {phase}" if how else phase

    def _done(self) -> str:
        action = f"its process was {self.action}" if self.action else ""
        joint = ", and " if " and " in action else " and "
        return joint.join(part for part in (action, self._requests()) if part)

    def _requests(self) -> str:
        after = "" if self.pause_s is None else f" after {self.pause_s:.1f} s"
        if not self.open_requests:
            return f"it was ready again{after}" if self.recovered and after else ""
        one = self.open_requests == 1
        whose = "its open request" if one else f"its {self.open_requests} open requests"
        if self.recovered:
            return f"{whose} went on in a new one{after}"
        return f"{whose} {'has' if one else 'have'} not gone on"

    def _now(self) -> str:
        verb = "listens" if self.listens else "speaks"
        return f"{self.speaks_now} {verb} now" if self.speaks_now else f"nothing {verb} in its place now"

    def _retry(self) -> str:
        what = self.device if self.device.startswith("cpu") else "the GPU"
        if self.kind == "lost":
            return f"{what} is tried again after a reboot"
        if self.gpu_retry_at is None:
            return ""
        at = self.gpu_retry_at.astimezone()
        day = "" if at.date() == self.at.astimezone().date() else f" on {at:%Y-%m-%d}"
        return f"the GPU is tried again at {at:%H:%M:%S}{day}"


_ADAPTER = TypeAdapter(Incident)


def as_dict(incident: Incident) -> dict[str, Any]:
    """For JSON, with its sentence."""
    found: dict[str, Any] = json.loads(as_json(incident))
    return found


def as_json(incident: Incident) -> str:
    """Whatever the evidence holds becomes text: an incident must not get lost over a type that JSON has not."""
    values = {one.name: getattr(incident, one.name) for one in fields(incident)}
    text = json.dumps(
        {"sentence": incident.sentence(), **values}, ensure_ascii=False, indent=2, default=_plain, skipkeys=True
    )
    return text.encode("utf-8", "replace").decode()


def from_json(text: str) -> Incident:
    """Raises ValueError for what is no incident; names it does not know are left out."""
    return _ADAPTER.validate_python(json.loads(text))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def scrub_all(evidence: Mapping[str, Any], secrets: Iterable[str], texts: Iterable[str]) -> dict[str, Any]:
    """Evidence with all of its strings scrubbed, however deep they lie."""
    known, said = list(secrets), list(texts)
    return {key: _scrub_value(value, known, said) for key, value in evidence.items()}


def _scrub_value(value: Any, secrets: list[str], texts: list[str]) -> Any:
    if isinstance(value, str):
        return "\n".join(scrub(value.split("\n"), secrets, texts))
    if isinstance(value, Mapping):
        return scrub_all(value, secrets, texts)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return scrub(value, secrets, texts)
    if isinstance(value, list | tuple):
        return [_scrub_value(one, secrets, texts) for one in value]
    return value


def scrub(lines: Iterable[str], secrets: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The lines without keys, without what looks like one, without texts of requests and without the home folder."""
    given = list(lines)
    plain = [_readable(text) for text in texts]
    spoken = _lines_with_text(given, [text for text in plain if len(text) >= RUN])
    short = [text for text in plain if SHORTEST_TEXT <= len(text) < RUN]
    hidden = sorted(filter(None, secrets), key=len, reverse=True)
    home = _home()
    return [TEXT_NOTE if i in spoken else _scrub_line(line, hidden, short, home) for i, line in enumerate(given)]


def _scrub_line(line: str, secrets: Sequence[str], short: Sequence[str], home: re.Pattern[str] | None) -> str:
    for secret in secrets:
        line = line.replace(secret, SECRET)
    for key in _KEYS:
        line = key.sub(rf"\g<1>{SECRET}", line)
    for text in short:
        line = re.sub(re.escape(text), TEXT, line, flags=re.IGNORECASE)
    return home.sub("~", line) if home else line


def _lines_with_text(lines: Sequence[str], texts: Sequence[str]) -> set[int]:
    """The numbers of the lines that share a run with a text. Texts may be long, so each is gone through once."""
    runs: dict[str, set[int]] = {}
    for number, line in enumerate(lines):
        for run in _runs(_readable(line)):
            runs.setdefault(run, set()).add(number)
    return {number for text in texts for run in _runs(text) if run in runs for number in runs[run]}


def _runs(text: str) -> Iterable[str]:
    return (text[at : at + RUN] for at in range(len(text) - RUN + 1))


def _readable(text: str) -> str:
    """As it would be compared by eye: escapes of repr and JSON opened, one space for many, no capitals."""
    opened = _CODE.sub(lambda code: chr(int(code[1], 16)), text) if "\\u" in text else text
    whole = opened.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # \ud83d\ude00 is one character
    return " ".join(re.sub(r"\\[nrt]", " ", whole).casefold().split())


def _home() -> re.Pattern[str] | None:
    try:
        home = str(Path.home())
    except RuntimeError:  # no such user, as in a container
        return None
    return re.compile(re.escape(home) + r"(?![\w.-])") if len(home) > 1 else None
