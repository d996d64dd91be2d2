# SPDX-License-Identifier: BSD-2-Clause
# Limits of C files: awk -f limits.awk -v columns=120 -v lines=600 -v body=60 -v depth=4 FILE...
# A function is counted from the line of its opening brace to that of its closing one. Depth counts blocks of
# control statements, one in another. Prints each breach, and ends with 1 if there was one.

function breach(line, text) {
    printf "%s:%d: %s\n", FILENAME, line, text
    bad = 1
}

# Removes comments and the content of strings; keeps the state of a comment from line to line.
function clean(s,    out, c, d, i, n, quote) {
    n = length(s)
    quote = ""
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        d = substr(s, i, 2)
        if (comment) {
            if (d == "*/") { comment = 0; i++ }
        } else if (quote != "") {
            if (c == "\\") i++
            else if (c == quote) quote = ""
        } else if (d == "/*") { comment = 1; i++ }
        else if (d == "//") break
        else if (c == "\"" || c == "'") { quote = c; out = out "x" }
        else out = out c
    }
    return out
}

# What stands before an opening brace says what it opens.
function kind(head,    flat) {
    sub(/[ \t]+$/, "", head)
    if (level == 0) {
        flat = head
        while (gsub(/\([^()]*\)/, "", flat)) {}
        if (head ~ /extern +x *$/ || head ~ /extern *$/) return "outer"
        if (head ~ /\)( *__attribute__.*)?$/ && flat !~ /=/) return "function"
        return "data"
    }
    if (head ~ /(\)|[^A-Za-z0-9_]else|^else|[^A-Za-z0-9_]do|^do)$/ && head !~ /= *\([^()]*\)$/) return "control"
    return "data"
}

FNR == 1 {
    comment = level = nest = 0
    head = ""
    macro = 0
}

length($0) > columns { breach(FNR, "line of " length($0) " columns, limit " columns) }
FNR == lines + 1 { breach(FNR, "file of more than " lines " lines") }

{
    # Macros are not functions; what they hide is not counted.
    was = macro
    if (!comment && ($0 ~ /^[ \t]*#/ || macro)) {
        macro = ($0 ~ /\\$/)
        clean($0)
        next
    }
    code = clean($0)
    for (i = 1; i <= length(code); i++) {
        c = substr(code, i, 1)
        if (c == "{") {
            k = kind(head)
            if (k == "outer") { head = ""; continue }
            stack[++level] = k
            if (k == "function") { start = FNR; name = head; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
            if (k == "control" && ++nest > depth) breach(FNR, "nesting of " nest ", limit " depth)
            head = ""
        } else if (c == "}") {
            if (level > 0) {
                k = stack[level--]
                if (k == "control") nest--
                if (k == "function" && FNR - start + 1 > body)
                    breach(start, "function " name " of " FNR - start + 1 " lines, limit " body)
            }
            head = ""
        } else if (c == ";" && head !~ /\([^)]*$/) head = ""
        else head = head c
    }
    head = head " "
}

END { exit bad }
