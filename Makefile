# Every target sets up .venv by itself from the pinned constraints file.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv/.bench-ready

.PHONY: demo test check bench clean lint

demo: $(READY)
	$(BIN)/bnpstream demo --out demo-out

test: lint
	$(BIN)/python -m pytest
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "kernel and not slow" tests

# Everything of `make test`, then the slow statistical tests.
check: test
	$(BIN)/python -m pytest -m slow tests

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(BENCH_READY)
	$(BIN)/python benchmarks/memory_floor.py
	$(BIN)/python benchmarks/kos_methods.py
	$(BIN)/python benchmarks/window_memory.py
	$(BIN)/python benchmarks/peers.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling editables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[dev]'
	touch $@

$(BENCH_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[bench]'
	touch $@

clean:
	rm -rf .venv demo-out dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find src tests -name __pycache__ -type d -exec rm -rf {} +
