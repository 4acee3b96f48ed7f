"""The registry of all sidecars of this host. Knows which models there are, not what is said to them."""

from __future__ import annotations

import asyncio

from ..platform import RunFolder
from ..settings import Settings
from .sidecar import Sidecar


class Supervisor:
    """All sidecars, by model id; each is there from the start, loaded or not."""

    def __init__(self, settings: Settings, folder: RunFolder) -> None:
        self.settings = settings
        self.sidecars = {model: Sidecar(model, spec, settings, folder) for model, spec in settings.offered.items()}

    async def preload(self) -> None:
        """Begin to load the two default models, and keep at it."""
        for model in (self.settings.speech_model, self.settings.transcription_model):
            self.sidecars[model].always = True
            await self.sidecars[model].start()

    async def close(self) -> None:
        """End every process."""
        await asyncio.gather(*(sidecar.close() for sidecar in self.sidecars.values()))
