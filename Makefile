# make demo and make test need python3, make and the package registries, nothing else.
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
VENV := .venv
BIN := $(VENV)/$(SCRIPTS)
READY := $(VENV)/.ready
# A separate environment for the packages that the benchmarks compare with, so that the tests do not depend on them.
BENCH := .venv-bench
BENCH_READY := $(BENCH)/.ready
# A separate environment to build the site.
SITE := .venv-docs
SITE_READY := $(SITE)/.ready
# PyTorch and Triton take gigabytes.
GPU := .venv-gpu
GPU_READY := $(GPU)/.ready
# Engines from PyPI, for the tests of exports; those from Maven are in .engines and in Maven's own cache.
ENGINES := .venv-engines
ENGINES_READY := $(ENGINES)/.ready
# A bare environment to test a release: only the wheel is installed.
BARE := .venv-bare
INSTALL := -m pip install --quiet --disable-pip-version-check

# Tests start many processes: bytecode is compiled once and then shared.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-full lint test-gpu test-letor test-engines fuzz extremes faults injection coverage mutants bench bench-full quality \
  quality-short docs docs-site results dist clean

demo: $(READY)
	@mkdir -p demo
	cd demo && ../$(BIN)/ranksieve demo
	@echo "The page is demo/report.html, the model demo/model.json."

# One process per core, so BLAS uses one thread in each, and LightGBM's threads sleep while they wait instead of
# keeping the other core busy. Each process runs tests of the same modules, which share fixtures, and takes over tests
# from another process at the end.
TESTS := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal
test: lint
	RANKSIEVE_TESTS=quick $(TESTS) -m "not full and not letor and not gpu and not engines"

# Every case of every contract, processes, faults, browsers, tutorials and documentation.
test-full: lint
	$(TESTS) -m "not letor and not gpu and not engines"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@! grep -rnE $(ODD) src papers benchmarks README.md CONTRIBUTING.md docs/architecture.md \
	  --include=*.py --include=*.pyi --include=*.md --include=*.j2 --include=*.js --exclude-dir=results
	$(BIN)/typos

# Wordings that cannot be right (CONTRIBUTING.md, English).
ODD := "take long to load|with a word|is no [a-z]+ (of|that|which) |[Oo]f equals|what is no |[Ss]ay it when|was told"

# Tests of the GPU code: on the GPU of this machine, or without one by Triton's interpreter on small data.
test-gpu: $(GPU_READY)
	OMP_NUM_THREADS=1 $(GPU)/$(SCRIPTS)/pytest -m gpu tests/gpu

# Exported models in the engines themselves: minutes for the first download, then minutes on two cores. What cannot be
# had is skipped with the reason. Writes the table of docs/exports.md.
test-engines: $(ENGINES_READY)
	rm -rf .engines/results
	OMP_NUM_THREADS=1 $(ENGINES)/$(SCRIPTS)/pytest -m engines --durations=5 tests/engines
	$(ENGINES)/$(SCRIPTS)/python -m tests.engines

test-letor: $(READY)
	$(BIN)/pytest -m letor

# Random hostile inputs for every reader: more than a million, about a quarter of an hour. The seed is printed
# first; SEED=7 repeats the same inputs, MINUTES=5 stops early, FUZZ="--target csv" takes further options.
fuzz: $(READY)
	$(BIN)/python -m tests.fuzz $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(FUZZ)

# Thousands of random fits of all methods to extreme data, some minutes; the seed is printed.
extremes: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.extremes $(EXTREMES)

# Commands killed at random moments, a few minutes; further options: FAULTS="--kills 200 --seed 1".
faults: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults $(FAULTS)

# Random models with hostile names to every export target, read back as the engines would; a few minutes.
# Further options: INJECTION="--models 20000 --seed 1".
injection: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.injection $(INJECTION)

# Branches and lines outside the compiled kernels; fails below the share set in pyproject.toml.
coverage: $(READY)
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n 2 --dist worksteal -m "not letor and not gpu and not engines"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# Mutation tests: small changes to the source that tests must detect. All of them take hours; MUTANTS="--share 0.1"
# draws a tenth of them, MUTANTS="metrics" runs one group (tests/mutants/groups.toml).
mutants: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants $(MUTANTS)

docs: $(READY)
	$(BIN)/python -m benchmarks.methods_page
	$(BIN)/python -m benchmarks.licences_page > docs/licences.md.new && mv docs/licences.md.new docs/licences.md

# The documentation as a site, in site/; a warning is an error.
docs-site: $(SITE_READY)
	NO_MKDOCS_2_WARNING=1 $(SITE)/$(SCRIPTS)/mkdocs build --strict

results: $(READY)
	$(BIN)/python -m papers

# A quarter of an hour on two cores; results of the same versions in benchmarks/results are not measured again.
bench: $(BENCH_READY)
	$(BENCH)/$(SCRIPTS)/python -m benchmarks

bench-full: $(BENCH_READY)
	$(BENCH)/$(SCRIPTS)/python -m benchmarks --full

# Accuracy of all methods on nine data sets, over 20 random splits each (docs/quality.md): hours, but what
# benchmarks/results/quality contains is not measured again. QUALITY="--methods SparseRanker --again" repeats a method.
quality: $(BENCH_READY)
	OMP_NUM_THREADS=1 $(BENCH)/$(SCRIPTS)/python -m benchmarks.quality $(QUALITY)

quality-short: $(BENCH_READY)
	OMP_NUM_THREADS=1 $(BENCH)/$(SCRIPTS)/python -m benchmarks.quality --short $(QUALITY)

# Builds sdist and wheel, installs the wheel into a bare environment, checks the metadata and runs the README there.
dist:
	rm -rf dist $(BARE)
	$(PYTHON) -m venv $(BARE)
	$(BARE)/$(SCRIPTS)/python $(INSTALL) build
	$(BARE)/$(SCRIPTS)/python -m build --outdir dist .
	rm -rf $(BARE)
	$(PYTHON) -m venv $(BARE)
	$(BARE)/$(SCRIPTS)/python $(INSTALL) "$$(ls dist/*.whl)[all]"
	$(BARE)/$(SCRIPTS)/python -m tests.metadata dist
	$(BARE)/$(SCRIPTS)/python -m tests.readme
	@ls -l dist

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --editable '.[dev]'
	@touch $@

$(BENCH_READY): pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/$(SCRIPTS)/python $(INSTALL) --editable '.[all]'
	$(BENCH)/$(SCRIPTS)/python -m benchmarks.peers
	@touch $@

$(GPU_READY): pyproject.toml
	$(PYTHON) -m venv $(GPU)
	$(GPU)/$(SCRIPTS)/python $(INSTALL) --editable '.[gpu]' hypothesis pytest
	@touch $@

$(ENGINES_READY): pyproject.toml
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/$(SCRIPTS)/python $(INSTALL) --editable '.[engines]' hypothesis pytest
	@touch $@

$(SITE_READY): pyproject.toml
	$(PYTHON) -m venv $(SITE)
	$(SITE)/$(SCRIPTS)/python $(INSTALL) --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(SITE) $(GPU) $(BARE) $(ENGINES) .engines dist site demo benchmarks/out
