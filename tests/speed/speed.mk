# SPDX-License-Identifier: BSD-2-Clause
# The guard of speed: instructions of the core's paths. A build of its own, whatever CFLAGS and CONFIG say otherwise.

SPEED_PATHS := $(O)/speed/release/speed-paths

$(B)/tests/speed/%.o: TEST_CFLAGS += -Ibench
$(B)/speed-paths: $(B)/tests/speed/paths.o $(B)/bench/engine.o $(INTERNAL)
	$(call say,LINK    $@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

.PHONY: speed-paths
speed-paths: deps-test
	@$(build) $(SPEED_PATHS) O='$(O)/speed' CONFIG=release CC=gcc CFLAGS='-O2 -g' LAYERS='base codec core'

## check-speed: instructions per record of the core's paths against those committed
## speed-record: commits to what they are now: writes tests/speed/instructions.txt
.PHONY: check-speed speed-record
check-speed: speed-paths
	@CC=gcc tests/speed/check.sh $(SPEED_PATHS) tests/speed/instructions.txt
speed-record: speed-paths
	@CC=gcc tests/speed/check.sh $(SPEED_PATHS) tests/speed/instructions.txt record
