# SPDX-License-Identifier: BSD-2-Clause
# Debian's symbols file from the version script: awk -f symbols.awk lib/libunsalt.map. A node UNSALT_x.y came with
# version x.y.0.
FNR == 1 {
    print "libunsalt.so.0 libunsalt0 #MINVER#"
    print "* Build-Depends-Package: libunsalt-dev"
}
/^UNSALT_/ {
    node = $1
    version = substr(node, length("UNSALT_") + 1) ".0"
    print " " node "@" node " " version
}
/^ +unsalt_/ {
    sub(/;.*/, "", $1)
    print " " $1 "@" node " " version
}
