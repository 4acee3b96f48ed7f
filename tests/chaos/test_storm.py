"""A small storm in every test run; the large one is `make chaos`."""

from __future__ import annotations

from tests.chaos.storm import storm


def test_every_utterance_of_a_small_storm_ends_with_the_bytes_of_the_undisturbed_one() -> None:
    report = storm(12, seed=7, clients=2, show=print)
    assert report.ok, str(report)
    assert report.between >= 0.8 * report.wanted
    assert report.incidents >= report.wanted / 3, f"too few faults happened: {report}"
