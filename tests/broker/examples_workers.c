/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples of work on many machines, and of what is done about dead letters, as a user runs them. */
#include <broker/fixture/child.h>
#include <broker/fixture/program.h>
#include <broker/fixture/sender.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <support/check.h>
#include <unistd.h>

enum { PATIENCE = 80 /* seconds, of a wait */ };
enum { PARTITIONS = 8, LANES = 4, HOT = 2000, COLD = 20, EACH = 10, TOTAL = HOT + COLD * EACH };

static char dir[] = P_tmpdir "/unsalt-examples-XXXXXX";
static struct scene scene = {.layout = "hash", .partitions = PARTITIONS, .lanes = LANES};
static struct scene second = {.layout = "hash", .partitions = 3, .lanes = LANES};

static void begin(const char *word) {
    if (!mkdtemp(dir))
        scene_die("no folder for files");
    scene_name(&scene, word);
    snprintf(second.topic, sizeof second.topic, "%.70s-2", scene.topic);
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

static void check_status(struct program *program, int signal_number, int wanted) {
    int status = program_finish(program, signal_number);
    CHECK_THAT(status == wanted, "%s ended with status %d, not %d: %s", program->name, status, wanted,
               program_errors(program));
}

static void check_end(struct program *program, int signal_number) {
    check_status(program, signal_number, 0);
}

/* ---- many workers */

static void write_json(void *unused) {
    checker_log_t *accepted = checker_log_new();
    int fd = child_open(accepted_path());
    (void)unused;
    scene_create(&scene);
    scene_create(&second);
    sender_weave(&scene, SENDER_JSON, HOT, COLD, EACH, accepted);
    child_save(fd, accepted);
    close(fd);
    checker_log_free(accepted);
}

/* Until the workers' group has committed the whole input. */
static void wait_committed(void *unused) {
    checker_log_t *log = checker_log_new();
    double until = scene_now() + PATIENCE;
    (void)unused;
    while (scene_log_committed(&scene, log).sum < TOTAL) {
        if (scene_now() > until)
            scene_die("the workers haven't done everything in %d s", PATIENCE);
        usleep(100000);
    }
    checker_log_free(log);
}

static void judge(const struct program *program, const checker_log_t *accepted) {
    checker_log_t *delivered = checker_log_new();
    struct checker_report report;
    const char *line = program->text, *stop;
    for (; line && (stop = strchr(line, '\n')); line = stop + 1) {
        struct checker_record record = {.partition = 0};
        const char *payload = memchr(line, '{', (size_t)(stop - line));
        CHECK_THAT(payload && payload - line > 6 && memcmp(payload - 6, "seen: ", 6) == 0 &&
                       checker_parse(payload, (size_t)(stop - payload), &record) == 0,
                   "%s printed %.*s", program->name, (int)(stop - line), line);
        checker_log_record(delivered, &record);
    }
    checker_judge(accepted, delivered, &report);
    CHECK_THAT(checker_clean(&report), "%s: %s", program->name, report.fault);
    CHECK_U64(report.delivered, TOTAL);
    checker_log_free(delivered);
}

/* Two workers, one of which leaves when all is done; an ordinary consumer has every result, in order. */
Test(examples_workers, many_workers, .timeout = 300) {
    struct program programs[3];
    checker_log_t *accepted = checker_log_new();
    size_t lines = TOTAL;
    long from = 0;
    begin("many");
    child_run(write_json, NULL);
    CHECK_U64(child_load(accepted_path(), &from, accepted), TOTAL);
    unlink(accepted_path());
    const char *work[] = {scene_bootstrap(), scene.group, scene.topic, second.topic, "3", "4", NULL};
    for (int i = 0; i < 2; i++)
        program_start(&programs[i], dir, "16_many_workers", work);
    child_run(wait_committed, NULL);
    for (int i = 0; i < 2; i++)
        check_end(&programs[i], SIGINT);
    const char *read[] = {scene_bootstrap(), "many-readers", second.topic, NULL};
    program_start(&programs[2], dir, "04_callback", read);
    program_read(&programs[2], 1, &lines, PATIENCE);
    check_end(&programs[2], SIGINT);
    judge(&programs[2], accepted);
    checker_log_free(accepted);
    end(programs, 3);
}

/* ---- dead letters */

static void add(rd_kafka_headers_t *headers, const char *name, const char *format, long value) {
    char text[32];
    snprintf(text, sizeof text, format, value);
    rd_kafka_header_add(headers, name, -1, text, -1);
}

/*
 * As docs/dead-letters.md has them. offset: where the record stood, by which copies of a letter are known.
 * group: which wrote it; NULL: the letter doesn't say.
 */
static void write_letter_of(rd_kafka_t *rk, const char *group, const char *topic, const char *session, long seq,
                            long offset) {
    rd_kafka_headers_t *headers = rd_kafka_headers_new(16);
    char payload[64];
    snprintf(payload, sizeof payload, "%s 0 mended %ld", session, seq);
    rd_kafka_header_add(headers, "seq", -1, "1", 1);
    rd_kafka_header_add(headers, "mine", -1, "kept", -1);
    add(headers, "unsalt.dead.version", "%ld", 1);
    rd_kafka_header_add(headers, "unsalt.dead.reason", -1, "exhausted", -1);
    rd_kafka_header_add(headers, "unsalt.dead.session", -1, session, -1);
    add(headers, "unsalt.dead.seq", "%ld", seq);
    add(headers, "unsalt.dead.epoch", "%ld", 1);
    add(headers, "unsalt.dead.cursor", "%ld", seq + 1);
    rd_kafka_header_add(headers, "unsalt.dead.topic", -1, topic, -1);
    add(headers, "unsalt.dead.partition", "%ld", seq % LANES);
    add(headers, "unsalt.dead.offset", "%ld", offset);
    rd_kafka_header_add(headers, "reinjected", -1, "before", -1); /* it has failed once more */
    if (group)
        rd_kafka_header_add(headers, "unsalt.dead.group", -1, group, -1);
    if (rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(second.topic),
                          RD_KAFKA_V_PARTITION(rd_kafka_msg_partitioner_murmur2(NULL, session, strlen(session),
                                                                                second.partitions, NULL, NULL)),
                          RD_KAFKA_V_KEY(session, strlen(session)), RD_KAFKA_V_VALUE(payload, strlen(payload)),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END))
        scene_die("a letter is not sent");
}

static void write_letter(rd_kafka_t *rk, const char *topic, const char *session, long seq, long offset) {
    write_letter_of(rk, NULL, topic, session, seq, offset);
}

enum { RECORDS = 40, EVERY = 4 };

/* Two sessions of 40 records, of which every fourth has failed. Letters of them, some twice; one of another topic. */
static void write_letters(void *unused) {
    char errstr[256], payload[32], lane_topic[96];
    rd_kafka_conf_t *conf = scene_conf();
    (void)unused;
    scene_create(&scene);
    scene_create(&second);
    unsalt_producer_t *producer = unsalt_producer_new(scene_conf(), scene_unsalt_conf(&scene, LANES), errstr, 256);
    scene_set(conf, "enable.idempotence", "true");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, errstr, sizeof errstr);
    if (!producer || !rk)
        scene_die("%s", errstr);
    snprintf(lane_topic, sizeof lane_topic, "%.70s.lane-1", scene.topic);
    for (long n = 1; n <= RECORDS; n++) {
        for (int i = 1; i <= 2; i++) {
            const char *session = i == 1 ? "room-1" : "room-2";
            snprintf(payload, sizeof payload, "live %ld", n);
            if (unsalt_produce(producer, scene.topic, session, 6, payload, strlen(payload), NULL))
                scene_die("a record is not sent");
            if (n % EVERY == 0)
                write_letter(rk, n % 8 ? scene.topic : lane_topic, session, n, 100 * i + n);
            if (n % 16 == 0)
                write_letter(rk, n % 8 ? scene.topic : lane_topic, session, n, 100 * i + n);
        }
    }
    write_letter(rk, "another-topic", "room-1", 1, 1);
    if (unsalt_producer_flush(producer, 20000) || rd_kafka_flush(rk, 20000))
        scene_die("not everything was sent");
    unsalt_producer_destroy(producer);
    rd_kafka_destroy(rk);
}

/* The tool is stopped somewhere, and started again. */
static void reinject(struct program *program, const char *group, const char *session, unsigned stop_after_us) {
    const char *args[] = {scene_bootstrap(), group, second.topic, scene.topic, "8", session, NULL};
    program_start(program, dir, "17_reinject", args);
    usleep(stop_after_us);
    check_status(program, SIGINT, 128 + SIGINT); /* not as if it were done */
    program_free(program);
    size_t lines = 1;
    program_start(program, dir, "17_reinject", args);
    program_read(program, 1, &lines, PATIENCE);
    check_end(program, 0);
}

/* What a consumer prints of one session: its records, then the mended ones, each in order and once. */
static void check_room(const char *text, const char *room, bool mended) {
    long live = 0, repaired = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        char session[32], what[16], number[32];
        long n;
        CHECK_THAT(sscanf(line, "%31s %31s %15s %ld", session, number, what, &n) == 4, "%.60s", line);
        if (strcmp(session, room) != 0)
            continue;
        if (strcmp(what, "live") == 0) {
            CHECK_I64(n, ++live);
        } else {
            CHECK_I64(n, repaired += EVERY);
            CHECK_I64(live, RECORDS);
        }
    }
    CHECK_I64(live, RECORDS);
    CHECK_I64(repaired, mended ? RECORDS : 0);
}

/* ---- dead letters as the pipeline writes them */

static unsalt_pipeline_res_t refuse_some(void *opaque, const unsalt_pipeline_job_t *job, void *result) {
    (void)opaque;
    (void)result;
    return job->seq % EVERY == 0 ? UNSALT_PIPELINE_FAIL : UNSALT_PIPELINE_OK;
}

/* The payload is what is printed of a record without a number: it reads as a line of check_room(). */
static void write_records(void) {
    char errstr[256], payload[64];
    unsalt_producer_t *producer = unsalt_producer_new(scene_conf(), scene_unsalt_conf(&scene, LANES), errstr, 256);
    if (!producer)
        scene_die("%s", errstr);
    for (long n = 1; n <= RECORDS; n++) {
        for (int i = 1; i <= 2; i++) {
            int len = snprintf(payload, sizeof payload, "room-%d 0 mended %ld", i, n);
            if (unsalt_produce(producer, scene.topic, payload, 6, payload, (size_t)len, NULL))
                scene_die("a record is not sent");
        }
    }
    if (unsalt_producer_flush(producer, 20000))
        scene_die("not everything was sent");
    unsalt_producer_destroy(producer);
}

static uint64_t outcomes(const unsalt_pipeline_t *pipeline) {
    unsalt_pipeline_stats_t stats;
    uint64_t sum = 0;
    unsalt_pipeline_stats(pipeline, &stats, sizeof stats);
    for (int i = 0; i < UNSALT_PIPELINE_WAS__CNT; i++)
        sum += stats.outcome[i];
    return sum;
}

/* Every fourth record of two sessions becomes a letter. */
static void bury_some(void *unused) {
    unsalt_pipeline_callbacks_t callbacks = {.size = sizeof callbacks, .deliver = refuse_some};
    rd_kafka_conf_t *reads = scene_conf();
    unsalt_conf_t *conf = unsalt_conf_new();
    char errstr[512];
    (void)unused;
    scene_create(&scene);
    scene_create(&second);
    write_records();
    scene_set(reads, "group.id", second.topic);
    scene_unsalt_set(conf, "pipeline.deliver.failure", "dead-letter");
    scene_unsalt_set(conf, "pipeline.dead.letter.topic", second.topic);
    unsalt_pipeline_t *pipeline = unsalt_pipeline_new(reads, conf, &callbacks, errstr, sizeof errstr);
    if (!pipeline)
        scene_die("%s", errstr);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, scene.topic, RD_KAFKA_PARTITION_UA);
    if (unsalt_subscribe(unsalt_pipeline_consumer(pipeline), topics))
        scene_die("a pipeline can't subscribe");
    rd_kafka_topic_partition_list_destroy(topics);
    for (double until = scene_now() + PATIENCE; outcomes(pipeline) < 2 * RECORDS;) {
        unsalt_pipeline_poll(pipeline, 100);
        if (scene_now() > until)
            scene_die("the pipeline has done %d records", (int)outcomes(pipeline));
    }
    unsalt_pipeline_close(pipeline);
    unsalt_pipeline_destroy(pipeline);
}

/* All of them, whatever they are called, and then the letters of this session. */
static void check_letters(const char *text, const char *room) {
    char begin[32];
    long live = 0, repaired = 0, number, n;
    snprintf(begin, sizeof begin, "%s ", room);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, begin, strlen(begin)) != 0)
            continue;
        if (sscanf(line, "%*s %ld %*s %*d mended %ld", &number, &n) == 2) {
            CHECK_I64(n, ++live);
            CHECK_I64(number, n);
        } else {
            CHECK_THAT(sscanf(line, "%*s 0 mended %ld", &n) == 1, "%.60s", line);
            CHECK_I64(n, repaired += EVERY);
            CHECK_I64(live, RECORDS);
        }
    }
    CHECK_I64(live, RECORDS);
    CHECK_I64(repaired, RECORDS);
}

/* A consumer has read everything before the letters are sent again. */
static void again(const char *word, void (*write)(void *), const char *session, unsigned stop_after_us) {
    struct program reader, tool;
    size_t lines = 2 * RECORDS;
    char group[120];
    begin(word);
    child_run(write, NULL);
    snprintf(group, sizeof group, "%.70s-tool", scene.topic);
    const char *read[] = {scene_bootstrap(), scene.group, scene.topic, NULL};
    program_start(&reader, dir, "04_callback", read);
    program_read(&reader, 1, &lines, PATIENCE);
    CHECK_U64(reader.lines, lines);
    reinject(&tool, group, session, stop_after_us);
    lines += (session ? 1 : 2) * RECORDS / EVERY;
    program_read(&reader, 1, &lines, PATIENCE);
    usleep(300000); /* whatever is too much would come now */
    check_end(&reader, SIGINT);
    CHECK_U64(reader.lines, lines);
    for (int i = 1; i <= 2; i++) {
        const char *room = i == 1 ? "room-1" : "room-2";
        if (write == write_letters)
            check_room(reader.text, room, !session || strcmp(room, session) == 0);
        else
            check_letters(reader.text, room);
    }
    program_free(&tool);
    end(&reader, 1);
}

Test(examples_workers, one_session_again, .timeout = 300) {
    again("again", write_letters, "room-1", 1500000);
}

Test(examples_workers, all_sessions_again, .timeout = 300) {
    again("all", write_letters, NULL, 2500000);
}

/* One letter of each session once more, as after a crash of their writer, and one that is new. */
static void write_copies(void *unused) {
    char errstr[256];
    (void)unused;
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, scene_conf(), errstr, sizeof errstr);
    if (!rk)
        scene_die("%s", errstr);
    write_letter(rk, scene.topic, "room-1", 4, 104);
    write_letter(rk, scene.topic, "room-2", 4, 204);
    write_letter(rk, scene.topic, "room-2", RECORDS + EVERY, 300);
    if (rd_kafka_flush(rk, 20000))
        scene_die("not everything was sent");
    rd_kafka_destroy(rk);
}

/* failed: the group whose letters are sent again; NULL: those of all. */
static void run_tool(const char *group, const char *failed, const char *says) {
    struct program tool;
    const char *args[] = {scene_bootstrap(), group, second.topic, scene.topic, "8", failed ? "" : NULL, failed, NULL};
    size_t lines = 1;
    program_start(&tool, dir, "17_reinject", args);
    program_read(&tool, 1, &lines, PATIENCE);
    check_end(&tool, 0);
    CHECK_THAT(strstr(tool.text, says) == tool.text, "%s", tool.text);
    program_free(&tool);
}

/* The copy stands behind the place from which the tool goes on, and the letter in front of it. */
Test(examples_workers, a_copy_that_comes_after_a_restart, .timeout = 300) {
    char group[120];
    begin("copies");
    child_run(write_letters, NULL);
    snprintf(group, sizeof group, "%.70s-tool", scene.topic);
    run_tool(group, NULL, "20 sent again, ");
    child_run(write_copies, NULL);
    run_tool(group, NULL, "1 sent again, 2 passed over");
    end(NULL, 0);
}

/* What the one writes, the other reads: their formats can't drift apart. */
Test(examples_workers, letters_of_a_pipeline_again, .timeout = 300) {
    again("piped", bury_some, NULL, 2500000);
}

/* ---- letters of two groups */

static rd_kafka_t *open_producer(void) {
    char errstr[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, scene_conf(), errstr, sizeof errstr);
    if (!rk)
        scene_die("%s", errstr);
    return rk;
}

static void close_producer(rd_kafka_t *rk) {
    if (rd_kafka_flush(rk, 20000))
        scene_die("not everything was sent");
    rd_kafka_destroy(rk);
}

/* Both groups have failed at records 1 to 3, each at one more; two letters stand there twice. */
static void write_letters_of_two(void *unused) {
    (void)unused;
    scene_create(&scene);
    scene_create(&second);
    rd_kafka_t *rk = open_producer();
    for (long seq = 1; seq <= 3; seq++) {
        write_letter_of(rk, "bills", scene.topic, "room-1", seq, seq);
        write_letter_of(rk, "mails", scene.topic, "room-1", seq, seq);
    }
    write_letter_of(rk, "mails", scene.topic, "room-1", 4, 4);
    write_letter_of(rk, "mails", scene.topic, "room-1", 4, 4);
    write_letter_of(rk, "bills", scene.topic, "room-1", 3, 3);
    write_letter_of(rk, "bills", scene.topic, "room-1", 5, 5);
    close_producer(rk);
}

/* The tool has read the other group's letter of this record before. */
static void write_one_more(void *unused) {
    (void)unused;
    rd_kafka_t *rk = open_producer();
    write_letter_of(rk, "mails", scene.topic, "room-1", 5, 5);
    close_producer(rk);
}

/* Appends the first letter of the group that failed, and the number of the record. */
static void note_again(const rd_kafka_message_t *message, char *text, size_t size) {
    rd_kafka_headers_t *headers;
    const void *group, *mark;
    size_t group_len, len, used = strlen(text);
    long seq = 0;
    char payload[64];
    snprintf(payload, sizeof payload, "%.*s", (int)message->len, (const char *)message->payload);
    if (rd_kafka_message_headers(message, &headers) || sscanf(payload, "%*s %*d mended %ld", &seq) != 1 ||
        rd_kafka_header_get(headers, 0, "reinjected.group", &group, &group_len) || group_len != 5)
        scene_die("%s came without the group that failed", payload);
    if (rd_kafka_header_get(headers, 0, "reinjected", &mark, &len) || len != 1 || *(const char *)mark != '1' ||
        !rd_kafka_header_get(headers, 1, "reinjected", &mark, &len))
        scene_die("%s isn't marked once as sent again", payload);
    snprintf(text + used, size - used, "%c%ld ", *(const char *)group, seq);
}

/* What came out is of one session, so it stands in one partition, in the order in which it was sent. */
static void read_again(void *wanted) {
    char text[128] = "", errstr[256];
    rd_kafka_conf_t *conf = scene_conf();
    scene_set(conf, "group.id", "again-readers");
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, errstr, sizeof errstr);
    if (!rk)
        scene_die("%s", errstr);
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int32_t i = 0; i < PARTITIONS; i++)
        rd_kafka_topic_partition_list_add(all, scene.topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(rk, all);
    rd_kafka_topic_partition_list_destroy(all);
    double until = scene_now() + PATIENCE;
    while (strlen(text) < strlen(wanted) && scene_now() < until) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 100);
        if (message && !message->err)
            note_again(message, text, sizeof text);
        if (message)
            rd_kafka_message_destroy(message);
    }
    if (strcmp(text, wanted) != 0)
        scene_die("sent again: %s, not %s", text, (const char *)wanted);
    rd_kafka_consumer_close(rk);
    rd_kafka_destroy(rk);
}

Test(examples_workers, letters_of_one_group_again, .timeout = 300) {
    char first[120], other[120], third[120], wanted[] = "b1 b2 b3 b5 m1 m2 m3 m4 m5 b1 b2 b3 m4 b5 ";
    begin("two");
    child_run(write_letters_of_two, NULL);
    snprintf(first, sizeof first, "%.70s-bills", scene.topic);
    snprintf(other, sizeof other, "%.70s-mails", scene.topic);
    snprintf(third, sizeof third, "%.70s-any", scene.topic);
    run_tool(first, "bills", "4 sent again, 6 passed over");
    run_tool(other, "mails", "4 sent again, 6 passed over");
    child_run(write_one_more, NULL);
    run_tool(other, "mails", "1 sent again, 0 passed over");
    run_tool(third, NULL, "5 sent again, 6 passed over"); /* of each record one */
    child_run(read_again, wanted);
    end(NULL, 0);
}

static void create_both(void *unused) {
    (void)unused;
    scene_create(&scene);
    scene_create(&second);
}

/* It would wait for ever, or pass over everything. */
Test(examples_workers, a_topic_that_is_not_there, .timeout = 300) {
    begin("mistyped");
    child_run(create_both, NULL);
    for (int i = 0; i < 2; i++) {
        struct program tool;
        const char *args[] = {scene_bootstrap(), "nobody", i == 0 ? "mistyped" : second.topic,
                              i == 0 ? scene.topic : "mistyped", "8", NULL};
        program_start(&tool, dir, "17_reinject", args);
        check_status(&tool, 0, 1);
        CHECK_THAT(strstr(program_errors(&tool), "mistyped: "), "%s", program_errors(&tool));
        program_free(&tool);
    }
    end(NULL, 0);
}
