# SPDX-License-Identifier: BSD-2-Clause
# Links of a Markdown page as they are right where it is installed, in one folder with the other pages (and examples/):
#
#   awk -v page=docs/groups.md -v installed="README.md docs/groups.md examples/01_poll.c ..." -f doc-links.awk PAGE
#
# A link to what is installed leads there. Of one to what isn't its text stays. Links to the web, and to places in the
# page itself, stay as they are; so does what stands between lines of ```.

# Where something of the project is installed, seen from the folder of the pages.
function place(path) {
    sub(/^docs\//, "", path)
    return path
}

# A path with the `..` in it resolved.
function plain(path,    n, parts, i, kept, out, depth) {
    n = split(path, parts, "/")
    depth = 0
    for (i = 1; i <= n; i++) {
        if (parts[i] == "..")
            depth--
        else if (parts[i] != "." && (parts[i] != "" || i == n))
            kept[++depth] = parts[i]
    }
    out = ""
    for (i = 1; i <= depth; i++)
        out = out (i > 1 ? "/" : "") kept[i]
    return out
}

# The link as it is to be; text and target are what stands in [] and ().
function link(text, target,    anchor, path) {
    if (target ~ /^#/ || target ~ /:/)
        return "[" text "](" target ")"
    anchor = match(target, /#.*/) ? substr(target, RSTART) : ""
    path = plain(folder (anchor == "" ? target : substr(target, 1, RSTART - 1)))
    return path in here ? "[" text "](" up place(path) anchor ")" : text
}

function links(prose,    out, part, at, rest) {
    out = ""
    while (match(prose, /\[[^][]*\]\([^()]*\)/)) {
        part = substr(prose, RSTART + 1, RLENGTH - 2)
        out = out substr(prose, 1, RSTART - 1)
        rest = substr(prose, RSTART + RLENGTH)
        at = index(part, "](")
        out = out link(substr(part, 1, at - 1), substr(part, at + 2))
        prose = rest
    }
    return out prose
}

BEGIN {
    n = split(installed, all, " ")
    for (i = 1; i <= n; i++) {
        here[all[i]] = 1
        if (all[i] ~ /^examples\//)
            here["examples/"] = 1
    }
    folder = page
    sub(/[^\/]*$/, "", folder)
    up = folder ~ /^examples/ ? "../" : ""
}

# A link may begin in one line and end in the next.
/^[ ]*```/ {
    printf "%s%s\n", links(text), $0
    text = ""
    code = !code
    next
}
code { print; next }
{ text = text $0 "\n" }
END { printf "%s", links(text) }
