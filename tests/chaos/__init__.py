"""Many utterances under random faults; `python -m tests.chaos` (make chaos) runs as many as one likes."""
