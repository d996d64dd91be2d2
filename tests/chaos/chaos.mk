# SPDX-License-Identifier: BSD-2-Clause
# Chaos on a real cluster; see tests/chaos/README.md. Included by the Makefile.

# Who was cut off blocks the others for seconds, not for minutes.
CHAOS_CLUSTER := default.replication.factor=3 min.insync.replicas=2 \
    transaction.abort.timed.out.transaction.cleanup.interval.ms=1000 \
    group.consumer.min.session.timeout.ms=1000 group.consumer.session.timeout.ms=6000 \
    group.consumer.min.heartbeat.interval.ms=100 group.consumer.heartbeat.interval.ms=500

CHAOS_PROGRAMS := $(patsubst %,$(B)/chaos/%,member producer topics)

$(CHAOS_PROGRAMS): $(B)/chaos/%: $(B)/tests/chaos/%.o $(B)/tests/chaos/journal.o $(INTERNAL)
	$(call say,LINK    $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

.PHONY: chaos chaos-bins
chaos-bins: $(CHAOS_PROGRAMS)

## chaos: MINUTES=2 of faults on a cluster of three brokers, SEED=s replays a plan; CHECKPOINT=topic, RDKAFKA=newest
chaos: deps-test
	@$(locked) chaos-bins $(B)/harness/rdkafka-version
	@tests/harness/on-rdkafka.sh $(or $(RDKAFKA),installed) $(B)/harness/rdkafka-version \
	    env KAFKA_PROPERTIES='$(CHAOS_CLUSTER)' \
	    LSAN_OPTIONS='suppressions=$(CURDIR)/tests/harness/lsan.supp:print_suppressions=0' \
	    tests/harness/with-kafka.sh -n 3 -- python3 tests/chaos/run.py '$(abspath $(B))' \
	    $(if $(PLAN),--plan '$(PLAN)') $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(CHECKPOINT),--checkpoint $(CHECKPOINT)) $(if $(PROTOCOL),--protocol $(PROTOCOL))
