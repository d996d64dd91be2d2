/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member that may have been thrown out of its group hands out nothing, reads nothing and commits nothing by itself:
 * others may own its partitions already.
 *
 * librdkafka says so from the moment on at which it knows. But after a hang of more than max.poll.interval.ms what
 * waits in its queue comes first, an assignment of a generation that is over perhaps; for a while afterwards nothing is
 * believed but a revoke.
 *
 * With the classic protocol it may never know: if a rebalance is under way when the interval is over, it leaves the
 * group and forgets its member id, but takes no partitions away. An assignment that is taken then sends no heartbeat
 * any more, for the interval was exceeded, and only a commit would tell (all versions); a revoke looks like any other.
 * A member without an id has no partitions: a revoke is one of what is lost, and without one it subscribes anew, which
 * takes them away.
 *
 * A static member whose place was taken hears so from whatever it asks the group first; if that is a commit in a
 * transaction, librdkafka's consumer doesn't know. It gives up everything at once, and can't come back. So does one
 * whose librdkafka has failed for good: it hears of no rebalance any more. If it is told only that its producer was
 * replaced, it hands out nothing until the group has had time to say more.
 *
 * A member that hears amid a rebalance that its generation is over, or that nobody knows it, forgets generation or id,
 * and keeps its partitions as well. Commits without both are taken by a broker from anybody, so none is made then; and
 * there is a doubt, by which the rest follows as after a hang.
 */
#include <kafka/consumer.h>
#include <kafka/member.h>
#include <stdlib.h>

/* librdkafka looks once a second whether the interval is over, and tells the application in the next moment. */
#define DOUBT_NS (2000 * US_MS)

#define REJOIN_NS (1000 * US_MS)
#define REFUSED_NS (5000 * US_MS) /* beyond a heartbeat: its answer, or the interval that a newer group sets */

static bool has_partitions(const struct unsalt *u) {
    for (uint32_t i = 0; i < u->partition_count; i++) {
        if (us_partition_ours(u->partitions[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the group has forgotten this member although librdkafka has partitions for it. */
static bool is_nobody(const struct unsalt *u) {
    if (!has_partitions(u) || rd_kafka_assignment_lost(u->rk)) {
        return false;
    }
    char *id = rd_kafka_memberid(u->rk);
    bool nobody = id && id[0] == '\0';
    rd_kafka_mem_free(u->rk, id);
    return nobody;
}

static uint64_t most(const struct unsalt *u) {
    return (uint64_t)u->before.max_poll_ms * US_MS;
}

/* ---- joining anew */

/* Whatever of it fails is tried again a second later. */
static void join_anew(struct unsalt *u, uint64_t now) {
    rd_kafka_resp_err_t err = us_member_join_anew(u->rk, &u->rejoin);
    u->rejoin_at = 0;
    if (err) {
        us_log(u, 3, "this member can't join its group anew, tried again: %s", rd_kafka_err2str(err));
        u->rejoin_at = now + REJOIN_NS;
    } else {
        us_fence_forget(u);
    }
}

void us_fence_join_anew(struct unsalt *u) {
    u->rejoin_at = us_clock_now() + REJOIN_NS;
}

void us_fence_forget(struct unsalt *u) {
    u->rejoin_at = 0;
    if (u->rejoin) {
        rd_kafka_topic_partition_list_destroy(u->rejoin);
        u->rejoin = NULL;
    }
}

/* ---- doubt */

static bool in_doubt(const struct unsalt *u) {
    return u->served_at < u->doubt_until;
}

/* Polls come seldom enough for the group to have lost patience. */
static bool hangs(const struct unsalt *u, uint64_t now) {
    return u->subscribed && u->served_at > 0 && now > u->served_at + most(u);
}

void us_fence_heard(struct unsalt *u, rd_kafka_resp_err_t err) {
    u->replaced |= err == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
}

/*
 * Its producer was replaced, or a transaction took too long: a static member's place may have been taken, which the
 * group says by its answer to the next heartbeat.
 */
void us_fence_refused(struct unsalt *u) {
    char value[32] = "";
    size_t size = sizeof(value);
    if (u->before.fixed) {
        rd_kafka_conf_get(rd_kafka_conf(u->rk), "heartbeat.interval.ms", value, &size);
        u->doubt_until = us_clock_now() + strtoull(value, NULL, 10) * US_MS + REFUSED_NS;
    }
}

static void end_if_over(struct unsalt *u) {
    char text[256] = "another member has the same group.instance.id";
    if ((rd_kafka_fatal_error(u->rk, text, sizeof(text)) || u->replaced) && has_partitions(u)) {
        us_log(u, 3, "this member is over, its partitions are given up: %s", text);
        u->replaced = true;
        us_revoke_lost(u);
    }
}

void us_fence_round(struct unsalt *u, uint64_t now) {
    end_if_over(u);
    /* A revoke that waits is ended instead, which leads to a new join, too. */
    if (in_doubt(u) && !u->thrown_out && !u->revoke.active && is_nobody(u)) {
        us_log(u, 4, "this member was thrown out of its group: joining anew");
        u->thrown_out = true;
        u->rejoin_at = now;
    }
    if (u->rejoin_at && now >= u->rejoin_at && !u->revoke.active) {
        join_anew(u, now);
    }
    if (hangs(u, now)) {
        u->doubt_until = now + DOUBT_NS;
    }
    u->served_at = now;
}

/* What an incremental protocol has left here is lost, too, if the member is nobody. */
void us_fence_settled(struct unsalt *u) {
    u->thrown_out = (u->thrown_out || in_doubt(u)) && is_nobody(u);
    u->doubt_until = 0;
    if (u->thrown_out) {
        u->rejoin_at = us_clock_now();
    }
}

/* Also before the main queue is served after a hang: in a commit of the application, or after its callback. */
bool us_assignment_lost(const struct unsalt *u) {
    return u->thrown_out || u->replaced || rd_kafka_assignment_lost(u->rk) ||
           ((in_doubt(u) || hangs(u, us_clock_now())) && is_nobody(u));
}

/* Not so of an application that assigns by itself: then it is a member of nothing, and may commit. */
static bool any_given(const struct unsalt *u) {
    bool any = false;
    for (uint32_t i = 0; u->member && i < u->partition_count && !any; i++) {
        any = us_partition_ours(u->partitions[i]) && u->partitions[i]->given;
    }
    return any;
}

bool us_fence_metadata(struct unsalt *u, rd_kafka_consumer_group_metadata_t **metadata) {
    *metadata = rd_kafka_consumer_group_metadata(u->rk);
    if (*metadata && any_given(u) && !us_member_is_of_generation(*metadata)) {
        u->doubt_until = us_clock_now() + DOUBT_NS;
        return false;
    }
    return !us_assignment_lost(u);
}

static bool fenced_here(const struct unsalt *u) {
    return in_doubt(u) || u->thrown_out || (u->replaced && has_partitions(u));
}

bool us_fenced(const struct unsalt *u) {
    return fenced_here(u) || rd_kafka_assignment_lost(u->rk);
}

/*
 * The question costs a locked instruction, and the answer may change right behind it anyway. `kept_at` is the tick in
 * which librdkafka last said that the assignment isn't lost.
 */
bool us_fenced_since(struct unsalt *u, uint64_t tick) {
    if (fenced_here(u)) {
        return true;
    }
    if (tick != u->kept_at) {
        if (rd_kafka_assignment_lost(u->rk)) {
            return true;
        }
        u->kept_at = tick;
    }
    return false;
}
