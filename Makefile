# Every target sets up .venv from the pinned constraints file: `make demo` what running needs, the
# others what development needs too.
PYTHON ?= python3
BIN := .venv/bin
# Some machines forbid it: then every process compiles all of the package's Python again.
export PYTHONDONTWRITEBYTECODE :=
RUNTIME := .venv/.runtime
READY := .venv/.ready
BENCH_READY := .venv/.bench-ready

.PHONY: demo test test-loops test-site check soak bench clean docs lint

demo: $(RUNTIME)
	$(BIN)/bnpstream demo --out demo-out

# Parts of the tests; make begins the next one when a core is free. Long ones come first (servers
# wait most of the time), and those
# that compile the least before others that would compile the same. One more than there are cores, as
# brokers, browsers and workers are often waited for.
JOBS ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() + 1)")
documents := tests/docs tests/papers docs papers README.md
distributed := tests/distributed
faults := tests/faults tests/fuzz
digests := tests/digests
estimators := tests/estimators tests/extending tests/river tests/saving
laws := tests/laws
engines := tests/engines
reading := tests/sources tests/datasets tests/storage
sampling := tests/sampling tests/search
revisits := tests/revisits tests/forgetting tests/budget tests/tree
servers := tests/brokers tests/serve tests/browser
PARTS := servers documents distributed faults digests estimators laws engines rest reading sampling revisits
rest := $(filter-out $(foreach part,$(PARTS),$($(part))) tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/))) src

test: lint
	$(MAKE) --no-print-directory --keep-going --output-sync=target -j $(JOBS) \
		test-loops test-site $(PARTS:%=test-%)

test-%: $(READY)
	$(BIN)/python -m pytest $($*)

# The compiled loops again, as plain Python.
test-loops: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "kernel and not slow" tests

# After the examples in docs, among which it would write pages.
test-site: test-documents
	$(SITE)

# The documentation as a website; a warning is an error, and so is a link that leads nowhere. Its
# examples use the loops that tests have compiled.
SITE := NUMBA_CACHE_DIR=$$($(BIN)/python tests/loop_cache.py) \
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs . site \
	&& $(BIN)/python docs/check_links.py site

docs: $(READY)
	$(SITE)
	@echo "the site: site/docs/index.html"

# Everything of `make test`, then the slow statistical tests, then speed by the memory floor.
check: test
	$(BIN)/python -m pytest -m slow tests
	$(BIN)/python benchmarks/gate.py

# Faults at every point of every kind of run, forged states, damaged runs, interrupts, masses of ten
# million rows, every index checked, spoilt messages, streams between brokers killed KILLS times and
# cut off for a minute; a followed stream that is disturbed, and spoilt files, for MINUTES each
# (docs/reliability.md). POINTS=20 tries about so many points of each.
MINUTES ?= 10
POINTS ?= 0
KILLS ?= 100
TIMES := $(if $(filter 0,$(POINTS)),150,$(POINTS))
SHARE := $(if $(filter 0,$(POINTS)),1,40)
SHIM := .venv/fault_shim.so
RUNS := growing window passes fading merges budget bursty rounds rotation
STATES := window fading prefix table learner rounds words rare topics directions

soak: $(READY)
	cc -shared -fPIC -o $(SHIM) tests/faults/fault_shim.c -ldl
	set -e; for model in $(RUNS) dask; do for fault in fault_points power_loss; do \
		rm -rf .venv/faults; mkdir .venv/faults; \
		LD_PRELOAD=$(CURDIR)/$(SHIM) $(BIN)/python tests/faults/$$fault.py .venv/faults $$model $(POINTS); \
	done; done
	set -e; for model in $(STATES); do \
		$(BIN)/python tests/faults/forging.py $$model $(SHARE) $(TIMES) $$(date +%s); \
	done
	set -e; for model in $(RUNS); do $(BIN)/python tests/faults/forging_documents.py $$model $(SHARE); done
	$(BIN)/python tests/faults/breaking.py $$(($(TIMES) * 4)) $$(date +%s)
	BNPSTREAM_MOMENTS=$(if $(filter 0,$(POINTS)),150,10) $(BIN)/python -m pytest tests/faults/test_interrupts.py
	$(BIN)/python tests/faults/interrupting.py $(TIMES) $$(date +%s)
	$(BIN)/python tests/faults/drifting.py $$(($(TIMES) * 70000)) $$(($(TIMES) * 700))
	cc -shared -fPIC -o .venv/clock_shim.so tests/faults/clock_shim.c -ldl
	rm -rf .venv/stream
	CLOCK_SHIM=$(CURDIR)/.venv/clock_shim.so $(BIN)/python tests/faults/streaming.py .venv/stream $(MINUTES) $$(date +%s)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.venv/bounds $(BIN)/python tests/fuzz/bounds.py $$(($(TIMES) * 130)) $(RUNS)
	$(BIN)/python tests/fuzz/messages.py $$(($(TIMES) * 130)) $$(date +%s)
	PYTHONPATH=tests $(BIN)/python tests/brokers/soak.py $(KILLS) $$(date +%s)
	$(BIN)/python -m pytest -m slow tests/brokers
	if $(BIN)/python -c 'import atheris' 2> /dev/null; then \
		NUMBA_DISABLE_JIT=1 $(BIN)/python tests/fuzz/guided.py .venv/guided $$((60 * $(MINUTES))) \
		&& $(BIN)/python tests/fuzz/guided.py .venv/guided; \
	else echo "atheris is not installed: no files that coverage leads to"; fi
	$(BIN)/python tests/fuzz/fuzzing.py $(MINUTES)m $$(date +%s)

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# All benchmarks, one after the other: numbers to bench-out, what is printed to benchmarks/figures.md.
bench: $(BENCH_READY)
	$(BIN)/python benchmarks/run_all.py --out bench-out

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

$(RUNTIME): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) hatchling editables
	$(INSTALL) --no-build-isolation -e '.[report]'
	touch $@

$(READY): $(RUNTIME)
	$(INSTALL) --no-build-isolation -e '.[dev]'
	touch $@

$(BENCH_READY): $(READY)
	$(INSTALL) --no-build-isolation -e '.[bench]'
	touch $@

clean:
	rm -rf .venv demo-out bench-out dist site docs/generated .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .loop_cache
	find src tests -name __pycache__ -type d -exec rm -rf {} +
