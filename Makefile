# make build, make test, make lint: what CONTRIBUTING.md describes, in .venv. `.ci/run` runs every check.
PYTHON ?= python3
BIN = .venv/bin
# Objects that were compiled with the same flags are copied from here.
export GRADCLI_OBJECTS ?= $(CURDIR)/build/objects

.PHONY: build test lint clean

build: $(BIN)/gradcli

$(BIN)/gradcli: pyproject.toml setup.py $(shell find gradcli/csrc -name "*.[ch]")
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[test,dev]'
	touch $@

test: build
	$(BIN)/python -m pytest -n auto $(TESTS)

lint: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	git ls-files 'gradcli/*.[ch]' 'tests/*.[ch]' | xargs $(BIN)/clang-format --dry-run -Werror

clean:
	rm -rf build .venv
