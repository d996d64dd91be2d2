#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The scripts that check the structure must see what they look for: here it is planted, one breach at a time.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
api=$here/../api
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

# fresh: a small tree that breaks no rule.
fresh() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{build,.}/lib/{base,codec,core,kafka} "$tree"/tests/unit
    for layer in base codec core kafka; do
        printf '/* SPDX-License-Identifier: BSD-2-Clause */\nint us_%s(void);\nint us_%s(void) {\n    return 1;\n}\n' \
            $layer $layer > "$tree/lib/$layer/$layer.c"
    done
}

compile() {
    local source
    for source in "$tree"/lib/*/*.c; do
        ${CC:-gcc} -w -c -o "$tree/build/${source#"$tree"/}" "$source" || exit 2
        mv "$tree/build/${source#"$tree"/}" "$tree/build/$(sed 's/\.c$/.o/' <<< "${source#"$tree"/}")"
    done
}

# expect RESULT WHAT SCRIPT MESSAGE
expect() {
    local text
    compile
    text=$("$api/$3.sh" "$tree" "$tree/build" 2>&1)
    if { [ "$1" = pass ] && ! grep -q '^not ok' <<< "$text"; } ||
        { [ "$1" = fail ] && [ "$(grep -c '^not ok' <<< "$text")" = 1 ] && grep -q "$4" <<< "$text"; }; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        sed 's/^/    /' <<< "$text"
        bad=1
    fi
}

add() {
    cat >> "$tree/$1"
}

fresh
expect pass "a clean tree" layers
expect pass "a clean tree" limits

echo 'void *malloc(unsigned long); void *us_a(void) { return malloc(8); }' | add lib/core/core.c
expect fail "malloc in the core" layers "calls malloc"
fresh
echo 'int us_kafka(void); int us_b(void) { return us_kafka(); }' | add lib/codec/codec.c
expect fail "a call upwards" layers "calls us_kafka"
fresh
echo '#include <time.h>' | add lib/base/base.c
expect fail "an include of the clock" layers "includes <time.h>"
fresh
echo '#include <librdkafka/rdkafka.h>' | add lib/core/core.c
expect fail "an include of librdkafka" layers "includes <librdkafka/rdkafka.h>"
fresh
mkdir -p "$tree/lib/base" && : > "$tree/lib/core/top.h"
printf '#if 0\n#include "core/top.h"\n#endif\n' | add lib/base/base.c
expect fail "an include upwards" layers 'includes "core/top.h"'
fresh
echo 'int clock_gettime(int, void *); int us_c(void) { return clock_gettime(1, 0); }' | add lib/kafka/kafka.c
expect fail "a second reader of the clock" layers "reads the clock"

fresh
{ echo 'int us_long(int a) {'; yes '    a++;' | head -n 60; echo '    return a;'; echo '}'; } | add lib/core/core.c
expect fail "a long function" limits "function us_long of 63 lines"
fresh
yes '/* . */' | head -n 600 | add lib/core/core.c
expect fail "a long file" limits "more than 600 lines"
fresh
printf '/* %0120d */\n' 0 | add lib/core/core.c
expect fail "a long line" limits "line of 126 columns"
fresh
echo 'int us_deep(int a) { if (a) { while (a) { for (;;) { do { if (a) { a--; } } while (a); } } } return a; }' |
    add lib/core/core.c
expect fail "a deep function" limits "nesting of 5"
fresh
echo 'int us_bare(void);' > "$tree/lib/core/bare.c"
echo 'typedef int us_int;' | add lib/core/bare.c
expect fail "no licence" limits "no licence"
fresh
printf '/* SPDX-License-Identifier: BSD-2-Clause */\n#include <criterion/criterion.h>\nTest(a, b) {\n}\n' |
    add tests/unit/a.c
expect fail "a test without a timeout" limits "Test(a, b)"
fresh
printf '/* SPDX-License-Identifier: BSD-2-Clause */\n#include <criterion/criterion.h>\n%s\n' \
    'Test(a, b, .timeout = 1) { exit(0); }' | add tests/unit/a.c
expect fail "exit in a test" limits "exit(0)"
exit $bad
