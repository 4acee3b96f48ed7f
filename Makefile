# Everything runs in .venv, made here; only Python 3.11+ and make are needed. See README.md.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test chaos prove lint types contract clean

demo: $(VENV)/demo.stamp  ## speak, listen to it, print both
	$(BIN)/python -m bench.demo  # as a module: in a script, bench/http.py would be the standard library's http

test: $(VENV)/test.stamp  ## every test
	$(BIN)/python -m pytest -n auto --maxprocesses 4

N ?= 200
SEED ?= 1
CLIENTS ?= 1

chaos: $(VENV)/test.stamp  ## N utterances under random faults: each ends with the bytes of the undisturbed one
	$(BIN)/python -m tests.chaos $(N) --seed $(SEED) --clients $(CLIENTS)

prove: $(VENV)/test.stamp  ## the large counts: half an hour of mixed load, chaos, lost signals, every drill
	$(BIN)/python -m bench.soak --minutes 30
	$(BIN)/python -m tests.chaos 2000 --seed $(SEED)
	$(BIN)/python -m bench.lossy
	$(BIN)/stentor drill

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/mypy
	$(BIN)/mypy --platform win32

contract: $(VENV)/test.stamp
	$(BIN)/lint-imports

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Stentor needs Python 3.11 or later; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/demo.stamp: $(VENV)/python.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

# torch is no requirement of ours, and pip would take a build with gigabytes of CUDA: the CPU index is asked first.
$(VENV)/test.stamp: $(VENV)/python.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo,test]'
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--retries 0 --timeout 10 --index-url https://download.pytorch.org/whl/cpu torch || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
