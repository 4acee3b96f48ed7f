"""`make chaos N=200 SEED=1`: every utterance ends with the bytes of the undisturbed one, whatever happens."""

from __future__ import annotations

import argparse
import sys

from tests.chaos.storm import storm

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=3)
    given = parser.parse_args()
    report = storm(given.count, given.seed, given.clients, show=print)
    print(report)
    sys.exit(0 if report.ok else 1)
