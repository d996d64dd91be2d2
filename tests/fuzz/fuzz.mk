# SPDX-License-Identifier: BSD-2-Clause
# Fuzzing and soaking. The functions of tests/fuzz/ are linked twice: each to libFuzzer (CONFIG=fuzz, clang), and all
# of them to tests/unit/test_fuzz_corpus.c, which plays the kept inputs under any compiler.

.DEFAULT_GOAL := all

FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_OBJ := $(FUZZ_NAMES:%=$(B)/tests/fuzz/fuzz_%.o)
FUZZ_BIN := $(FUZZ_NAMES:%=$(B)/fuzz/%)
# Seconds for each target; SECONDS, since that is what one thinks of.
FUZZ_SECONDS = $(if $(filter command% environment%,$(origin SECONDS)),$(SECONDS),60)

ifeq ($(CONFIG),fuzz)
$(FUZZ_OBJ): CPPFLAGS += -DUNSALT_FUZZ=
$(FUZZ_BIN): $(B)/fuzz/%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/libsupport.a $(B)/libunsalt-internal.a
	$(call say,LINK    $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize=fuzzer%,$(ALL_LDFLAGS)) -fsanitize=fuzzer,address,undefined -o $@ $^ $(ALL_LDLIBS)
endif

.PHONY: fuzz fuzz-bins
fuzz-bins: $(FUZZ_BIN)

## fuzz: SECONDS=60 on each fuzz target in turn (T=name for one), on all cores; ends 0 if nothing was found
fuzz:
	@tests/harness/deps.sh test ci
	@$(build) CONFIG=fuzz CC=clang fuzz-bins
	@tests/fuzz/run.sh '$(O)/fuzz-clang' $(FUZZ_SECONDS) $(or $(T),$(FUZZ_NAMES))

# The archives once more, for what the targets call.
$(B)/tests/unit/test_fuzz_corpus: $(FUZZ_OBJ)
$(B)/tests/unit/test_fuzz_corpus: LDLIBS += $(B)/tests/libsupport.a $(B)/libunsalt-internal.a

# ---- soak

$(B)/soak: $(B)/tests/soak/soak.o $(B)/tests/libsupport.a $(B)/libunsalt-internal.a
	$(call say,LINK    $@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

## soak: MINUTES=5 of the core on a virtual clock, days of simulated time; ends 0 if nothing grew or went wrong
.PHONY: soak
soak: deps-test
	@$(locked) $(B)/soak
	@$(B)/soak $(or $(MINUTES),5)
