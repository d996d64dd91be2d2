# SPDX-License-Identifier: BSD-2-Clause
# The Markdown table of configuration keys on its way to a manual page: `make -s conf-table | awk -f conf-keys.awk`.

# What mdoc would take for its own. Text in backquotes becomes bold.
function escaped(text,    out, i, c, bold) {
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "`") { bold = !bold; out = out (bold ? "\\fB" : "\\fR") }
        else if (c == "\\") out = out "\\e"
        else if (c == "-" && (bold || substr(text, i + 1, 1) ~ /[0-9]/)) out = out "\\-"
        else if (c == "^") out = out "\\(ha"
        else if (c == "~") out = out "\\(ti"
        else out = out c
    }
    return out
}

# One sentence begins one line, and no line is longer than 78 columns.
function print_text(text,    word, n, i, line) {
    n = split(escaped(text), word, " ")
    line = ""
    for (i = 1; i <= n; i++) {
        if (line != "" && length(line) + 1 + length(word[i]) > 78) { print line; line = "" }
        line = line (line == "" ? "" : " ") word[i]
        if (word[i] ~ /\.$/ && word[i + 1] ~ /^[A-Z]/) { print line; line = "" }
    }
    if (line != "") print line
}

function trimmed(cell) {
    gsub(/\001/, "|", cell)
    gsub(/^ +| +$/, "", cell)
    return cell
}

BEGIN { print ".Bl -tag -width Ds" }
NR > 2 && /^\|/ {
    gsub(/\\\|/, "\001")
    split($0, cell, "|")
    name = trimmed(cell[2])
    gsub(/`/, "", name)
    print ".It Cm " name
    print_text(trimmed(cell[6]))
    print ".Pp"
    who = trimmed(cell[5])
    who = who == "both" ? "Consumer and producer" : toupper(substr(who, 1, 1)) substr(who, 2)
    fallback = trimmed(cell[3])
    print_text(who "; allowed: " trimmed(cell[4]) "; default: " (fallback == "" ? "empty" : fallback) ".")
}
END { print ".El" }
