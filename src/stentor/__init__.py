"""Stentor: a local speech server that keeps talking when the GPU does not."""

__version__ = "0.1.0"
