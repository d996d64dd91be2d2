/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commit and ownership in a consumer group: members that read, hold, release, acknowledge and commit, a group
 * coordinator that fences by generation, and, with CHECKPOINT, transactions of cursors and offsets. README.md beside
 * this file says what is left out, what is checked, and which rules are taken out by the names that begin with NO_.
 *
 * One lane set of two partitions, two sessions spread over both, four records; each is one bit of a mask:
 *
 *     partition 0:  a2 (1)  b2 (2)          partition 1:  a1 (4)  b1 (8)
 *
 * With SMALL there is no b1, so that b is a session of partition 0 alone. Offsets are masks too: all records below
 * them. b2 can be acknowledged while a2, below it in its partition, waits for a1: what a committed offset can't say,
 * and a checkpoint can.
 */
#ifndef MEMBERS
#define MEMBERS 2
#endif
#ifndef TROUBLES /* rebalances without a cause, members thrown out while they live, members that crash: so many */
#define TROUBLES 1
#endif

#ifdef SMALL
#define ALL 7
#else
#define ALL 15
#endif
#define NOBODY MEMBERS
#define BOTH 3 /* partitions, one bit each */
#define RECORDS(parts) (((((parts) & 1) * 3) | (((parts) & 2) * 6)) & ALL)
#define BEFORE(r) (((r) == 1 -> 4 : ((r) == 2 -> 8 : 0)) & ALL)
#define AFTER(r) ((r) == 4 -> 1 : ((r) == 8 -> 2 : 0))
/* What is below the lowest record of each partition that isn't in the mask: the frontier. */
#define FRONTIER(m) (((m) & 1) | (((m) & 3) == 3 -> 2 : 0) | ((m) & 4) | (((m) & 12) == 12 -> 8 : 0))
#define HOLDS(i) ((holder[0] == i -> 1 : 0) | (holder[1] == i -> 2 : 0))

#ifdef PROPERTY_A
#define A(x) assert(x)
#define GHOST_A(x) x
#else
#define A(x) skip
#define GHOST_A(x) skip
#endif
#ifdef PROPERTY_B
#define B(x) assert(x)
#define GHOST_B(x) x
#else
#define B(x) skip
#define GHOST_B(x) skip
#endif
#ifdef PROPERTY_C
#define C(x) assert(x)
#define GHOST_C(x) x
#else
#define C(x) skip
#define GHOST_C(x) skip
#endif
#ifdef PROPERTY_D
#define D(x) assert(x)
#else
#define D(x) skip
#endif
#ifdef PROPERTY_E
#define E(x) assert(x)
#else
#define E(x) skip
#endif
#ifdef SHOW
#define SAY(s) printf s
#else
#define SAY(s) skip
#endif

/* ---- what the world knows */

bool crashed[MEMBERS];
bool crash_to_come = true; /* one at most, or nobody would be left */
byte troubles = TROUBLES;
byte delivered; /* handed to some application at least once */
byte processed; /* and acknowledged by it */

/* ---- the group coordinator */

byte generation = 1; /* goes 1, 2, 3, 1: old ones are of interest only as such */
byte known[MEMBERS]; /* the generation of each member, 0 = not in the group */
byte holder[2];      /* of each partition */
byte committed;      /* offsets */
#ifdef PIECES
byte wanted; /* who is to have the set */
#else
bool rebalancing;
bool joined[MEMBERS];
#endif

/* ---- transactions: a member has one at a time, with an entry in the log and offsets that wait for the end */

#define IDLE 0
#define OPEN 1
#define COMMIT 2 /* decided; the markers are being written */
#define ABORT 3
byte covered; /* what a commit that returned, or will, says is done */
#ifdef CHECKPOINT
#define LOG 5
byte state[MEMBERS];
bool pending[MEMBERS]; /* offsets wait */
bool outdone[MEMBERS]; /* but later ones were applied already */
byte pending_parts[MEMBERS];
byte pending_offsets[MEMBERS];
byte pending_rank[MEMBERS];
byte log_size;
byte log_done[LOG]; /* an entry says which records are done: cursors, and what was acknowledged above them */
byte log_by[LOG];
bool log_open[LOG];
byte asked[MEMBERS]; /* the end of the log as a reader was told, + 1 */
#endif

#define NEXT_GENERATION generation = generation % 3 + 1
#define IS_OWNER(i) (known[i] == mine && HOLDS(i) == BOTH)
#ifdef NO_FENCE
#define FENCED(i, g) false
#else
#define FENCED(i, g) ((g) == 0 || known[i] != (g))
#endif

inline apply_offsets(parts_, offsets_) {
    A(((offsets_) & ~processed) == 0); /* nothing is committed that no application was done with */
    D(((committed & RECORDS(parts_)) & ~(offsets_)) == 0); /* an offset never goes back */
    committed = (committed & ~RECORDS(parts_)) | (offsets_);
}

#ifdef CHECKPOINT
/* Entries that nobody will see leave the log, or it would grow for ever: that of an abort, and what a later commit
 * has replaced, unless a reader was told an end between the two. */
inline remove_entry(k_) {
    m = k_;
    do
    :: m + 1 < log_size ->
        log_done[m] = log_done[m + 1];
        log_by[m] = log_by[m + 1];
        log_open[m] = log_open[m + 1];
        m++
    :: else -> break
    od;
    log_size--;
    log_done[log_size] = 0;
    log_by[log_size] = 0;
    log_open[log_size] = 0;
    m = 0;
    do
    :: m < MEMBERS ->
        if
        :: asked[m] > k_ + 1 -> asked[m]--
        :: else
        fi;
        m++
    :: else -> break
    od;
    m = 0
}

inline compact() {
    k = 0;
    do
    :: k + 1 < log_size ->
        /* replaced: committed, the next one committed as well, and nobody was told an end between them */
        replaced = !log_open[k] && !log_open[k + 1];
        m = 0;
        do
        :: m < MEMBERS -> replaced = replaced && asked[m] != k + 2; m++
        :: else -> break
        od;
        m = 0;
        if
        :: replaced -> remove_entry(k)
        :: else -> k++
        fi
    :: else -> break
    od;
    k = 0;
    replaced = false
}

inline end_entry(i_) {
    k = 0;
    do
    :: k < log_size && !(log_by[k] == i_ && log_open[k]) -> k++
    :: else -> break
    od;
    if
    :: state[i_] == COMMIT -> log_open[k] = false; log_by[k] = 0
    :: else -> remove_entry(k)
    fi;
    k = 0;
    compact()
}

inline end_offsets(i_) {
    if
    :: state[i_] == COMMIT && !outdone[i_] ->
        apply_offsets(pending_parts[i_], pending_offsets[i_]);
        /* Of two that wait the later one counts, whichever ends first. */
        k = 0;
        do
        :: k < MEMBERS ->
            if
            :: pending[k] && pending_rank[k] < pending_rank[i_] -> outdone[k] = true
            :: else
            fi;
            k++
        :: else -> break
        od;
        k = 0
    :: else
    fi;
    pending[i_] = false;
    outdone[i_] = false;
    pending_parts[i_] = 0;
    pending_offsets[i_] = 0;
    pending_rank[i_] = 0
}

#define HAS_OPEN_ENTRY(i)                                                                                              \
    ((log_size > 0 && log_by[0] == i && log_open[0]) || (log_size > 1 && log_by[1] == i && log_open[1]) ||            \
     (log_size > 2 && log_by[2] == i && log_open[2]) || (log_size > 3 && log_by[3] == i && log_open[3]) ||            \
     (log_size > 4 && log_by[4] == i && log_open[4]))
/* An open transaction below the end that reader i was told. */
#define OPEN_BELOW(i)                                                                                                  \
    ((asked[i] > 1 && log_open[0]) || (asked[i] > 2 && log_open[1]) || (asked[i] > 3 && log_open[2]) ||               \
     (asked[i] > 4 && log_open[3]) || (asked[i] > 5 && log_open[4]))
#define PENDING_OF(j, set) (pending[j] && (pending_parts[j] & (set)))
#if MEMBERS == 2
#define UNSTABLE(set) (PENDING_OF(0, set) || PENDING_OF(1, set))
#else
#define UNSTABLE(set) (PENDING_OF(0, set) || PENDING_OF(1, set) || PENDING_OF(2, set))
#endif

inline settle(i_) {
    if
    :: !pending[i_] && !HAS_OPEN_ENTRY(i_) -> state[i_] = IDLE
    :: else
    fi
}

/* Ends the transactions of one member: by its timeout if nobody else does, and by markers to the group and to the log,
 * in either order, some time. */
proctype transactions(byte j) {
    byte k, m;
    bool replaced;
end:
    do
#ifndef NO_TRANSACTION_TIMEOUT
    :: d_step { state[j] == OPEN && known[j] == 0 ->
        state[j] = ABORT;
        settle(j);
        SAY(("     the transaction of member %d is aborted by its timeout\n", j)) }
#endif
    :: d_step { state[j] >= COMMIT && pending[j] ->
        end_offsets(j);
        settle(j);
        SAY(("     marker of member %d at the group; committed is %d\n", j, committed)) }
    :: d_step { state[j] >= COMMIT && HAS_OPEN_ENTRY(j) ->
        end_entry(j);
        settle(j);
        SAY(("     marker of member %d in the log\n", j)) }
    od
}
#endif

/* ---- a member: the library and its application */

/* Everything of an assignment that is over; what the application still has is acknowledged in vain. */
inline drop(parts_) {
    own = own & ~(parts_);
    fetched = fetched & ~(parts_);
    start = start & ~RECORDS(parts_);
    if
    :: out & RECORDS(parts_) -> late = true
    :: else
    fi;
#ifdef CHECKPOINT
    /* What was acknowledged of a session is kept while any part of its set is: an entry that says less than an
     * earlier one would take it back. */
#ifdef NO_MEMORY_OF_WHAT_WENT
    done = done & ~RECORDS(parts_);
#endif
    asked[i] = 0;
#else
    done = done & ~RECORDS(parts_);
#endif
    if
    :: own == 0 -> done = 0
    :: else
    fi;
#ifdef NO_STEP_BACK /* what was handed out and not acknowledged stays a copy when it is read again */
    done = done | (out & RECORDS(parts_));
#endif
    sent = sent & done;
    passed = 0;
    restored = false
}

inline lose() {
    SAY(("%d: notices that it was thrown out\n", i));
    drop(BOTH);
    mine = 0
}

/* What was not read yet can't be told from what waits for its turn to be chosen, so nothing is said about reading. */
#define CAN(r) ((RECORDS(fetched) & ~start & ~done & (r)) && !(BEFORE(r) & ~done & KNOWN))
#ifdef NO_COMPLETE_SET /* hands out what it can with the part that it has */
#define READY (fetched != 0)
#define KNOWN RECORDS(own)
#else
#define READY (restored && own == BOTH)
#define KNOWN ALL
#endif

inline release(r) {
    d_step {
        READY && !out && CAN(r) ->
            SAY(("%d: hands out %d\n", i, r));
            B((BEFORE(r) & ~delivered) == 0);     /* nobody sees a record before its predecessor was handed out */
            B((AFTER(r) & passed) == 0);          /* and in one pass they ascend */
            B(!IS_OWNER(i) || !(committed & r));  /* again only above the committed frontier */
            C(!IS_OWNER(i) || !(covered & r));    /* again only what no commit covers */
            out = r;
            GHOST_B(passed = passed | r; delivered = delivered | r);
#ifdef NO_WAIT_FOR_ACK /* what was handed out counts as done */
            done = done | r;
#endif
    }
}

inline acknowledge() {
    d_step {
        out ->
            SAY(("%d: acknowledges %d (in vain: %d)\n", i, out, late));
            GHOST_A(processed = processed | out);
#ifdef NO_ACK_FENCE
            done = done | out;
            old = (late -> out : 0);
#else
            done = done | (late -> 0 : out);
#endif
            out = 0;
            late = false
    }
}

/* What is committed: the frontiers of the partitions that it has. */
#ifdef NO_ACK_FENCE
#define PARTS (fetched | (old & 3 -> 1 : 0) | (old & 12 -> 2 : 0))
#else
#define PARTS fetched
#endif

inline accept(g_, parts_) {
    D(known[i] == g_ && (parts_ & ~HOLDS(i)) == 0); /* it is a member of now, and the partitions are its own */
}

#ifndef CHECKPOINT
inline commit() {
    d_step {
        if
        :: FENCED(i, mine) -> SAY(("%d: the commit of %d is refused\n", i, FRONTIER(done))); lose()
        :: else ->
            accept(mine, PARTS);
            SAY(("%d: commits %d\n", i, FRONTIER(done) & RECORDS(PARTS)));
            apply_offsets(PARTS, FRONTIER(done) & RECORDS(PARTS));
            sent = done;
            old = 0
        fi
    }
}
#else
#if MEMBERS == 2
#define RANK(i) pending_rank[i] = (pending[1 - i] -> pending_rank[1 - i] + 1 : 1)
#else
#define RANK(i)                                                                                                        \
    pending_rank[i] = 1 + (pending[(i + 1) % 3] -> pending_rank[(i + 1) % 3] : 0) +                                   \
                      (pending[(i + 2) % 3] -> pending_rank[(i + 2) % 3] : 0)
#endif

/* The entry reaches the log, unless its transaction was ended by others. */
inline append() {
    if
    :: state[i] == OPEN && !HAS_OPEN_ENTRY(i) ->
        assert(log_size < LOG);
        log_done[log_size] = snap;
        log_by[log_size] = i;
        log_open[log_size] = true;
        log_size++;
        SAY(("%d: its entry (done: %d) is in the log\n", i, snap))
    :: else
    fi
}

/* One transaction. A failure is noticed by `known`, as by an error of the producer. */
inline commit() {
    d_step {
        state[i] == IDLE ->
            state[i] = OPEN;
            snap = done;
            parts = PARTS;
            gen = mine;
            SAY(("%d: begins a transaction, done: %d\n", i, snap));
#ifndef NO_FLUSH
            append()
#endif
    }
    d_step {
        if
        :: state[i] == OPEN && !FENCED(i, gen) ->
            accept(gen, parts);
            pending[i] = true;
            pending_parts[i] = parts;
            pending_offsets[i] = FRONTIER(snap) & RECORDS(parts);
            RANK(i);
            SAY(("%d: its offsets (%d) wait at the group\n", i, pending_offsets[i]))
        :: else -> gen = 0; SAY(("%d: its offsets are refused\n", i))
        fi
    }
#ifdef NO_FLUSH
    if
    :: gen -> d_step { append() }
    :: else
    fi;
#endif
    d_step {
        if
        :: state[i] == OPEN && gen ->
            state[i] = COMMIT;
            GHOST_C(covered = covered | snap);
            sent = snap;
            old = 0;
            SAY(("%d: the transaction is committed\n", i))
        :: state[i] == OPEN && !gen -> state[i] = ABORT; settle(i); lose()
        :: else -> lose() /* ended by its timeout, perhaps long ago */
        fi;
        snap = 0;
        parts = 0;
        gen = 0
    }
}
#endif

#if !defined(CHECKPOINT)
#define MAY_FETCH true
#elif defined(NO_STABLE_OFFSETS)
#define MAY_FETCH ASKED_BEFORE
#else
#define MAY_FETCH (ASKED_BEFORE && !UNSTABLE(NEW))
#endif
#ifdef NO_ORDER_OF_QUESTIONS
#define ASKED_BEFORE asked[i]
#else
#define ASKED_BEFORE true
#endif

/* The committed offsets of the partitions that are new here, by one question: reading begins there. */
#define NEW (own & ~fetched)
inline fetch() {
    d_step {
        NEW && MAY_FETCH ->
            SAY(("%d: begins partitions %d at %d\n", i, NEW, committed & RECORDS(NEW)));
#ifdef CHECKPOINT
            start = start | (committed & RECORDS(NEW));
#else
            done = done | (committed & RECORDS(NEW));
            sent = sent | (committed & RECORDS(NEW));
#endif
            fetched = own;
#ifndef CHECKPOINT
            restored = (own == BOTH)
#endif
    }
}

#ifdef CHECKPOINT
#if defined(NO_WHOLE_SET_FIRST) /* asks as soon as it has a part */
#define MAY_ASK (own != 0)
#elif defined(NO_ORDER_OF_QUESTIONS) /* the end first, then the offsets */
#define MAY_ASK (own == BOTH)
#else
#define MAY_ASK (own == BOTH && fetched == BOTH)
#endif
#ifdef NO_WAIT_FOR_OPEN
#define MAY_READ (asked[i] && own == BOTH && fetched == BOTH)
#else
#define MAY_READ (asked[i] && own == BOTH && fetched == BOTH && !OPEN_BELOW(i))
#endif

inline read_checkpoint() {
    d_step {
        !restored && MAY_READ ->
            n = 0;
            snap = 0;
            do
            :: n + 1 < asked[i] ->
                if
                :: !log_open[n] -> snap = log_done[n]
                :: else
                fi;
                n++
            :: else -> break
            od;
            SAY(("%d: has read the log, done: %d\n", i, snap));
            done = done | snap;
            C(!IS_OWNER(i) || (start & ~done) == 0); /* no record between offset and cursor is taken for lost */
            done = done | start;
            sent = sent | snap | start;
            start = 0;
            restored = true;
            asked[i] = 0;
            n = 0;
            snap = 0
    }
}
#endif

inline take(parts_) {
    own = own | (parts_);
#if defined(CHECKPOINT) && !defined(NO_WHOLE_SET_FIRST)
    asked[i] = 0;
#endif
    restored = false
}

/* A revoke: what was acknowledged is committed, what is held is dropped. */
inline hand_over(parts_) {
    w = parts_;
    if
    :: done != sent || old -> commit()
    :: else
    fi;
    d_step {
        if
        :: mine == 0 || mine != known[i] -> skip
        :: else ->
            SAY(("%d: gives partitions %d back\n", i, w));
            drop(w);
            if
            :: (w & 1) && holder[0] == i -> holder[0] = NOBODY
            :: else
            fi;
            if
            :: (w & 2) && holder[1] == i -> holder[1] = NOBODY
            :: else
            fi;
#ifdef PIECES
            known[i] = generation;
            mine = generation
#else
            joined[i] = true
#endif
        fi;
        w = 0
    }
}

proctype member(byte i) {
    byte mine = 1, own, fetched, start, done, sent, out, old, passed, snap, parts, gen, n, w;
    bool late, restored;
    own = HOLDS(i);
    {
end:
    do
    :: release(1)
    :: release(2)
    :: release(4)
#ifndef SMALL
    :: release(8)
#endif
    :: acknowledge()
    :: fetch()
#ifdef CHECKPOINT
    :: d_step { !restored && !asked[i] && MAY_ASK ->
        asked[i] = log_size + 1;
        SAY(("%d: is told the end of the log, %d\n", i, log_size)) }
    :: read_checkpoint()
#endif
    :: (READY && done != sent) || old -> commit()
    :: d_step { mine && known[i] == 0 -> lose() }
#ifdef PIECES
    :: d_step { mine == 0 && known[i] == 0 ->
        NEXT_GENERATION;
        known[i] = generation;
        mine = generation;
        SAY(("%d: joins, generation %d\n", i, generation)) }
    :: d_step { mine && known[i] && (HOLDS(i) & ~own) ->
        SAY(("%d: is given partitions %d\n", i, HOLDS(i) & ~own));
        take(HOLDS(i) & ~own);
        known[i] = generation;
        mine = generation }
    :: mine == known[i] && wanted != i && (own & 1) -> hand_over(1)
    :: mine == known[i] && wanted != i && (own & 2) -> hand_over(2)
    :: mine == known[i] && wanted != i && own == BOTH -> hand_over(BOTH)
#else
    :: d_step { mine == 0 && known[i] == 0 && !joined[i] ->
        rebalancing = true;
        joined[i] = true;
        SAY(("%d: joins\n", i)) }
    :: rebalancing && mine && mine == known[i] && !joined[i] -> hand_over(BOTH)
    :: d_step { known[i] && known[i] != mine && !joined[i] ->
        mine = known[i];
        take(HOLDS(i));
        SAY(("%d: generation %d, partitions %d\n", i, mine, own)) }
#endif
    od
    } unless {
        d_step { crashed[i] -> own = 0; fetched = 0; start = 0; done = 0; sent = 0; out = 0; old = 0;
            passed = 0; snap = 0; parts = 0; gen = 0; late = false; restored = false; mine = 0
#ifdef CHECKPOINT
            ; asked[i] = 0
#endif
        }
    }
}

inline throw_out() {
    known[i] = 0;
    if
    :: holder[0] == i -> holder[0] = NOBODY
    :: else
    fi;
    if
    :: holder[1] == i -> holder[1] = NOBODY
    :: else
    fi
#ifndef PIECES
    ;
    joined[i] = false
#endif
}

#ifndef PIECES
#define IN_OR_OUT(j) (known[j] == 0 || joined[j])
#if MEMBERS == 2
#define ALL_JOINED (IN_OR_OUT(0) && IN_OR_OUT(1))
#else
#define ALL_JOINED (IN_OR_OUT(0) && IN_OR_OUT(1) && IN_OR_OUT(2))
#endif

inline complete() {
    NEXT_GENERATION;
    holder[0] = i;
    holder[1] = i;
    j = 0;
    do
    :: j < MEMBERS ->
        if
        :: joined[j] ->
            known[j] = generation;
            joined[j] = false;
#ifdef NO_COLOCATION
            holder[1] = j
#endif
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0;
    rebalancing = false
}
#endif

/* What becomes of one member, and what the coordinator does about it. */
proctype session(byte i) {
    byte j;
end:
    do
    :: d_step { troubles && known[i] && HOLDS(i) && !crashed[i] ->
        troubles--;
        SAY(("     member %d is thrown out\n", i));
        throw_out() }
    :: d_step { troubles && crash_to_come && HOLDS(i) ->
        troubles--;
        crash_to_come = false;
        crashed[i] = true;
        SAY(("%d: crashes\n", i)) }
#ifdef PIECES
    :: d_step { crashed[i] && known[i] ->
        SAY(("     the session of member %d is over\n", i));
        throw_out() }
    :: d_step { known[i] && wanted != i && (troubles || known[wanted] == 0) ->
        if
        :: known[wanted] -> troubles--
        :: else
        fi;
        wanted = i;
        NEXT_GENERATION;
        SAY(("     generation %d: the set is to go to member %d\n", generation, i)) }
    :: d_step { known[i] && wanted == i && holder[0] == NOBODY -> holder[0] = i }
    :: d_step { known[i] && wanted == i && holder[1] == NOBODY -> holder[1] = i }
#else
    :: d_step { crashed[i] && (known[i] || joined[i]) ->
        SAY(("     the session of member %d is over\n", i));
        throw_out() }
    :: d_step { !rebalancing && known[i] && (troubles || holder[0] == NOBODY || holder[1] == NOBODY) ->
        if
        :: holder[0] == NOBODY || holder[1] == NOBODY
        :: else -> troubles--
        fi;
        rebalancing = true;
        SAY(("     a rebalance begins\n")) }
    :: d_step { rebalancing && joined[i] && ALL_JOINED ->
        complete();
        SAY(("     generation %d: partition 0 is member %d's, partition 1 member %d's\n", generation, i, holder[1])) }
#endif
    od
}

/* When nothing more can happen, everything was done, and is committed. */
proctype end_of_all() {
    timeout ->
        A(processed == ALL);
        E(committed == ALL)
}

init {
    atomic {
        byte i;
        do
        :: i < MEMBERS ->
            known[i] = 1;
            run member(i);
            run session(i);
#ifdef CHECKPOINT
            run transactions(i);
#endif
            i++
        :: else -> break
        od;
        run end_of_all()
    }
}
