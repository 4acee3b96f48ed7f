"""The host side: sidecar processes, their supervision, the queue in front of them. Never imports an engine."""
