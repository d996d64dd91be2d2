#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# dist.sh NAME OUTPUT: packs the files of the project below a folder NAME into OUTPUT, a .tar.gz. The files are those
# that git tracks, as they stand in the tree; without git, as in an unpacked tarball, all but the build folder. The same
# files give the same bytes: one time for all (SOURCE_DATE_EPOCH, or the last commit, or the version's header), no
# owner, one order.
set -euo pipefail
name=$1
output=$(realpath -m "$2")
mkdir -p "$(dirname "$output")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# An unpacked tarball inside of another repository is none of that one's.
in_git() {
    [ -e .git ] && git rev-parse --git-dir > /dev/null 2>&1
}

files() {
    if in_git; then
        git ls-files -z
    else
        find . \( -path ./.git -o -path ./build -o -path "./$(realpath --relative-to=. "$(dirname "$output")")" \) \
            -prune -o ! -type d -printf '%P\0'
    fi | while IFS= read -r -d '' file; do
        # Tracked, but removed from the tree.
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done
}

time=${SOURCE_DATE_EPOCH:-}
if [ -z "$time" ] && in_git; then time=$(git log -1 --format=%ct 2> /dev/null || true); fi
time=${time:-$(stat -c %Y include/unsalt/version.h)}

new=$(mktemp "$output.XXXXXX")
trap 'rm -f "$new"' EXIT
files | LC_ALL=C sort -zu | tar --null --no-recursion -T - --transform "s|^|$name/|S" --format=ustar --mtime="@$time" \
    --owner=0 --group=0 --numeric-owner --mode='u+rw,go=u-w' -cf - | gzip -9n > "$new"
chmod 644 "$new"
mv "$new" "$output"
