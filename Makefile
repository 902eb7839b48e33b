# make demo and make test need python3, make and the package registries, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint test-letor bench docs results clean

demo: $(READY)
	@mkdir -p demo
	cd demo && ../$(BIN)/ranksieve demo
	@echo "The page is demo/report.html, the model demo/model.json."

test: lint
	$(BIN)/pytest -n 2 -m "not letor"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-letor: $(READY)
	$(BIN)/pytest -m letor

docs: $(READY)
	$(BIN)/python -m benchmarks.methods_page > docs/methods/README.md

results: $(READY)
	$(BIN)/python -m benchmarks.results_page

bench: $(READY)
	$(BIN)/python -m benchmarks

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo benchmarks/out
