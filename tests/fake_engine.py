"""A fake engine: deterministic frames, slots, a speed that the test chooses. It drives the host through every path.

The text commands it: each word is one frame; the words below make it misbehave. Its audio is a tone whose frequency
is the utterance's own, so that a mixed-up stream is heard.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stentor.audio import pcm
from stentor.engines.base import Launch, Progress, Rotation, cpu, numerics
from stentor.errors import EngineFailed
from stentor.journal import Journal
from stentor.protocol import Audio, Done, FromSidecar, Hello, Started, Synthesize, Text, Transcribe, VoiceFacts

RATE = 24_000
FRAME = RATE // 10


def tone(text: str, frame: int, level: float = 0.5) -> np.ndarray:
    """100 ms of this text's own tone; a pure function, so that the test knows every sample."""
    at = np.arange(frame * FRAME, (frame + 1) * FRAME) / RATE
    return (level * np.sin(2 * np.pi * (200 + zlib.crc32(text.encode()) % 2000) * at)).astype(np.float32)


class FakeEngine(Rotation):
    def __init__(self, launch: Launch, progress: Progress) -> None:
        super().__init__()
        progress("pretending", 0.5)
        self.crash_at = int(launch.options.get("crash_at", -1))
        self.level = float(launch.options.get("level", 0.5))  # its numerics: another level is another voice
        self.ballast: list[bytes] = []
        self.seconds = float(launch.options.get("frame_s", 0.0))
        time.sleep(float(launch.options.get("load_s", 0.0)))
        if launch.options.get("load") == "fail":
            raise RuntimeError("asked to fail")
        self.hello = Hello(
            pid=os.getpid(),
            kind=launch.options.get("kind", "tts"),
            engine="fake",
            model=launch.model,
            backend="fake",
            numerics=numerics(engine="fake", level=self.level),
            device=cpu(),
            capabilities=["resume"] if launch.options.get("resume") else [],
            slots=launch.slots or 2,
            voices=[VoiceFacts(id="one", name="One"), VoiceFacts(id="two", name="Two")],
            languages=["en"],
        )

    def work(self, request: Synthesize | Transcribe) -> Iterator[list[FromSidecar]]:
        if isinstance(request, Transcribe):
            size = Path(request.path or "").stat().st_size
            yield [Started(id=request.id, slot=0), Text(id=request.id, delta=f"{size} bytes", committed_samples=RATE)]
            yield [Done(id=request.id, stats={"audio_s": 1.0})]
            return
        yield [Started(id=request.id, slot=0, sample_rate=RATE)]
        journal = Journal.open(Path(request.journal)) if request.journal else None
        first = request.resume.frames if request.resume else 0
        skipped = request.resume.samples - request.resume.first_sample if request.resume else 0
        for index, word in enumerate(request.text.split()[first:], first):
            time.sleep(self.seconds)
            yield self.frame(request, index, word, skipped if index == first else 0)
            if journal:
                journal.commit(index + 1, (index + 1) * FRAME)
        yield [Done(id=request.id)]

    def frame(self, request: Synthesize, index: int, word: str, skipped: int = 0) -> list[FromSidecar]:
        if word == "CRASH":
            os.kill(os.getpid(), 9)
        if word == "GROW":
            self.ballast.append(bytes(os.urandom(1)) * 80_000_000)
        if index == self.crash_at:
            os.kill(os.getpid(), 9)
        if word == "HANG":
            time.sleep(3600)
        if word == "RAISE":
            raise EngineFailed("asked to raise")
        if word == "BUG":
            raise ZeroDivisionError("asked for a bug")
        if word == "PRINT":
            print("a library says hello", flush=True)
            os.write(1, b"and so does C code\n")
        samples = np.zeros(FRAME, np.float32) if word == "SILENCE" else tone(request.text, index, self.level)
        if word == "NAN":
            samples[7] = np.nan
        return [Audio(id=request.id, first_sample=index * FRAME + skipped, pcm=pcm.to_f32(samples[skipped:]))]
