# Two commands matter: `make demo` shows what Elea does, `make test` proves it. Both start from nothing but Python.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
COMPILED := .build/compiled
COMPILED_TESTS := $(addprefix tests/unit/,model wire notation io protocol space node api testing) tests/property tests/vectors
FUZZ_RUNS ?= 500000
MUTATIONS ?= 20
SEED ?= 1

.PHONY: demo test test-python test-spark test-long test-compiled test-fallback lint bench fuzz mutate generate compiled clean

demo: $(VENV)/.demo
	$(BIN)/elea demo $(DEMO)

# Spark waits for Java while the compiler works.
test: lint test-python
	$(MAKE) -j 2 test-spark compiled
	$(MAKE) test-compiled test-fallback

test-python: $(VENV)/.test
	$(BIN)/python -m pytest -n 3 -q --ignore tests/spark
	$(BIN)/python -m tests.vectors

# One process, because a Spark session takes both cores and ten seconds to start.
test-spark: $(VENV)/.test
	$(BIN)/python -m pytest -q -m 'not long' tests/spark

# The demo and the benchmarks as tests, and a cluster on four machines where root may make them: some minutes more.
test-long: $(VENV)/.test
	$(BIN)/python -m pytest -q -m long tests/spark

# What is compiled, and what stands on it, once more as machine code where a C compiler is at hand.
test-compiled: $(VENV)/.test compiled
	PYTHONPATH=$(COMPILED) $(BIN)/python -m tests.compiled $(COMPILED)
	HYPOTHESIS_PROFILE=again PYTHONPATH=$(COMPILED) $(BIN)/python -m pytest -n 2 -q $(COMPILED_TESTS)

# Without a working compiler the same sources are installed as plain Python.
test-fallback: $(VENV)/.test
	rm -rf build .build/plain
	CC=false $(BIN)/pip install --quiet --no-deps --target .build/plain .
	PYTHONPATH=.build/plain $(BIN)/python -m elea info | grep '^decoders *interpreted'

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Codecs alone, then a node beside eclipse-zenoh, pyzmq and Redis (docs/benchmarks.md); some ten minutes.
bench: $(VENV)/.bench compiled
	$(BIN)/python -m bench.wire --compiled $(COMPILED)
	$(BIN)/python -m bench.node --path $(COMPILED) --rounds 3

fuzz: $(VENV)/.fuzz
	$(BIN)/python -m tests.fuzz --runs $(FUZZ_RUNS)

# Whether tests notice that code is wrong: a sample of mutations, drawn by seed; some minutes (tests/mutate.py).
mutate: $(VENV)/.mutate
	$(BIN)/python -m tests.mutate --count $(MUTATIONS) --seed $(SEED)

generate: $(VENV)/.elea
	$(BIN)/python -m elea.notation.generate

compiled: $(COMPILED)/.done

$(COMPILED)/.done: $(VENV)/.test $(shell find src -name '*.py' -o -name '*.zn') pyproject.toml setup.py
	rm -rf build $(COMPILED)   # setuptools would take what an earlier build left there
	$(BIN)/pip install --quiet --no-deps --target $(COMPILED) .
	touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.elea: $(VENV)/bin/python pyproject.toml setup.py
	ELEA_COMPILE=0 $(BIN)/pip install --quiet --editable .
	touch $@

# Where the real peer cannot be installed the demo does without it.
$(VENV)/.demo: $(VENV)/.elea
	ELEA_COMPILE=0 $(BIN)/pip install --quiet --editable '.[demo]' || ELEA_COMPILE=0 $(BIN)/pip install --quiet --editable '.[broker,spark,uprotocol]'
	touch $@

$(VENV)/.test: $(VENV)/.elea
	ELEA_COMPILE=0 $(BIN)/pip install --quiet --editable '.[test,lint]'
	touch $@

$(VENV)/.bench: $(VENV)/.test
	ELEA_COMPILE=0 $(BIN)/pip install --quiet --editable '.[bench]'
	touch $@

$(VENV)/.mutate: $(VENV)/.test
	ELEA_COMPILE=0 $(BIN)/pip install --quiet --editable '.[mutate]'
	touch $@

$(VENV)/.fuzz: $(VENV)/.test
	ELEA_COMPILE=0 $(BIN)/pip install --quiet --editable '.[fuzz]'
	touch $@

clean:
	rm -rf $(VENV) .build build dist src/*.egg-info
