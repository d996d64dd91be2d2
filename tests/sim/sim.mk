# SPDX-License-Identifier: BSD-2-Clause
# The simulator: all of tests/sim is one program.

SIM_OBJ := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/sim/*.c)))

$(B)/sim: $(SIM_OBJ) $(B)/tests/support/prng.o $(B)/libunsalt-internal.a
	$(call say,LINK    $@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

## sim: SCHEDULES=100000 of members, coordinator and producers on a virtual clock (SEED=n); ends 0 if nothing was wrong
.PHONY: sim
sim: deps-test
	@$(locked) $(B)/sim
	@$(B)/sim $(or $(SCHEDULES),100000) $(SEED)

## check-sim: the simulator finds what is planted into it, and 100,000 schedules find nothing else
.PHONY: check-sim
check-sim: deps-test
	@$(locked) $(B)/sim
	@tests/sim/selftest.sh $(B)/sim
	@$(B)/sim 100000 1
