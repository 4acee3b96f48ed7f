"""The child process: one engine with one model on one device, driven over JSONL on stdin and stdout."""
