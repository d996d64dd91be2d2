# SPDX-License-Identifier: BSD-2-Clause
# A filter for Doxygen: the enumerations that the headers make from lists, such as UNSALT_EVENTS(X), are written out,
# each constant with the text of its entry. The number of lines stays the same.

# Entries: `X(CONSTANT, ..., "text")`, joined over continued lines.
function collect(list, body,    entry, name, text, n) {
    while (match(body, /X\([A-Z_]+,[^"]*"[^"]*"\)/)) {
        entry = substr(body, RSTART, RLENGTH)
        body = substr(body, RSTART + RLENGTH)
        name = entry
        sub(/^X\(/, "", name)
        sub(/,.*/, "", name)
        text = entry
        sub(/^[^"]*"/, "", text)
        sub(/"\)$/, "", text)
        n = ++count[list]
        constant[list, n] = name
        meaning[list, n] = text
    }
}

/^#define UNSALT_[A-Z_]+\(X\)/ {
    list = $2
    sub(/\(X\).*/, "", list)
    inside = 1
}
inside {
    body = body $0
    if ($0 !~ /\\$/) {
        collect(list, body)
        inside = 0
        body = ""
    }
    print
    next
}
/^#define X\(/ {
    prefix = $0
    sub(/.*\) /, "", prefix)
    sub(/##C,.*/, "", prefix)
    print ""
    next
}
/^#undef X$/ { print ""; next }
/^ +UNSALT_[A-Z_]+\(X\)$/ {
    list = $1
    sub(/\(X\).*/, "", list)
    for (i = 1; i <= count[list]; i++)
        printf "%s%s, /**< %s */ ", prefix, constant[list, i], meaning[list, i]
    print ""
    next
}
{ print }
