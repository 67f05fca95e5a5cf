# make build, test, lint, kernels: what CONTRIBUTING.md describes, in .venv. `.ci/run` runs every check.
PYTHON ?= python3
BIN = .venv/bin
# Objects that were compiled with the same flags are copied from here.
export GRADCLI_OBJECTS ?= $(CURDIR)/build/objects

.PHONY: build test lint kernels compile_commands.json clean

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

# This machine's kernels alone, quickly. What was built before is old then: `make build` builds it anew.
kernels:
	test -x $(BIN)/gradcli || $(MAKE) build
	GRADCLI_DEVELOP=1 $(BIN)/python setup.py --quiet build_ext --inplace
	touch -t 197001010000 $(BIN)/gradcli

compile_commands.json:
	$(BIN)/python gradcli/engine/device/build.py --compile-commands

clean:
	rm -rf build .venv
