/* SPDX-License-Identifier: BSD-2-Clause */
/* The example programs, as they were built for a user, on a real cluster. */
#include <broker/fixture/child.h>
#include <broker/fixture/program.h>
#include <broker/fixture/sender.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <support/prng.h>
#include <unistd.h>

enum { PARTITIONS = 8, LANES = 4, HOT = 2000, COLD = 20, EACH = 10, TOTAL = HOT + COLD * EACH, MEASUREMENTS = 300 };

static char dir[] = P_tmpdir "/unsalt-examples-XXXXXX";
static struct scene scene = {.layout = "hash", .partitions = PARTITIONS, .lanes = LANES};

static void begin(const char *word) {
    if (!mkdtemp(dir))
        scene_die("no folder for files");
    scene_name(&scene, word);
}

static void end(struct program *programs, size_t n) {
    for (size_t i = 0; i < n; i++)
        program_free(&programs[i]);
    rmdir(dir);
}

static const char *accepted_path(void) {
    static char path[64];
    snprintf(path, sizeof path, "%s/accepted", dir);
    return path;
}

/* ---- in processes of their own, since this one forks */

static void create(void *unused) {
    (void)unused;
    scene_create(&scene);
}

static void write_json(void *unused) {
    checker_log_t *accepted = checker_log_new();
    int fd = child_open(accepted_path());
    (void)unused;
    scene_create(&scene);
    sender_weave(&scene, SENDER_JSON, HOT, COLD, EACH, accepted);
    child_save(fd, accepted);
    close(fd);
    checker_log_free(accepted);
}

static void measure(rd_kafka_t *rk, const char *device, uint64_t seq) {
    unsigned char payload[32];
    for (int i = 0; i < 8; i++)
        payload[8 + i] = (unsigned char)(seq >> (56 - 8 * i));
    memcpy(payload, device, 8);
    size_t len = 16 + (size_t)snprintf((char *)payload + 16, 16, "%llu C", (unsigned long long)seq);
    if (rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(scene.topic), RD_KAFKA_V_PARTITION((int32_t)(seq % PARTITIONS)),
                          RD_KAFKA_V_VALUE(payload, len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END))
        scene_die("a measurement is not sent");
}

/* Two devices, lane by lane, the last one first; and a record that is none. */
static void write_measurements(void *unused) {
    char errstr[256];
    (void)unused;
    scene_create(&scene);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, scene_conf(), errstr, sizeof errstr);
    if (!rk)
        scene_die("%s", errstr);
    for (int lane = PARTITIONS - 1; lane >= 0; lane--)
        for (uint64_t seq = 1; seq <= MEASUREMENTS; seq++)
            if (seq % PARTITIONS == (uint64_t)lane) {
                measure(rk, "boiler-1", seq);
                measure(rk, "boiler-2", seq);
            }
    if (rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(scene.topic), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("short", 5),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END) ||
        rd_kafka_flush(rk, 20000))
        scene_die("the measurements are not sent");
    rd_kafka_destroy(rk);
}

/* ---- what they printed */

/* Compares the payloads in the lines with what was accepted. `ordered`: each session must be in order. */
static void judge(const struct program *program, const checker_log_t *accepted, bool ordered) {
    checker_log_t *delivered = checker_log_new();
    struct checker_report report;
    const char *line = program->text, *stop;
    for (; line && (stop = strchr(line, '\n')); line = stop + 1) {
        struct checker_record record = {.partition = 0};
        const char *payload = memchr(line, '{', (size_t)(stop - line));
        CHECK_THAT(payload && checker_parse(payload, (size_t)(stop - payload), &record) == 0, "%s printed %.*s",
                   program->name, (int)(stop - line), line);
        checker_log_record(delivered, &record);
    }
    checker_judge(accepted, delivered, &report);
    CHECK_THAT(!report.lost && !report.unknown && !report.repeated, "%s: %s", program->name, report.fault);
    CHECK_THAT(!ordered || checker_clean(&report), "%s: %s", program->name, report.fault);
    CHECK_U64(report.delivered, TOTAL);
    checker_log_free(delivered);
}

static void check_end(struct program *program, int signal_number) {
    int status = program_finish(program, signal_number);
    CHECK_THAT(status == 0, "%s ended with status %d: %s", program->name, status, program_errors(program));
}

/* All examples that read a topic of JSON payloads, side by side, each in a group of its own. */
Test(examples, consumers, .timeout = 60) {
    static const struct {
        const char *name, *last; /* the argument behind the topic */
        bool plain;
    } all[] = {{"01_minimal_consumer", NULL, false}, {"02_plain_consumer", NULL, true},
               {"03_unsalted_twin", NULL, false},    {"04_callback", NULL, false},
               {"05_batch", "/dev/stdout", false},   {"06_manual_ack", NULL, false},
               {"07_json_producer_in_the_field", "4", false}, {"14_pipeline", NULL, false},
               {"09_event_loop", NULL, false}};
    enum { N = sizeof all / sizeof *all };
    struct program programs[N];
    size_t lines[N];
    checker_log_t *accepted = checker_log_new();
    long from = 0;
    begin("examples");
    child_run(write_json, NULL);
    CHECK_U64(child_load(accepted_path(), &from, accepted), TOTAL);
    unlink(accepted_path());
    for (size_t i = 0; i < N; i++) {
        const char *args[] = {scene_bootstrap(), all[i].name, scene.topic, all[i].last, NULL};
        program_start(&programs[i], dir, all[i].name, args);
        lines[i] = TOTAL;
    }
    program_read(programs, N, lines, 30);
    program_say(&programs[N - 1], "\n"); /* the event loop has a second source */
    for (double until = scene_now() + 5; scene_now() < until && !*program_errors(&programs[N - 1]);)
        usleep(20000);
    CHECK(strstr(program_errors(&programs[N - 1]), "_total{client=\"event-loop\",state=\"released\"} 2200\n"));
    for (size_t i = 0; i < N; i++)
        check_end(&programs[i], SIGINT);
    for (size_t i = 0; i < N; i++)
        judge(&programs[i], accepted, !all[i].plain);
    /* Everything was acknowledged, so all of it is committed. */
    for (size_t i = 0; i < N; i++) {
        snprintf(scene.group, sizeof scene.group, "%s", all[i].name);
        CHECK_THAT(all[i].plain || scene_log_committed(&scene, accepted).sum == TOTAL, "%s has not committed all",
                   all[i].name);
    }
    checker_log_free(accepted);
    end(programs, N);
}

Test(examples, own_extractor, .timeout = 60) {
    struct program program;
    size_t lines = 2 * MEASUREMENTS;
    unsigned next[2] = {1, 1};
    begin("extractor");
    child_run(write_measurements, NULL);
    const char *args[] = {scene_bootstrap(), scene.group, scene.topic, NULL};
    program_start(&program, dir, "08_own_extractor", args);
    program_read(&program, 1, &lines, 30);
    for (double until = scene_now() + 5; scene_now() < until && !*program_errors(&program);)
        usleep(20000);
    check_end(&program, SIGINT);
    CHECK_U64(program.lines, lines);
    for (char *line = strtok(program.text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned device, seq, value;
        CHECK_THAT(sscanf(line, "boiler-%u %u %u C", &device, &seq, &value) == 3 && device - 1 < 2, "%s", line);
        CHECK_U64(seq, next[device - 1]++);
        CHECK_U64(value, seq);
    }
    CHECK_THAT(strstr(program_errors(&program), "a measurement that is too short"), "%s", program_errors(&program));
    end(&program, 1);
}

/* What the producer has sent comes back through a consumer. */
Test(examples, producer, .timeout = 60) {
    enum { LINES = 400 };
    struct program programs[2];
    size_t lines = LINES;
    char text[64];
    begin("producer");
    child_run(create, NULL);
    const char *to[] = {scene_bootstrap(), scene.topic, "8", "4", NULL};
    program_start(&programs[0], dir, "10_producer", to);
    for (int i = 1; i <= LINES / 2; i++) {
        snprintf(text, sizeof text, "order-1 step %d\norder-2 step %d\n", i, i);
        program_say(&programs[0], text);
    }
    check_end(&programs[0], 0);
    CHECK_STR(programs[0].text, "400 delivered, 0 lost\n");
    const char *from[] = {scene_bootstrap(), scene.group, scene.topic, NULL};
    program_start(&programs[1], dir, "04_callback", from);
    program_read(&programs[1], 1, &lines, 30);
    check_end(&programs[1], SIGINT);
    CHECK_U64(programs[1].lines, LINES);
    unsigned next[2] = {1, 1};
    for (char *line = strtok(programs[1].text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned order, seq, step;
        CHECK_THAT(sscanf(line, "order-%u %u step %u", &order, &seq, &step) == 3 && order - 1 < 2, "%s", line);
        CHECK_U64(seq, next[order - 1]++);
        CHECK_U64(step, seq);
    }
    end(programs, 2);
}

/* Records that fail for good stand in the file, in the order of their session; the others are printed in theirs. */
Test(examples, dead_letters, .timeout = 60) {
    enum { LINES = 200, BAD = LINES / 10 };
    struct program programs[2];
    size_t lines = LINES - BAD;
    char text[64], path[96];
    begin("dead");
    child_run(create, NULL);
    const char *to[] = {scene_bootstrap(), scene.topic, "8", "4", NULL};
    program_start(&programs[0], dir, "10_producer", to);
    for (int i = 1; i <= LINES; i++) {
        snprintf(text, sizeof text, "order-1 %s %d\n", i % 10 == 0 ? "bad" : i % 7 == 0 ? "shaky" : "step", i);
        program_say(&programs[0], text);
    }
    check_end(&programs[0], 0);
    snprintf(path, sizeof path, "%s/dead", dir);
    const char *from[] = {scene_bootstrap(), scene.group, scene.topic, path, NULL};
    program_start(&programs[1], dir, "15_dead_letters", from);
    program_read(&programs[1], 1, &lines, 30);
    check_end(&programs[1], SIGINT);
    CHECK_U64(programs[1].lines, lines);
    int next = 0;
    for (char *line = strtok(programs[1].text, "\n"); line; line = strtok(NULL, "\n")) {
        int step;
        next += next % 10 == 9 ? 2 : 1;
        CHECK_THAT(sscanf(line, "order-1 %*s %d", &step) == 1 && step == next, "%s", line);
    }
    FILE *file = fopen(path, "r");
    CHECK(file);
    for (int i = 1; i <= BAD; i++) {
        unsigned seq, step;
        CHECK(fscanf(file, "refused after 1: nothing can be done with this: order-1 %u bad %u\n", &seq, &step) == 2);
        CHECK(seq == 10u * (unsigned)i && step == seq);
    }
    CHECK(fgetc(file) == EOF);
    fclose(file);
    unlink(path);
    end(programs, 2);
}

Test(examples, core_without_kafka, .timeout = 30) {
    static const char wanted[] = "at 10 ms, partition 0 brings number 2\n"
                                 "at 20 ms, partition 0 brings number 4\n"
                                 "at 30 ms, partition 1 brings number 1\n"
                                 "  order-17: released 1, waited 0 ms\n"
                                 "  order-17: released 2, waited 20 ms\n"
                                 "at 40 ms, partition 1 brings number 3\n"
                                 "  order-17: released 3, waited 0 ms\n"
                                 "  order-17: released 4, waited 20 ms\n"
                                 "at 50 ms, partition 0 brings number 6\n"
                                 "at 550 ms, where does partition 1 end? At offset 2.\n"
                                 "  event gap: 5..5\n"
                                 "  order-17: released 6, waited 503 ms, after a gap\n"
                                 "to commit: 3 and 2\n";
    const char *none[] = {NULL};
    struct program program;
    begin("core");
    program_start(&program, dir, "11_core_without_kafka", none);
    check_end(&program, 0);
    CHECK_THAT(strcmp(program.text, wanted) == 0, "%s", program.text);
    end(&program, 1);
}

/* ---- exactly once */

static struct scene lanes = {.layout = "topics", .partitions = 2, .lanes = 2};
static struct scene results = {.layout = "hash", .partitions = 1, .lanes = 1};

static void write_lanes(void *unused) {
    checker_log_t *accepted = checker_log_new();
    int fd = child_open(accepted_path());
    (void)unused;
    scene_create(&lanes);
    scene_create(&results);
    sender_weave(&lanes, SENDER_UNSALT, HOT, COLD, EACH, accepted);
    child_save(fd, accepted);
    close(fd);
    checker_log_free(accepted);
}

/* Two members share the work, and one leaves in the middle of it. A plain consumer reads what was committed. */
Test(examples, exactly_once, .timeout = 60) {
    struct program programs[3];
    checker_log_t *accepted = checker_log_new();
    long from = 0;
    begin("exactly");
    scene_name(&lanes, "exactly-in");
    scene_name(&results, "exactly-out");
    child_run(write_lanes, NULL);
    CHECK_U64(child_load(accepted_path(), &from, accepted), TOTAL);
    unlink(accepted_path());
    for (int i = 0; i < 2; i++) {
        const char *ids[] = {"exactly-0", "exactly-1"};
        const char *args[] = {scene_bootstrap(), lanes.group, lanes.topic, results.topic, "2", "2", ids[i], NULL};
        program_start(&programs[i], dir, "12_exactly_once", args);
    }
    const char *args[] = {scene_bootstrap(), results.group, results.topic, NULL};
    program_start(&programs[2], dir, "02_plain_consumer", args);
    program_read(&programs[2], 1, (const size_t[]){TOTAL / 3}, 30);
    for (double until = scene_now() + 20; scene_now() < until; usleep(20000))
        if (strstr(program_errors(&programs[1]), "checkpoint_loaded"))
            break; /* it has come so far that a signal doesn't end it at once */
    check_end(&programs[1], SIGINT);
    program_read(&programs[2], 1, (const size_t[]){TOTAL}, 30);
    check_end(&programs[0], SIGINT);
    check_end(&programs[2], SIGINT);
    judge(&programs[2], accepted, true);
    checker_log_free(accepted);
    end(programs, 3);
}

enum { ACCOUNTS = 10, CHANGES = 3000, KILLS = 15 };

static int64_t ask(sqlite3 *db, const char *sql) {
    sqlite3_stmt *get = NULL;
    int64_t value = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &get, NULL) == SQLITE_OK && sqlite3_step(get) == SQLITE_ROW)
        value = sqlite3_column_int64(get, 0);
    sqlite3_finalize(get);
    return value;
}

/* Runs until the database has so many changes. Returns how many it has. */
static int64_t run_until(struct program *program, const char *path, int number, int64_t changes) {
    char group[128];
    sqlite3 *db;
    int64_t now = 0;
    /* A group of its own for each run, which needn't wait until the last one's member is given up. */
    snprintf(group, sizeof group, "%s-%d", scene.group, number);
    const char *args[] = {scene_bootstrap(), group, scene.topic, "8", path, NULL};
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    program_start(program, dir, "13_own_database", args);
    for (double until = scene_now() + 30; now < changes && scene_now() < until; usleep(500))
        now = ask(db, "SELECT total(changes) FROM accounts");
    sqlite3_close(db);
    return now;
}

/* Killed at random, again and again; in the end every account has every change, once. */
Test(examples, own_database, .timeout = 90) {
    struct prng prng = prng_start(13);
    struct program program;
    char path[64], text[32];
    sqlite3 *db;
    int64_t have = 0;
    begin("database");
    snprintf(path, sizeof path, "%s/db", dir);
    child_run(create, NULL);
    const char *to[] = {scene_bootstrap(), scene.topic, "8", "4", NULL};
    program_start(&program, dir, "10_producer", to);
    for (int i = 1; i <= CHANGES; i++)
        for (int k = 1; k <= ACCOUNTS; k++) {
            snprintf(text, sizeof text, "account-%d %d\n", k, k * i);
            program_say(&program, text);
        }
    check_end(&program, 0);
    program_free(&program);
    for (int i = 0; i < KILLS; i++) {
        int64_t left = ACCOUNTS * CHANGES - have;
        run_until(&program, path, i, have + (int64_t)prng_between(&prng, 0, (uint64_t)left / 4));
        usleep((useconds_t)prng_between(&prng, 0, 20000));
        CHECK_I64(program_finish(&program, SIGKILL), -1);
        program_free(&program);
        CHECK(sqlite3_open(path, &db) == SQLITE_OK);
        have = ask(db, "SELECT total(changes) FROM accounts");
        sqlite3_close(db);
    }
    CHECK_I64(run_until(&program, path, KILLS, ACCOUNTS * CHANGES), ACCOUNTS * CHANGES);
    usleep(300000); /* whatever comes again would come now */
    check_end(&program, SIGINT);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    for (int k = 1; k <= ACCOUNTS; k++) {
        char sql[96];
        snprintf(sql, sizeof sql, "SELECT balance FROM accounts WHERE name = 'account-%d' AND changes = %d", k,
                 CHANGES);
        CHECK_I64(ask(db, sql), (int64_t)k * CHANGES * (CHANGES + 1) / 2);
    }
    sqlite3_close(db);
    unlink(path);
    end(&program, 1);
}
