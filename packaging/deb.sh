#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# deb.sh TARBALL FOLDER: builds the Debian packages from the source tarball into FOLDER, and lets lintian look at them.
# An error of lintian's is a failure. Everything happens below FOLDER; nothing is fetched.
set -euo pipefail
tarball=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
name=$(basename "$tarball" .tar.gz)
version=${name#unsalt-}

rm -rf "${folder:?}"/*
# The packaging is Debian's own part of the source package.
tar -xzf "$tarball" -C "$folder"
tar -C "$folder" --exclude="$name/debian" -czf "$folder/unsalt_$version.orig.tar.gz" "$name"
cd "$folder/$name"
# Nothing of the make that may have started this.
unset MAKEFLAGS MFLAGS MAKELEVEL O CONFIG CC CXX CFLAGS CPPFLAGS LDFLAGS V T
if ! dpkg-buildpackage -us -uc > "$folder/build.log" 2>&1; then
    tail -n 60 "$folder/build.log" >&2
    exit 1
fi
cd "$folder"
grep -E 'passed, .* failed$' build.log | tail -n 1 || true
rm -rf "$folder/$name"
lintian --fail-on error --tag-display-limit 0 --allow-root ./*.changes
ls -1 "$folder"/*.deb
