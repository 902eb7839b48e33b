# make demo and make test need python3, make and the package registries, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The peers of the race get an environment of their own, so that they cannot change what the tests run with.
BENCH := .venv-bench
BENCH_READY := $(BENCH)/.ready

# Tests start many processes; what one has compiled to bytecode the next need not.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint test-letor extremes bench bench-full docs results clean

demo: $(READY)
	@mkdir -p demo
	cd demo && ../$(BIN)/ranksieve demo
	@echo "The page is demo/report.html, the model demo/model.json."

# One process per core, so one thread of BLAS each: threads that wait for work would keep the other core busy.
# Each process takes the tests in their order and, at the end, some of those that another has left: it shares
# what the tests of a module need.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not letor"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-letor: $(READY)
	$(BIN)/pytest -m letor

# Thousands of random fits of all methods to extreme data, some minutes; the seed is printed.
extremes: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.extremes

docs: $(READY)
	$(BIN)/python -m benchmarks.methods_page > docs/methods/README.md

results: $(READY)
	$(BIN)/python -m benchmarks.results_page

# A quarter of an hour on two cores; what is in benchmarks/results for the same versions is not measured again.
bench: $(BENCH_READY)
	$(BENCH)/bin/python -m benchmarks

bench-full: $(BENCH_READY)
	$(BENCH)/bin/python -m benchmarks --full

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(BENCH_READY): pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	$(BENCH)/bin/python -m benchmarks.peers
	@touch $@

clean:
	rm -rf $(VENV) $(BENCH) demo benchmarks/out
