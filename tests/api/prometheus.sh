#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What unsalt_stats_prometheus() prints, followed by unsalt_pipeline_stats_prometheus(), passes `promtool check
# metrics`, and docs/metrics.md lists exactly that.
# `prometheus.sh write` puts the list there, between the lines
#   <!-- metrics:begin -->   and   <!-- metrics:end -->
set -uo pipefail
. "$(dirname "$0")/../harness/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
page=docs/metrics.md

# One text of a consumer that has just been made, one with every number different and labels in each series.
program() {
    cat > "$work/print.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <unsalt/unsalt.h>

static void print(const char *path, const unsalt_stats_t *stats, const unsalt_pipeline_stats_t *pipeline,
                  const char *labels) {
    static char text[65536];
    FILE *file = fopen(path, "w");
    if (!file || unsalt_stats_prometheus(stats, sizeof *stats, labels, text, sizeof text) >= (int)sizeof text)
        return;
    fputs(text, file);
    if (unsalt_pipeline_stats_prometheus(pipeline, sizeof *pipeline, labels, text, sizeof text) < (int)sizeof text)
        fputs(text, file);
    fclose(file);
}

int main(int argc, char **argv) {
    char errstr[256] = "usage";
    unsalt_stats_t stats;
    unsalt_pipeline_stats_t pipeline = {0};
    uint64_t words[(sizeof stats > sizeof pipeline ? sizeof stats : sizeof pipeline) / sizeof(uint64_t)];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "group.id", "nobody", errstr, sizeof errstr);
    unsalt_t *consumer = argc == 3 ? unsalt_new(conf, NULL, errstr, sizeof errstr) : NULL;
    if (!consumer || unsalt_stats(consumer, &stats, sizeof stats))
        return fprintf(stderr, "%s\n", errstr), 1;
    print(argv[1], &stats, &pipeline, NULL);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = 1000000007 * i;
    memcpy(&stats, words, sizeof stats);
    memcpy(&pipeline, words, sizeof pipeline);
    print(argv[2], &stats, &pipeline, "client=\"orders \\\"1\\\"\",dc=\"north\"");
    unsalt_destroy(consumer);
    return 0;
}
C
    ${CC:-gcc} -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -Iinclude -o "$work/print" "$work/print.c" \
        "$build/libunsalt.a" $(pkg-config --cflags --libs rdkafka) -lpthread -lm &&
        "$work/print" "$work/new.txt" "$work/labels.txt" && [ -s "$work/new.txt" ] && [ -s "$work/labels.txt" ]
}

accepted() {
    "$promtool" check metrics < "$1"
}

# refused WORD SED: the text, changed by SED, is refused with that word.
refused() {
    sed "$2" "$work/new.txt" > "$work/wrong.txt"
    ! cmp -s "$work/new.txt" "$work/wrong.txt" || { echo "nothing was changed"; return 1; }
    ! "$promtool" check metrics < "$work/wrong.txt" > "$work/said" 2>&1 || { echo "it was accepted"; return 1; }
    grep -q "$1" "$work/said" || { cat "$work/said"; return 1; }
}

# | name | type | labels | help |, out of the text.
listed() {
    awk '
        function row() { if (name) printf "| `%s` | %s | %s | %s |\n", name, type, labels, help }
        /^# HELP / { row(); name = $3; labels = ""; help = $0; sub(/^# HELP [^ ]+ /, "", help); next }
        /^# TYPE / { type = $4; next }
        match($0, /\{[a-z]+=/) { labels = "`" substr($0, RSTART + 1, RLENGTH - 2) "`" }
        END { row() }' "$work/new.txt"
}

written() {
    sed -n '/^<!-- metrics:begin -->$/,/^<!-- metrics:end -->$/p' "$page" | grep '^| `'
}

documented() {
    [ "$(listed | wc -l)" -gt 20 ] && diff <(written) <(listed)
}

if [ "${1:-}" = write ]; then
    program || exit 1
    listed > "$work/list"
    sed -i -e "/^<!-- metrics:begin -->\$/,/^<!-- metrics:end -->\$/{/^| \`/d;/^|---/r $work/list
        }" "$page"
    exit
fi
promtool=$(tests/harness/promtool.sh)
check "there is a promtool" "${promtool:-false}" --version
check "the metrics can be printed" program
check "promtool accepts those of a new consumer" accepted "$work/new.txt"
check "promtool accepts them with labels" accepted "$work/labels.txt"
check "promtool refuses a metric of two types" refused 'second TYPE line' \
    's/^# TYPE unsalt_commits_total .*/&\n# TYPE unsalt_commits_total gauge/'
check "promtool refuses a missing help text" refused 'no help text' '/^# HELP unsalt_sessions /d'
check "promtool refuses a decimal comma" refused 'parsing error' 's/^\(unsalt_wait_seconds_sum\) .*/\1 1,5/'
check "promtool refuses a counter without _total" refused '_total' 's/unsalt_polls_total/unsalt_polls/'
check "$page lists the metrics" documented
finish
