#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# links.sh PAGE.md...: links to files lead to files, links to headings (#name) to headings of that page. Names what
# doesn't, and fails then. Names of headings are made as code hosters make them: small letters, blanks to -, nothing
# else but letters, digits, - and _.
set -uo pipefail

# Lines of code are no prose.
prose() {
    awk '/^ *```/ { code = !code; next } !code' "$1"
}

headings() {
    prose "$1" | sed -nE 's/^#+ +//p' | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

bad=0
for page in "$@"; do
    [ -f "$page" ] || continue
    while read -r target; do
        file=${target%%#*}
        to=$(dirname "$page")/$file
        [ -n "$file" ] || to=$page
        [ -e "$to" ] || { echo "$page: no $file"; bad=1; continue; }
        [[ $target == *.md#* || $target == \#* ]] || continue
        headings "$to" | grep -qxF -e "${target#*#}" || { echo "$page: no heading $target"; bad=1; }
    done < <(prose "$page" | grep -oE '\]\([^() ]+\)' | sed -E 's/^\]\(//; s/\)$//' | grep -vE '^[a-z]+:')
done
exit $bad
