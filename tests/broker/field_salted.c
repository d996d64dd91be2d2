/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Producers as they are in the field, unmodified: they salt their hot sessions and number the records, and know nothing
 * of unsalt. Cold records of a session go out under its raw key, hot ones under salted keys, one counter for both.
 *
 * What a user has to configure, beside group.id; layout `hash` is the default, N and S needn't be known:
 *
 *   the number and the session are JSON fields       nothing, whatever the key looks like, if the fields are named
 *                                                    globalSeq and sessionId; else seq.json and session.json
 *   the session is in the key, the key is raw        nothing; session.json= (empty) if the payload has such a field
 *                                                    that isn't the session
 *   the session is in the key, salt = number mod S   lanes=S, and salt.pattern unless it is #<k>
 *   the session is in the key, any other salt        salt.trust=true, and salt.pattern unless it is #<k>; then no
 *                                                    session id may end like a salt
 */
#include <field/fixture/field.h>
#include <support/check.h>

enum { PARTS = 8, LANES = 4 };

#define SALTED(word) {.shape = word, .scene = {.layout = "hash", .partitions = PARTS, .lanes = LANES}}

static const struct field_reading by_default = {.settings = {NULL}};
static const struct field_reading raw_key = {.settings = {"session.json", ""}};
static const struct field_reading counted_salt = {.settings = {"session.json", "", "lanes", "4"}};
static const struct field_reading any_salt = {
    .settings = {"session.json", "", "salt.trust", "true", "salt.pattern", "#salt_<k>"}};
static const struct field_reading any_other_salt = {
    .settings = {"session.json", "", "salt.trust", "true", "salt.pattern", "_SALT_<k>"}};

static void check_hashes(const char *is, const char *wanted) {
    char a[4096], b[4096];
    FILE *left = fopen(is, "r"), *right = fopen(wanted, "r");
    CHECK_THAT(left && right, "%s and %s can't be read", is, wanted);
    for (int line = 1; fgets(b, sizeof b, right); line++)
        CHECK_THAT(fgets(a, sizeof a, left) && strcmp(a, b) == 0, "%s:%d is not what the jar says", wanted, line);
    CHECK_THAT(!fgets(a, sizeof a, left), "%s has more lines", is);
    fclose(left);
    fclose(right);
}

/* kafka-clients, with its own partitioner. */
Test(field_salted, java_client, .timeout = 90) {
    static const char *const program[] = {"java/run.sh", "SaltingProducer", NULL};
    struct field_topic topics[] = {SALTED("counted"), SALTED("random"), SALTED("turns"), SALTED("raw")};
    const struct field_reading *by_key[] = {&counted_salt, &any_salt, &any_other_salt, &raw_key};
    enum { COUNT = sizeof topics / sizeof *topics };
    char hashes[512];
    snprintf(hashes, sizeof hashes, "%s/java-murmur2.txt", getenv("UNSALT_TEST_KAFKA_DIR"));
    field_produce(program, hashes, topics, COUNT);
    check_hashes(hashes, "tests/field/murmur2.txt");
    for (int i = 0; i < COUNT; i++) {
        field_check_spread(&topics[i], "hot-a", 2);
        if (i < COUNT - 1) /* the last one sets the partition itself */
            field_check_murmur2(&topics[i]);
        field_check_reading(&topics[i], &by_default);
        field_check_reading(&topics[i], by_key[i]);
    }
    field_close(topics, COUNT);
}

/* The session is in the key, and the number in a header: there is no JSON at all. */
static const struct field_reading salt_and_header = {.settings = {"salt.trust", "true", "salt.pattern", "#salt_<k>"}};

/* confluent-kafka for Python. Its own partitioner is another one, which a reader of all partitions need not know. */
Test(field_salted, confluent_kafka_for_python, .timeout = 90) {
    static const char *const program[] = {"python/run.sh", "salting_producer.py", NULL};
    struct field_topic topics[] = {SALTED("counted"), SALTED("turns"), SALTED("raw"), SALTED("decimal"),
                                   SALTED("binary")};
    const struct field_reading *readings[] = {&by_default, &by_default, &by_default, &salt_and_header, &by_default};
    enum { COUNT = sizeof topics / sizeof *topics };
    field_produce(program, NULL, topics, COUNT);
    field_check_murmur2(&topics[1]);
    for (int i = 0; i < COUNT; i++) {
        field_check_spread(&topics[i], "hot-a", 2);
        field_check_reading(&topics[i], readings[i]);
    }
    field_check_reading(&topics[0], &counted_salt);
    field_close(topics, COUNT);
}

Test(field_salted, kcat, .timeout = 60) {
    static const char *const program[] = {"kcat/salting-producer.sh", NULL};
    struct field_topic topics[] = {SALTED("counted"), SALTED("random"), SALTED("header")};
    enum { COUNT = sizeof topics / sizeof *topics };
    field_produce(program, NULL, topics, COUNT);
    field_check_murmur2(&topics[1]);
    for (int i = 0; i < COUNT; i++) {
        field_check_spread(&topics[i], "hot-a", 2);
        field_check_reading(&topics[i], &by_default);
    }
    field_check_reading(&topics[1], &any_salt);
    field_close(topics, COUNT);
}
