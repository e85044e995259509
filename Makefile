# Each target creates .venv and installs what it needs; only Python 3.11 to 3.13 and make are required.
PYTHON ?= python3
unexport PYTHON
BIN := .venv/bin
READY := .venv/ready
ORACLE_READY := .venv-oracle/ready

.PHONY: demo test test-oracle verify sweep fuzz check format bench clean

# Trains a GPT on the source text of the standard library for 90 seconds and lets it write Python.
demo: $(READY)
	rm -rf build/demo
	$(BIN)/glassgrad train --out build/demo --minutes 1.5

# pytest runs last, so that its summary is the last line.
test: check
	$(BIN)/python -m pytest -n 2

# The tests that compare with PyTorch, JAX, pyarrow and others; a missing library is a failure.
test-oracle: $(ORACLE_READY)
	REQUIRE_ORACLES=1 .venv-oracle/bin/python -m pytest -n 2 $$(grep -rlE 'oracle\(|torch_layers|torch_training' tests --include='test_*.py')

# A sample of the tests with every kernel compared with its plain loops.
verify: $(READY)
	VERIFY=1 $(BIN)/python -m pytest -n 2 tests/properties tests/nn tests/examples

# Schedules, optimizes, lowers and checks thousands of kernels of realistic sizes, without running
# them; then runs those of small inputs and compares them with their plain loops.
sweep: $(READY)
	PYTHONPATH=tests $(BIN)/python -m sweep
	PYTHONPATH=tests $(BIN)/python -m sweep --run --count 1000

# Random programs against NumPy, captured programs against uncaptured ones, and the property tests,
# all from fresh seeds: make fuzz PROGRAMS=100000 MINUTES=60 JOBS=2 SEED=1. A failing program is shrunk
# and printed as a script to paste into a test.
PROGRAMS ?= 2000
MINUTES ?= 0
JOBS ?= 2
SEED ?=
WITHOUT ?=
fuzz: sweep
	PYTHONPATH=tests $(BIN)/python -m fuzz --programs $(PROGRAMS) --minutes $(MINUTES) \
		--jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(WITHOUT),--without $(WITHOUT))
	PYTHONPATH=tests $(BIN)/python -m fuzz.captures --programs $(PROGRAMS) \
		$(if $(SEED),--seed $(SEED))
	HYPOTHESIS_PROFILE=random $(BIN)/python -m pytest -n $(JOBS) -q \
		$$(grep -rl hypothesis tests --include='test_*.py')

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python -m bench
	$(BIN)/python bench/side/run.py

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

$(ORACLE_READY): pyproject.toml
	$(PYTHON) -m venv .venv-oracle
	.venv-oracle/bin/python -m pip install --quiet --upgrade pip
	.venv-oracle/bin/python -m pip install --quiet --editable ".[oracle]"
	touch $@

clean:
	rm -rf .venv .venv-oracle build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
