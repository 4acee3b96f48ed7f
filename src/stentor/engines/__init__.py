"""The engines: each owns one kind of model and computes in a sidecar; heavy imports stay inside their engine."""
