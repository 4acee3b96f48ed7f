"""Fake ears: what they hear is what the file says, so that a test knows every piece of every transcript.

The file is text. Each word is one window: a delta, a segment and a word of one second; the words below misbehave.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from stentor.engines.base import Launch, Progress, Rotation, cpu, numerics
from stentor.errors import EngineFailed
from stentor.protocol import Done, FromSidecar, Hello, Segment, Started, Text, Transcribe, Word


class FakeEars(Rotation):
    def __init__(self, launch: Launch, progress: Progress) -> None:
        super().__init__()
        progress("pretending", 0.5)
        self.seconds = float(launch.options.get("window_s", 0.0))
        self.hello = Hello(
            pid=os.getpid(),
            kind="stt",
            engine="fake-ears",
            model=launch.model,
            backend="fake",
            numerics=numerics(engine="fake-ears"),
            device=cpu(),
            slots=launch.slots or 2,
            capabilities=list(launch.options.get("capabilities", [])),
        )

    def work(self, request: Transcribe) -> Iterator[list[FromSidecar]]:
        yield [Started(id=request.id, slot=0)]
        words = Path(request.path or "").read_text(encoding="utf-8", errors="replace").split()
        for at, word in enumerate(words):
            if at < request.committed_samples // 16_000:
                continue
            time.sleep(self.seconds)
            yield [self.window(request, at, self.understood(request, word))]
        yield [Done(id=request.id, stats={"audio_s": 0.05 if words == ["SHORT"] else float(len(words))})]

    def understood(self, request: Transcribe, word: str) -> str:
        if word.startswith("WAIT="):  # for a file that the test makes
            while not Path(word.removeprefix("WAIT=")).exists():
                time.sleep(0.01)
            return ""
        if word == "CRASH":
            os.kill(os.getpid(), 9)
        if word == "RAISE":
            raise EngineFailed("asked to raise")
        if word in ("SILENCE", "SHORT"):
            return ""
        return {"ECHO": repr((request.language, request.context, request.timestamps, request.options))}.get(word, word)

    def window(self, request: Transcribe, at: int, word: str) -> Text:
        times = {"CROSS": (at - 3.0, at + 9.0), "FAR": (1e9, 2e9)}.get(word, (float(at), at + 1.0))
        text = Text(id=request.id, delta=f" {word}" if word else "", committed_samples=16_000 * (at + 1))
        if word and request.timestamps != "none":
            text.segments = [Segment(start=times[0], end=times[1], text=word)]
        if word and request.timestamps == "word":
            text.words = [Word(word=f" {word}", start=times[0], end=times[1])]
        return text
