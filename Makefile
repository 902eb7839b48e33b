# make demo and make test need python3, make and the package registries, nothing else.
PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
READY := $(VENV)/.ready
# The peers of the race get an environment of their own, so that they cannot change what the tests run with.
BENCH := .venv-bench
BENCH_READY := $(BENCH)/.ready
# What a release is tried in: nothing but the wheel.
BARE := .venv-bare

# Tests start many processes; what one has compiled to bytecode the next need not.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint test-letor injection bench bench-full docs results dist clean

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

# Random models with hostile names to every export target, read back as the engines would; a few minutes.
# Say more with INJECTION="--models 20000 --seed 1".
injection: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.injection $(INJECTION)

docs: $(READY)
	$(BIN)/python -m benchmarks.methods_page > docs/methods/README.md
	$(BIN)/python -m benchmarks.licences_page > docs/licences.md

results: $(READY)
	$(BIN)/python -m benchmarks.results_page

# A quarter of an hour on two cores; what is in benchmarks/results for the same versions is not measured again.
bench: $(BENCH_READY)
	$(BENCH)/$(SCRIPTS)/python -m benchmarks

bench-full: $(BENCH_READY)
	$(BENCH)/$(SCRIPTS)/python -m benchmarks --full

# Builds sdist and wheel, installs the wheel into a bare environment and runs the README there.
dist:
	rm -rf dist $(BARE)
	$(PYTHON) -m venv $(BARE)
	$(BARE)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check build
	$(BARE)/$(SCRIPTS)/python -m build --outdir dist .
	rm -rf $(BARE)
	$(PYTHON) -m venv $(BARE)
	$(BARE)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[all]"
	$(BARE)/$(SCRIPTS)/python -m tests.readme
	@ls -l dist

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(BENCH_READY): pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	$(BENCH)/$(SCRIPTS)/python -m benchmarks.peers
	@touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(BARE) dist demo benchmarks/out
