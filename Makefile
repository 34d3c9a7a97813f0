# Needs Python 3.11 or later and Java 17. `make` alone lists what there is.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
PY := .venv/bin/python
TIDEMARK := .venv/bin/tidemark
# Files in the order of tests/conftest.py, and not by how many tests they have.
IN_TWO := --numprocesses=2 --dist=loadfile --no-loadscope-reorder
# A test that hangs ends the whole run, and is named. A process that is started anew would hang at it again.
NOT_ENDLESS := --max-worker-restart=0 -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
step = @printf '\n\033[1m== %s\033[0m\n' $(1)

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: install
install: .venv/installed .venv/first-run.log ## make .venv with what requirements.lock names, fetch the jars, make a class archive for a faster start; nothing to do when they are there
	@$(PY) -m orchestration.engine.jars

.venv/installed: requirements.lock requirements-uv.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tidemark needs Python 3.11 or later; say which with make PYTHON=...")'
	test -x $(PY) || $(PYTHON) -m venv .venv
	test -x .venv/bin/uv || { $(PY) -m ensurepip >/dev/null && $(PY) -m pip install --quiet --require-hashes -r requirements-uv.lock; }
	.venv/bin/uv pip install --quiet --compile-bytecode --python $(PY) --require-hashes -r requirements.lock
	.venv/bin/uv pip install --quiet --python $(PY) --no-deps --no-build-isolation --editable .
	touch $@

.venv/first-run.log: .venv/installed conf/jars.lock
	@$(PY) -m orchestration.engine.jars
	@echo "making a class archive, once" >&2
	@$(PY) -m orchestration.supervisor.first_run >$@ 2>&1 || echo "none could be made, as $@ tells; without it starts are slower" >&2

.PHONY: lock
lock: .venv/installed ## pin what pyproject.toml asks for in requirements.lock, with hashes
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --all-extras --python-version 3.11 --no-emit-index-url --no-header \
	  pyproject.toml -o requirements.lock
	echo 'uv==0.13.9' | .venv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header \
	  --no-annotate - -o requirements-uv.lock
	for tool in superset pgadmin python; do .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-header \
	  --no-annotate tests/tools/$$tool.in -o tests/tools/$$tool.txt; done

ADVISORIES ?= artifacts/advisories/vulns
.PHONY: system-catalog
system-catalog: install servers ## write the tables, types and functions of a PostgreSQL 15 to system_catalog.json, for the SQL server
	$(PY) -m tests.orchestration.serving.postgres.write_system_catalog

.PHONY: audit
audit: install ## name known holes of the locked versions, by PyPA's advisory database; ADVISORIES=folder where it was brought by hand
	test -d $(ADVISORIES) || git clone --quiet --depth 1 https://github.com/pypa/advisory-database artifacts/advisories
	test ! -d artifacts/advisories/.git || git -C artifacts/advisories pull --quiet --depth 1
	$(PY) -m tests.advisories $(ADVISORIES)

.PHONY: demo
demo: install ## simulate 240,000 events, bring them through all layers, show the answers
	$(call step,"start afresh: ./lake ./landing ./landing.truth ./artifacts")
	rm -rf lake landing landing.truth artifacts
	$(call step,"tidemark simulate: devices that behave like the field; one has a fault")
	$(TIDEMARK) simulate --to landing --events 240000 --faults 1
	cat landing.truth/_labels.csv
	$(call step,"tidemark run --once: bronze -> silver -> gold")
	$(TIDEMARK) run --once
	$(call step,"tidemark status")
	$(TIDEMARK) status
	$(call step,"tidemark ledger: where every event is")
	$(TIDEMARK) ledger --plot artifacts/ledger.png
	$(call step,"tidemark verify: silver and gold are what bronze gives")
	$(TIDEMARK) verify
	$(call step,"tidemark sql: the latest vectors of the kitchen")
	$(TIDEMARK) sql "select entity, window_start, vector, missing from gold.kitchen_vectors order by window_start desc, entity limit 5"
	$(call step,"tidemark dbt build: marts of that snapshot")
	$(TIDEMARK) dbt --quiet build
	$(call step,"tidemark sql: a mart beside gold on one snapshot")
	$(TIDEMARK) sql "select mart.day, mart.device_id, mart.readings as in_the_mart, sum(gold.count) as in_gold, round(mart.value) as watts \
	  from marts.daily mart join gold.kitchen_aggregates gold on gold.device_id = mart.device_id and gold.metric = mart.metric and gold.window_start::date = mart.day \
	  where mart.device_group = 'kitchen' and mart.metric = 'power' group by all order by watts desc limit 5"
	$(call step,"tidemark plot kitchen")
	$(TIDEMARK) plot kitchen
	$(call step,"tidemark quality: what was expected and what was found")
	$(TIDEMARK) quality
	$(call step,"pictures of the live page over this lake")
	$(PY) -m tests.page_pictures artifacts
	$(call step,"tidemark evaluate: was the fault found that was planted; how soon")
	$(TIDEMARK) evaluate kitchen --labels landing.truth/_labels.csv
	$(TIDEMARK) sql "select entity, window_end, score, reason from gold.kitchen_anomalies where is_anomaly order by window_end desc limit 5"
	$(TIDEMARK) plot kitchen --anomalies
	$(call step,"tidemark up keeps all of it running and shows a live page at http://127.0.0.1:8643/; make demo-live does so with new events")

.PHONY: demo-s3
demo-s3: install ## the demo with its lake in an object store, which starts and ends with it; shows what is in the bucket
	$(PY) -m tests.demo_in_store

.PHONY: demo-live
demo-live: install ## events that keep coming, all flows, and the live page at http://127.0.0.1:8643/, until Ctrl-C
	@$(TIDEMARK) simulate --to landing --rate 500 & trap "kill $$!" EXIT; $(TIDEMARK) up

# A program, and the Debian package that brings it.
SERVERS := chromium=chromium postgres=postgresql mosquitto=mosquitto prometheus=prometheus \
  prometheus-alertmanager=prometheus-alertmanager

.PHONY: servers
servers: ## the Debian packages that tests use; installed where they are missing and you are root; their services do not start
	@PATH="$$PATH:/usr/sbin:$$(printf '%s:' /usr/lib/postgresql/*/bin)"; missing=(); \
	for server in $(SERVERS); do command -v "$${server%=*}" >/dev/null || missing+=("$${server#*=}"); done; \
	if test $${#missing[@]} = 0; then exit; fi; \
	if test "$$(id -u)" != 0; then echo "their tests are left out; install as root: $${missing[*]}" >&2; exit; fi; \
	systemctl mask mosquitto prometheus prometheus-alertmanager 2>/dev/null || true; \
	apt-get update -qq; apt-get install -y -qq --no-install-recommends "$${missing[@]}" fonts-dejavu-core >/dev/null

.PHONY: test
test: install servers ## the default tests, file by file on two processes
	@mkdir -p artifacts && $(PY) -m tests.built >artifacts/test-lakes.log 2>&1 || { tail -n 30 artifacts/test-lakes.log >&2; exit 1; }
	$(PY) -m pytest $(IN_TWO) $(NOT_ENDLESS) --durations=25 --durations-min=5

.PHONY: test-processes
test-processes: install servers ## tests of real processes that are killed, stopped and attacked
	$(PY) -m pytest $(IN_TWO) $(NOT_ENDLESS) --durations=25 --durations-min=5 -m "processes and not slow"

.PHONY: quick
quick: install ## the tests that need no Spark, in two minutes
	$(PY) -m pytest $(IN_TWO) -m "not (spark or lakes or slow or processes)"

.PHONY: slow
slow: install servers ## the long ones of the tests, of which `make test` has shorter ones; property tests with all examples
	$(PY) -m pytest $(IN_TWO) --hypothesis-profile=all -m "hypothesis or slow and not (cluster or damage or dbt or defects or faults or kill or planted or snapshots or tools)"

ROUNDS ?= 1
ifndef SEED
SEED := $(shell date +%s)
endif
PHASE ?=
STORE ?= disk
.PHONY: chaos
chaos: install ## kill a run in every phase, ROUNDS=1 times, each in a lake of its own, STORE=disk or s3; SEED=... PHASE=... repeats, and is printed
	$(call step,"seeds $(SEED) and on")
	$(PY) -m tests.chaos.rounds --rounds $(ROUNDS) --seed $(SEED) --phase "$(PHASE)" --store $(STORE)

.PHONY: faults
faults: install ## a lake in a store that loses answers, refuses and cuts requests; a writer that is stopped, and two at once
	$(PY) -m pytest -v -rP -m faults tests/faults

.PHONY: kills
kills: install ## kill a pipeline whose gate is closed, and a retry of the quarantine
	$(PY) -m pytest -v -m kill tests/chaos

.PHONY: damage
damage: install ## damage each kind of file in each way, and see that it is refused, named or mended
	$(PY) -m pytest -v -m damage tests/damage

HOSTILE ?= 1000000
.PHONY: fuzz
fuzz: install ## bring HOSTILE=1000000 hostile payloads through a lake, and as many hostile rows to sinks, and account for each; SEED=... repeats, and is printed
	$(call step,"seed $(SEED)")
	$(PY) -m pytest -v -m fuzz --hostile $(HOSTILE) --seed $(SEED) tests/orchestration/audit/reconciliation/test_hostile_payloads.py tests/orchestration/connectors/sinks/test_hostile_rows.py

.PHONY: soak
soak: MINUTES = 30
soak: install servers ## disturb a plant under `tidemark up` for MINUTES=30 in every way, and see that it says so and loses nothing; SEED=... repeats, and is printed; as root also a full disk
	$(call step,"seed $(SEED)")
	$(PY) -m pytest -v -rP -m soak --minutes $(MINUTES) --seed $(SEED) tests/soak

.PHONY: bars
bars: install servers ## put a whole plant under `tidemark up` to one fault after the other: each is told within 30 s, and is over within 30 s; SEED=... repeats the order
	$(call step,"seed $(SEED)")
	$(PY) -m pytest -v -rP -m "bars and slow" --seed $(SEED) tests/bars

.PHONY: cuts
cuts: install ## read snapshots while a run writes, compacts and removes: none is torn
	$(PY) -m pytest -v -m snapshots tests/orchestration/storage

.PHONY: cluster
cluster: install ## as root: machines in network namespaces that share an object store and nothing else; one is killed, a link is down, the driver moves
	$(PY) -m pytest -v -rP -m cluster tests/cluster

artifacts/tools/kubernetes/kubernetes: tests/cluster/kubernetes/go.mod tests/cluster/kubernetes/main.go
	command -v go >/dev/null || { echo "Go is missing, which builds the API server of Kubernetes" >&2; exit 1; }
	mkdir -p $(@D) && cp $^ $(@D) && cd $(@D) && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o kubernetes .

.PHONY: kubernetes
kubernetes: install artifacts/tools/kubernetes/kubernetes ## build an API server of Kubernetes, once, and run a pipeline whose executors are its pods, one of which is killed; there are no containers
	$(PY) -m pytest -v -m cluster tests/cluster/test_kubernetes.py

.PHONY: planted
planted: install ## switch off each protection in turn, and see that verify, the ledger or a test notices
	$(PY) -m pytest -v -rP -m planted tests/planted

.PHONY: dbt
dbt: install ## kill builds of marts at eight places: the next one makes what a full rebuild makes
	$(PY) -m pytest -v -m "" tests/orchestration/serving/dbt

.PHONY: defects
defects: install ## plant each of twelve defects, see that the quality report names it alone, and that 20 clean plants raise no alarm
	$(PY) -m pytest -v -m defects tests/orchestration/quality

WHEEL := artifacts/wheel
.PHONY: wheel
wheel: install ## build the wheel, install it into an empty environment, and run `tidemark check`, `preview` and `test` from it
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)
	.venv/bin/uv build --quiet --wheel --no-build-isolation --python $(PY) --out-dir $(WHEEL)
	rm -r build
	.venv/bin/uv venv --quiet --python $(PY) $(WHEEL)/env
	.venv/bin/uv pip install --quiet --python $(WHEEL)/env/bin/python --constraints requirements.lock $(WHEEL)/*.whl
	printf '%s\n' time,device,temperature 2026-01-05T12:00:00Z,oven,20.5 >$(WHEEL)/room.csv
	cd $(WHEEL) && env/bin/tidemark init conf --from room.csv && env/bin/tidemark check --tests && env/bin/tidemark preview room.csv
	cd $(WHEEL) && env/bin/tidemark init house --platform ocpp && env/bin/tidemark --conf house test

.PHONY: conf
conf: install ## write the JSON Schemas and conf/README.md from the settings' models
	$(PY) -m orchestration.conf.reference

.PHONY: check
check: install ## style, types, and the shape of the tree
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy bronze silver gold expectations orchestration tests
	$(PY) -m pytest -q tests/test_architecture.py tests/test_words.py

.venv-others/installed: tests/bench/others/requirements.lock .venv/installed
	test -x .venv-others/bin/python || $(PYTHON) -m venv .venv-others
	.venv/bin/uv pip install --quiet --compile-bytecode --python .venv-others/bin/python --require-hashes -r $<
	touch $@

TOOLS := artifacts/tools
TOOLS_OF_DEBIAN := r-cran-rpostgresql r-cran-dbplyr odbc-postgresql unixodbc
$(TOOLS)/%/installed: tests/tools/%.txt | .venv/installed
	.venv/bin/uv venv --quiet --clear --python $(PYTHON) $(@D)
	.venv/bin/uv pip install --quiet --compile-bytecode --python $(@D)/bin/python -r $<
	touch $@

$(TOOLS)/node/installed: tests/tools/package.json
	mkdir -p $(@D) && cp $< $(@D)
	if command -v npm >/dev/null; then cd $(@D) && npm install --silent --ignore-scripts --no-audit --no-fund && touch installed; \
	  else echo "npm is missing: the tests of Node's drivers are left out" >&2; fi

.PHONY: tools
tools: install servers $(TOOLS)/superset/installed $(TOOLS)/pgadmin/installed $(TOOLS)/python/installed $(TOOLS)/node/installed ## Superset, pgAdmin, pgjdbc, R and others connect to `tidemark sql-server` and do their work; the chart is artifacts/tools/superset.png
	test "$$(id -u)" != 0 || dpkg -s $(TOOLS_OF_DEBIAN) >/dev/null 2>&1 || \
	  { apt-get update -qq; apt-get install -y -qq --no-install-recommends $(TOOLS_OF_DEBIAN) >/dev/null; }
	$(PY) -m pytest -rPs -m tools tests/tools

NAME ?= medallion
ARGS ?=
.PHONY: bench
bench: install $(if $(findstring --others,$(ARGS)),.venv-others/installed) ## a benchmark of tests/bench, NAME=medallion; ARGS="--rounds 5" are its options; tests/README.md lists all
	$(PY) -m tests.bench.$(NAME) $(ARGS)

ROOM ?= room/landing
.PHONY: room
room: install ## the three files of README's walk-through, from ROOM=room/landing, arriving one by one in the order of their names
	$(PY) -m pytest -v --room $(ROOM) tests/orchestration/test_walk_through.py

.PHONY: clean
clean: ## remove what the targets made, but not .venv
	rm -rf lake landing landing.truth artifacts build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse
	find bronze silver gold expectations orchestration tests conf -name __pycache__ -prune -exec rm -rf {} +
