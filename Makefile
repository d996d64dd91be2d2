# SPDX-License-Identifier: BSD-2-Clause
# unsalt: plain GNU make. `make help` lists the targets. Objects go to build/<config>/, never into the tree.
#
# CONFIG   release (default), debug, asan, ubsan, tsan, coverage, fuzz
# CC       gcc (default) or clang; each compiler has its own folders
# CFLAGS   replaces the optimisation flags of the configuration; CPPFLAGS, LDFLAGS and LDLIBS are added
# V=1      shows the commands
# O        folder for all that is built, default build
# T, NOT   only test programs whose path contains one of these words, or none; e.g. make check-units T="heap salt"
# LAYERS   layers of lib/ that go into the library

CONFIG ?= release
O ?= build
LAYERS ?= base codec core kafka
WERROR ?= -Werror
JOBS ?= $(shell nproc 2> /dev/null || echo 1)
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
V ?= 0
Q := $(if $(filter-out 0,$(V)),,@)
say = $(if $(Q),@echo '  $(1)')
MAKEFLAGS += --no-print-directory
build = $(MAKE) $(if $(Q),-s) -j$(JOBS)
# Targets that build before they run something do it one after another: stages of the tests run beside each other, and
# two makes in one folder would read what the other is writing. Who holds the lock already doesn't wait for it.
locked = $(if $(filter $(abspath $(B)),$(UNSALT_LOCKED)),$(build),mkdir -p $(B) && \
    UNSALT_LOCKED='$(abspath $(B))' flock $(B)/lock $(build))
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:

# ---- version: the header is its only place

VERSION_H := include/unsalt/version.h
version_part = $(shell awk '$$2 == "UNSALT_VERSION_$(1)" { print $$3 }' $(VERSION_H) 2> /dev/null)
MAJOR := $(call version_part,MAJOR)
VERSION := $(MAJOR).$(call version_part,MINOR).$(call version_part,PATCH)
SONAME := libunsalt.so.$(MAJOR)

# ---- configurations

CCNAME := $(notdir $(firstword $(CC)))
B := $(O)/$(CONFIG)$(if $(filter-out gcc cc,$(CCNAME)),-$(CCNAME))

OPT_release := -O2 -g
OPT_debug := -O0 -g3
OPT_asan := -O1 -g -fsanitize=address -fno-omit-frame-pointer
OPT_ubsan := -O1 -g -fsanitize=undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
OPT_coverage := -O0 -g --coverage
OPT_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
ifeq ($(OPT_$(CONFIG)),)
$(error CONFIG=$(CONFIG) is unknown: release debug asan ubsan tsan coverage fuzz)
endif
# What a sanitizer needs is kept even if CFLAGS is given.
SANITIZE := $(filter -fsanitize% -fno-sanitize% --coverage,$(OPT_$(CONFIG)))
CFLAGS ?= $(OPT_$(CONFIG))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef $(WERROR)
STD := -std=c11 -D_POSIX_C_SOURCE=200809L -fvisibility=hidden -fPIC
ALL_CFLAGS = $(STD) $(WARN) -Iinclude $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -MMD -MP
LIB_CFLAGS = $(ALL_CFLAGS) -Ilib -DUNSALT_ENABLE_CORE_API=
# Programs may use what is usual on Linux; the layers below lib/kafka may not.
SYSTEM_CFLAGS := -D_DEFAULT_SOURCE=
TEST_CFLAGS = $(LIB_CFLAGS) $(SYSTEM_CFLAGS) -Itests
ALL_LDFLAGS = $(LDFLAGS) $(SANITIZE) -Wl,--as-needed
# Asked for when a command needs it, once: the packages may have been installed only then.
once = $(eval $(1) := $(2))$($(1))
RDKAFKA_CFLAGS = $(call once,RDKAFKA_CFLAGS,$(shell pkg-config --cflags rdkafka))
RDKAFKA_LIBS = $(call once,RDKAFKA_LIBS,$(shell pkg-config --libs rdkafka))
CRITERION_LIBS = $(call once,CRITERION_LIBS,$(shell pkg-config --libs criterion))
ALL_LDLIBS = $(LDLIBS) $(RDKAFKA_LIBS) -lpthread -lm

# ---- sources: found, never listed

LIB_SRC := $(wildcard lib/*.c) $(foreach layer,$(LAYERS),$(wildcard lib/$(layer)/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CHECKER_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/checker/*.c))
SUPPORT_OBJ := $(CHECKER_OBJ) $(patsubst %.c,$(B)/%.o,$(wildcard tests/support/*.c tests/*/fixture/*.c))
# Suites of test programs: one source file is one program. tests/tsan has plain main programs.
ALL_SUITES := unit property oom mock broker long
has = $(strip $(foreach w,$(1),$(findstring $(w),$(2))))
chosen = $(if $(T),$(foreach f,$(1),$(if $(call has,$(T),$(f)),$(f))),$(1))
matching = $(foreach f,$(call chosen,$(1)),$(if $(call has,$(NOT),$(f)),,$(f)))
bins = $(patsubst %.c,$(B)/%,$(call matching,$(foreach s,$(1),$(sort $(wildcard tests/$(s)/*.c)))))
# Programs that tests start as processes of their own; they find them in $$UNSALT_TEST_PROGRAMS.
PROGRAMS := $(patsubst tests/support/programs/%.c,$(B)/tests/programs/%,$(wildcard tests/support/programs/*.c))
BENCH_SRC := $(wildcard bench/*.c)
BENCH_MAIN := $(if $(BENCH_SRC),$(shell grep -lE '^int main\b' $(BENCH_SRC)))
BENCH_BIN := $(BENCH_MAIN:%.c=$(B)/%)
BENCH_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out $(BENCH_MAIN),$(BENCH_SRC)))
EXAMPLES := $(patsubst %.c,$(B)/%,$(wildcard examples/*.c)) $(if $(wildcard examples/demo/*.c),$(B)/examples/demo/demo)
DEMO = $(firstword $(filter %/demo %/demo/demo,$(EXAMPLES)) $(B)/examples/demo)

SHARED := $(B)/libunsalt.so.$(VERSION)
STATIC := $(B)/libunsalt.a
INTERNAL := $(B)/libunsalt-internal.a
SUPPORT := $(B)/tests/libsupport.a

## all: the libraries and the examples (default)
.PHONY: all
all: lib examples

## help: this list
.PHONY: help
help:
	@sed -n 's/^## \([a-z][a-z0-9-]*\): /\1\t/p' $(filter %akefile %.mk,$(MAKEFILE_LIST)) | \
	    awk -F'\t' '{ printf "%-16s %s\n", $$1, $$2 }'
	@echo
	@sed -n '/^# CONFIG/,/^$$/s/^# //p' Makefile

include tests/fuzz/fuzz.mk
include tests/model/model.mk
include tests/sim/sim.mk

# ---- the libraries

## lib: the shared and the static library
.PHONY: lib
lib: $(SHARED) $(STATIC)

# Objects depend on the flags that they were built with.
FLAGS_NOW := $(CC) | $(CPPFLAGS) | $(CFLAGS) | $(LDFLAGS) | $(WARN) $(STD)
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || echo '$(FLAGS_NOW)' > $@

# Libraries depend on the list of their objects: a removed source must leave them. The list says nothing of the folder,
# which may be given in two ways; a make that finds another list would build them anew under the feet of the first.
OBJECTS_NOW := $(patsubst $(B)/%,%,$(LIB_OBJ) $(SUPPORT_OBJ))
$(B)/objects: FORCE
	@mkdir -p $(@D)
	@echo '$(OBJECTS_NOW)' | cmp -s - $@ || echo '$(OBJECTS_NOW)' > $@

.PHONY: FORCE deps-build deps-examples deps-docs deps-test deps-deb deps-ci
FORCE:
deps-build deps-examples deps-docs deps-test deps-deb deps-ci: deps-%:
	@tests/harness/deps.sh $*

$(B)/lib/%.o: lib/%.c $(B)/flags | deps-build
	$(call say,CC      $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) $(RDKAFKA_CFLAGS) -c -o $@ $<

$(B)/lib/kafka/%.o: lib/kafka/%.c $(B)/flags | deps-build
	$(call say,CC      $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) $(SYSTEM_CFLAGS) $(RDKAFKA_CFLAGS) -c -o $@ $<

# The runtime of a sanitizer is in the program, so only plain configurations can insist on defined symbols.
$(SHARED): $(LIB_OBJ) $(B)/objects lib/libunsalt.map
	$(call say,LD      $@)
	$(Q)$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,lib/libunsalt.map \
	    $(if $(filter -fsanitize%,$(SANITIZE)),,-Wl$(comma)-z$(comma)defs) $(ALL_LDFLAGS) -o $@ $(LIB_OBJ) $(ALL_LDLIBS)
	$(Q)ln -sf $(@F) $(B)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(B)/libunsalt.so
comma := ,

# One object whose hidden symbols are made local: what is internal cannot clash with the application's names.
$(STATIC): $(LIB_OBJ) $(B)/objects
	$(call say,AR      $@)
	$(Q)ld -r -o $(B)/unsalt.o $(LIB_OBJ)
	$(Q)objcopy --localize-hidden $(B)/unsalt.o
	$(Q)rm -f $@ && ar rcsD $@ $(B)/unsalt.o

# For tests and benchmarks, which may look inside.
$(INTERNAL): $(LIB_OBJ) $(B)/objects
	$(Q)rm -f $@ && ar rcsD $@ $(LIB_OBJ)

# ---- examples and the demo: what a user sees, linked to the public library

## examples: all example programs
.PHONY: examples
examples: $(EXAMPLES)

EXAMPLE_CFLAGS = $(ALL_CFLAGS) $(SYSTEM_CFLAGS) $(RDKAFKA_CFLAGS)
# The demo's figures come from the checker of the tests, which knows nothing of the library.
$(B)/examples/demo/%.o: EXAMPLE_CFLAGS += -Itests
$(B)/examples/%.o: examples/%.c $(B)/flags | deps-examples
	$(call say,CC      $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(EXAMPLE_CFLAGS) -c -o $@ $<

$(B)/examples/demo/demo: $(patsubst %.c,$(B)/%.o,$(wildcard examples/demo/*.c)) $(CHECKER_OBJ) $(STATIC)
	$(call say,LINK    $@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

$(B)/examples/13_own_database: ALL_LDLIBS += -lsqlite3
$(filter-out %/demo/demo,$(EXAMPLES)): %: %.o $(STATIC)
	$(call say,LINK    $@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

## demo: the main job on an embedded cluster; FAULT=1 plants a fault, BOOTSTRAP=host:port uses a real cluster
.PHONY: demo
demo: deps-build
	@$(locked) $(DEMO)
	@FAULT='$(FAULT)' BOOTSTRAP='$(BOOTSTRAP)' $(DEMO)

# ---- test programs

$(B)/tests/checker/%.o: tests/checker/%.c $(B)/flags | deps-build
	$(call say,CC      $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(SYSTEM_CFLAGS) -Itests -c -o $@ $<

$(B)/tests/%.o: tests/%.c $(B)/flags | deps-test
	$(call say,CC      $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) $(RDKAFKA_CFLAGS) -c -o $@ $<

$(SUPPORT): $(SUPPORT_OBJ) $(B)/objects
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar rcsD $@ $(SUPPORT_OBJ)

$(PROGRAMS): $(B)/tests/programs/%: $(B)/tests/support/programs/%.o $(SUPPORT) $(INTERNAL)
	$(call say,LINK    $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

# Criterion is linked only if it is used (--as-needed); the runner tells by that which programs are plain. It
# can't start under ThreadSanitizer.
define test_rule
$(patsubst %.c,$(B)/%,$(wildcard tests/$(1)/*.c)): %: %.o $(if $(filter tsan,$(1)),$(TSAN_OBJ)) $(SUPPORT) $(INTERNAL)
	$$(call say,LINK    $$@)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ $$(ALL_LDLIBS) $$(if $$(filter tsan,$(1)),,$$(CRITERION_LIBS))
endef
TSAN_OBJ := $(if $(filter tsan,$(CONFIG)),$(B)/tests/harness/tsan-threads.o)
$(foreach s,$(ALL_SUITES) tsan,$(eval $(call test_rule,$(s))))
$(B)/tests/broker/callback_steps $(B)/tests/broker/examples: ALL_LDLIBS += -lsqlite3

$(B)/harness/%: tests/harness/%.c $(B)/flags | deps-build
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) $(RDKAFKA_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(ALL_LDLIBS)

# run-suites SUITES="unit oom" RUN_NAME=word RUN_FLAGS=...: builds and runs them in this configuration.
# RDKAFKA=newest runs them on the newest librdkafka instead of the installed one.
SUITES ?= unit property oom
RUN_NAME ?= check
RUN_FLAGS ?= -p $(JOBS)
RUN_BINS = $(call bins,$(SUITES))
.PHONY: run-suites test-bins
test-bins: $(RUN_BINS) $(PROGRAMS)

run-suites: deps-test
	@$(locked) test-bins $(B)/harness/rdkafka-version
	@tests/harness/on-rdkafka.sh $(or $(RDKAFKA),installed) $(B)/harness/rdkafka-version \
	    env UNSALT_TEST_PROGRAMS='$(abspath $(B)/tests/programs)' UNSALT_BUILD='$(abspath $(B))' \
	    tests/harness/run-tests.sh -n $(RUN_NAME) -l $(B)/logs/$(RUN_NAME) $(RUN_FLAGS) \
	    $(foreach s,$(SUITES),$(or $(call bins,$(s)),$(if $(T),,tests/$(s)/none)))

run = $(MAKE) run-suites

## check: unit, property and out-of-memory tests and the structural checks; quick
.PHONY: check
check: check-units check-api

.PHONY: check-units
check-units:
	@$(run) RUN_NAME=check SUITES="unit property oom"

# One test at a time: with two, Criterion 2.4.1 itself loses 48 bytes now and then.
## check-asan: the same tests with AddressSanitizer
.PHONY: check-asan
check-asan:
	@$(run) CONFIG=asan RUN_NAME=asan SUITES="unit property oom" RUN_FLAGS="-j 1 -p $(JOBS)"

## check-ubsan: the same tests with UndefinedBehaviorSanitizer
.PHONY: check-ubsan
check-ubsan:
	@$(run) CONFIG=ubsan RUN_NAME=ubsan SUITES="unit property oom"

## check-tsan: programs with several threads under ThreadSanitizer
.PHONY: check-tsan
check-tsan:
	@$(run) CONFIG=tsan RUN_NAME=tsan SUITES=tsan RUN_FLAGS=

# A process per test makes valgrind slow: the part that parses bytes and owns memory.
VALGRIND_PART ?= oom/ json header plain salt record_gap cursors skips seqset held conf
## check-valgrind: out-of-memory tests and the unit tests in VALGRIND_PART under valgrind
.PHONY: check-valgrind
check-valgrind:
	@$(run) CONFIG=debug RUN_NAME=valgrind SUITES="$(or $(VALGRIND_SUITES),unit oom)" RUN_FLAGS="-V -t 300 -p $(JOBS)" \
	    T="$(or $(T),$(VALGRIND_PART))"

# These tests wait most of the time.
MOCK_FLAGS := -j 4 -p 5 -t 180
# Criterion leaks when it runs tests side by side; programs wait most of the time, so many run at once instead.
MOCK_ASAN_FLAGS := -j 1 -p 16 -t 400
## check-mock: tests on librdkafka's mock cluster; RDKAFKA=newest for the newest librdkafka
.PHONY: check-mock
check-mock:
	@$(run) RUN_NAME=mock SUITES=mock RUN_FLAGS="$(MOCK_FLAGS)"

## check-mock-asan: the same with AddressSanitizer
.PHONY: check-mock-asan
check-mock-asan:
	@$(run) CONFIG=asan RUN_NAME=mock-asan SUITES=mock RUN_FLAGS="$(MOCK_ASAN_FLAGS)"

## check-mock-ubsan: the same with UndefinedBehaviorSanitizer
.PHONY: check-mock-ubsan
check-mock-ubsan:
	@$(run) CONFIG=ubsan RUN_NAME=mock-ubsan SUITES=mock RUN_FLAGS="$(MOCK_FLAGS)"

BROKER_SUITES ?= broker
## check-broker: tests on a real Kafka; RDKAFKA=newest, KAFKA=3.5.2, T and NOT as wanted; AS names its logs
.PHONY: check-broker
check-broker: deps-test
	@$(locked) examples test-bins SUITES="$(BROKER_SUITES)"
	@tests/harness/with-kafka.sh $(if $(KAFKA),-v $(KAFKA)) -- \
	    $(run) RUN_NAME=$(or $(AS),broker)$(addprefix -,$(filter newest,$(RDKAFKA))) SUITES="$(BROKER_SUITES)" \
	        RUN_FLAGS="-j 1 -t $(if $(UNSALT_LONG),3600,300)"

## canary: programs that must be reported as failures, or the reports of the runner are worth nothing
.PHONY: canary
canary: deps-test
	@tests/harness/canary.sh $(O)/canary

## check-api: the structural checks below, in one
.PHONY: check-api
check-api: deps-test
	@$(locked) lib bench-bins $(B)/harness/rdkafka-version
	@CC='$(CC)' CXX='$(CXX)' UNSALT_BUILD='$(abspath $(B))' tests/harness/run-tests.sh -n api -l $(B)/logs/api \
	    $(sort $(wildcard tests/api/*.sh))

## layers: who includes whom, and what the objects of each layer call
## limits: lengths of functions, files and lines, depth of nesting
## headers: each public header alone, as C11 and as C++17
## exports: symbols of the library = version script = declarations in the headers
## readme: the code blocks of the README compile
.PHONY: layers limits headers exports readme
layers limits headers exports readme: deps-test
	@$(locked) lib
	@CC='$(CC)' CXX='$(CXX)' UNSALT_BUILD='$(abspath $(B))' tests/api/$@.sh

## map: writes the version script lib/libunsalt.map from the headers, and Debian's symbols file from that
.PHONY: map
map:
	@mkdir -p $(O)
	@tests/api/exports.sh map > $(O)/libunsalt.map.new && mv $(O)/libunsalt.map.new lib/libunsalt.map
	@awk -f packaging/symbols.awk lib/libunsalt.map > debian/libunsalt0.symbols

## conf-table: prints the table of configuration properties from the library
.PHONY: conf-table
conf-table:
	@$(locked) $(B)/harness/conf-table >&2
	@$(B)/harness/conf-table

$(B)/harness/conf-table: tests/harness/conf-table.c $(INTERNAL) $(B)/flags | deps-build
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CFLAGS) $(RDKAFKA_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(INTERNAL) $(ALL_LDLIBS)

## test: everything that a change must pass, in minutes; ends with the number of tests
.PHONY: test
test: deps-test
	@O='$(O)' tests/harness/stages.sh test

## long: what takes too long for test: more iterations, larger cases
.PHONY: long
long: deps-test
	@O='$(O)' tests/harness/stages.sh long

## coverage: lines of the library that unit, property, out-of-memory and mock tests reach
.PHONY: coverage
coverage:
	@find $(O)/coverage* -name "*.gcda" -delete 2> /dev/null || true
	@$(run) CONFIG=coverage RUN_NAME=coverage SUITES="unit property oom mock"
	@tests/harness/coverage.sh $(O)/coverage$(if $(filter-out gcc cc,$(CCNAME)),-$(CCNAME))

# ---- benchmarks

$(B)/bench/%.o: bench/%.c $(B)/flags | deps-build
	$(call say,CC      $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LIB_CFLAGS) $(SYSTEM_CFLAGS) -Ibench $(RDKAFKA_CFLAGS) -c -o $@ $<

# What the core is compared with; DPDK only if it is there.
DPDK = $(shell pkg-config --exists libdpdk && echo 1)
BENCH_CXXFLAGS = -std=c++17 -Wall -Wextra $(WERROR) -Iinclude -Ibench $(CFLAGS) $(SANITIZE) -MMD -MP
ORDERERS := $(patsubst bench/%,$(B)/bench/%.o,$(basename $(wildcard bench/orderers/*.c bench/orderers/*.cc)))

$(B)/bench/orderers/%.o: bench/orderers/%.cc $(B)/flags | deps-build
	$(call say,CXX     $@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(BENCH_CXXFLAGS) -c -o $@ $<

# Objects and program depend on whether it was there.
DPDK_NOW = DPDK: $(or $(DPDK),none)
$(B)/bench/dpdk: FORCE
	@mkdir -p $(@D)
	@echo '$(DPDK_NOW)' | cmp -s - $@ || echo '$(DPDK_NOW)' > $@

# Its headers are not as clean as ours: no warnings of them.
DPDK_INCLUDES = $(patsubst -I%,-isystem%,$(shell pkg-config --cflags libdpdk))
DPDK_CFLAGS = $(DPDK_INCLUDES) -DBENCH_DPDK -DALLOW_EXPERIMENTAL_API -D_GNU_SOURCE
$(B)/bench/orderers/reorder.o: $(B)/bench/dpdk
$(B)/bench/orderers/reorder.o: RDKAFKA_CFLAGS = $(if $(DPDK),$(DPDK_CFLAGS))
$(B)/bench/core: $(ORDERERS)
$(B)/bench/core: ALL_LDLIBS += -lstdc++ $(if $(DPDK),$(shell pkg-config --libs libdpdk))

$(BENCH_BIN): $(B)/bench/%: $(B)/bench/%.o $(BENCH_OBJ) $(INTERNAL)
	$(call say,LINK    $@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

.PHONY: bench-bins
bench-bins: $(BENCH_BIN)

# PARTS=... runs these parts only (bench/run.sh has their names); RESULTS=FILE adds the JSON lines to FILE, and leaves
# out the parts that it says were done.
BENCH_RUN = FORMAT='$(FORMAT)' $(if $(RESULTS),UNSALT_BENCH_JSON='$(abspath $(RESULTS))') \
    UNSALT_BENCH_DIR='$(abspath $(B)/bench)' UNSALT_BENCH_VERSION='$(abspath $(B)/harness/rdkafka-version)' \
    bash bench/run.sh
bench_deps = tests/harness/deps.sh bench >&2 || echo 'bench: goes on without what could not be installed' >&2
bench_build = $(locked) bench-bins $(B)/harness/rdkafka-version >&2

BENCH_PARTS = core consumer latency hot_key restart workers
BENCH_FULL = core consumer latency peers scaling restart workers
## bench: benchmarks against the plain calls; FORMAT=json: an object per line, FULL=1: the whole matrix, PARTS=...
.PHONY: bench
bench:
	@tests/harness/deps.sh build test >&2
	@$(bench_deps)
	@$(bench_build)
	@$(BENCH_RUN) $(or $(PARTS),$(if $(filter-out 0,$(FULL)),$(BENCH_FULL),$(BENCH_PARTS)))

## bench-peers: a hot key against Confluent Parallel Consumer; FORMAT, FULL and RESULTS as with bench
.PHONY: bench-peers
bench-peers:
	@tests/harness/deps.sh build test >&2
	@$(bench_build)
	@$(BENCH_RUN) peers

PLOTTED = $(O)/plots/results.jsonl
# BENCH_RESULTS=FILE... draws what is in these files instead of measuring.
## bench-plots: measures latency and scaling, and draws them as PNG files in $(O)/plots
.PHONY: bench-plots
bench-plots:
	@tests/harness/deps.sh build test plots >&2
	@$(if $(BENCH_RESULTS),:,$(bench_deps))
	@$(if $(BENCH_RESULTS),:,$(bench_build))
	@mkdir -p $(O)/plots
	@$(if $(BENCH_RESULTS),:,rm -f $(PLOTTED); $(MAKE) -s bench-plots-measure RESULTS=$(PLOTTED))
	@bash bench/plots/plot.sh $(O)/plots $(or $(BENCH_RESULTS),$(PLOTTED))

.PHONY: bench-plots-measure
bench-plots-measure:
	@$(BENCH_RUN) lanes latency scaling

# RESULTS=FILE prints the table of targets for the results in FILE instead, and writes nothing.
## bench-tables: writes the tables of README.md and bench/README.md from bench/results/*.jsonl, and draws its plots
.PHONY: bench-tables
bench-tables:
ifneq ($(RESULTS),)
	@python3 bench/tables/tables.py targets $(RESULTS)
else
	@tests/harness/deps.sh plots >&2
	@python3 bench/tables/tables.py write
	@bash bench/plots/plot.sh bench/results bench/results/*.jsonl
endif

## clean: removes everything that was built
.PHONY: clean
clean:
	rm -rf $(O)

include packaging/packaging.mk
include tests/speed/speed.mk
include tests/mutants/mutants.mk
include tests/chaos/chaos.mk
-include $(shell find $(B) -name '*.d' 2> /dev/null)
