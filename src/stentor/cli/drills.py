"""One drill after the other against a running server: the requests, the comparison, the verdict.

Knows the server by its HTTP alone, as any client does; what was detected it reads from the server's incidents.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from ..host.incidents import Incident
from ..host.store import IncidentStore
from .drill import Outcome, is_harmless
from .own_server import OwnServer

TEXT = (
    "The first sentence is short. The second one says a little more than the first. "
    "Here the third begins, and somewhere in it the process dies. The fourth is said by another process. "
    "Nobody who listens should notice. The sixth sentence speaks of rain and of the sea. "
    "The seventh is nearly the last. And this is the end."
)
# Over a minute, so more than one window of a transcription; no sentence twice, since Whisper takes that for a loop.
LONG = (
    f"{TEXT} "
    "In the morning the baker opens his shop before anyone else is awake. Two farmers drive to the market with "
    "their carts full of apples. A letter has arrived for the doctor, but she is not at home. The children on the "
    "bridge are counting boats. Nobody remembers who built the old tower, or why its door faces north. When the "
    "train is late, the station master plays the violin. It has not rained since April, and the river is low. My "
    "sister writes about birds, my brother repairs clocks. At noon the whole town smells of coffee. Later the wind "
    "turns, and the fishermen come back with empty nets. Somebody has painted the bench in front of the library "
    "green. In the evening the lamps are lit one after the other."
)
RECOVERY_S = 60.0
INCIDENT_S = 5.0


class Drills:
    """Runs drills on one server, whose incidents lie in `data`."""

    def __init__(self, server: OwnServer, data: str) -> None:
        self._server = server
        self._data = Path(data)
        self._undisturbed: dict[str, bytes] = {}
        self._recording = b""

    def run(self, wanted: list[tuple[str, str]], show: Callable[[Outcome], None]) -> list[Outcome]:
        outcomes = []
        for kind, fault in wanted:
            outcomes.append(self._drill(kind, fault))
            show(outcomes[-1])
        return outcomes

    def _drill(self, kind: str, fault: str) -> Outcome:
        if kind not in self._undisturbed:
            self._undisturbed[kind], _ = self._ask(kind, None)
        self._server.wait_until_healthy(RECOVERY_S)  # also of the drill before it
        before = len(self._incidents())
        try:
            seen, pause = self._ask(kind, fault)
            problem = ""
        except httpx.HTTPError as error:
            seen, pause, problem = b"", 0.0, f"lost: {error or type(error).__name__}"
        identical = seen == self._undisturbed[kind]
        incidents = self._new_incidents(before, fault)
        verdict = problem or self._verdict(fault, identical, incidents)
        waited = [one.waited_s for one in incidents if one.waited_s]
        return Outcome(fault, kind, waited[0] if waited else None, pause, identical, verdict)

    def _verdict(self, fault: str, identical: bool, incidents: list[Incident]) -> str:
        if is_harmless(fault) and incidents:
            return f"a false alarm: {incidents[0].sentence()}"
        if not is_harmless(fault) and not incidents:
            return "the fault did not happen, or was not recorded"
        if not identical:
            return "lost: not the bytes of the undisturbed run"
        self._server.wait_until_healthy(RECOVERY_S)
        return "ok"

    def _ask(self, kind: str, fault: str | None) -> tuple[bytes, float]:
        """What came, and the longest time in which nothing came."""
        return self._speak(TEXT, fault) if kind == "speech" else self._listen(fault)

    def _speak(self, text: str, fault: str | None) -> tuple[bytes, float]:
        body: dict[str, Any] = {"input": text, "response_format": "wav", "seed": 7}
        if fault:
            body["fault"] = fault
        return self._stream("/v1/audio/speech", json=body)

    def _listen(self, fault: str | None) -> tuple[bytes, float]:
        if not self._recording:
            self._recording, _ = self._speak(LONG, None)
        fields = {"stream": "true", **({"fault": fault} if fault else {})}
        files = {"file": ("drill.wav", self._recording)}
        return self._stream("/v1/audio/transcriptions", data=fields, files=files)

    def _stream(self, path: str, **body: Any) -> tuple[bytes, float]:
        """Raises httpx.HTTPError where the answer is an error or breaks off."""
        content, longest, last = bytearray(), 0.0, time.monotonic()
        with (
            httpx.Client(timeout=None, trust_env=False) as client,
            client.stream("POST", f"{self._server.base}{path}", **body) as answer,
        ):
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                content += piece
                longest, last = max(longest, time.monotonic() - last), time.monotonic()
        return bytes(content), max(longest, time.monotonic() - last)

    def _incidents(self) -> list[Incident]:
        return IncidentStore(self._data).read() if (self._data / "incidents.db").exists() else []

    def _new_incidents(self, before: int, fault: str) -> list[Incident]:
        """Those of this drill, newest last; they are written down behind the answer."""
        end = time.monotonic() + (0.5 if is_harmless(fault) else INCIDENT_S)
        while time.monotonic() < end and len(self._incidents()) == before:
            time.sleep(0.1)
        found = self._incidents()
        return list(reversed(found[: len(found) - before]))
