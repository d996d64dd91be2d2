#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""data.py WORK OUT RESULTS.jsonl...: writes what gnuplot needs into WORK, for images in OUT; plot.sh calls it. Which line
of a figure counts ../tables/tables.py says."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tables"))
sys.dont_write_bytecode = True
from tables import read_results  # noqa: E402

work, out, *results = sys.argv[1:]
figures = list(read_results(results)[0].values())

HEAD = """set terminal pngcairo size 1000,640 font "sans,11" noenhanced
set output "%s/%s.png"
set title "%s"
set key outside below
set grid
"""


def write(name, title, settings, curves):
    """curves: list of (label, [(x, y, low, high)]); an error bar where the spread is known."""
    if not curves:
        return
    parts = []
    for number, (label, points) in enumerate(curves):
        data = "%s/%s-%d.dat" % (work, name, number)
        with open(data, "w") as f:
            f.writelines("%g %g %g %g\n" % p for p in sorted(points))
        parts.append('"%s" using 1:2:3:4 with yerrorlines title "%s"' % (data, label))
    with open("%s/%s.gp" % (work, name), "w") as f:
        f.write(HEAD % (out, name, title) + settings + "plot " + ", \\\n     ".join(parts) + "\n")


def percentiles(metric, side, keep):
    """Curves over the share of records that are slower, so that each further nine has the same room."""
    curves = {}
    for f in figures:
        match = re.fullmatch(metric + r"_p([\d.]+)", f["metric"])
        if match and f.get(side) is not None and keep(f["bench"]):
            ends = ("min", "max") if side == "value" else ("other_min", "other_max")
            point = (1 / (1 - float(match.group(1)) / 100), *(f[s] / 1000 for s in (side, *ends)))
            curves.setdefault(f["bench"], []).append(point)
    return list(curves.items())


AXES = """set logscale xy
set xtics ("50" 2, "75" 4, "90" 10, "95" 20, "99" 100, "99.9" 1000, "99.99" 10000)
set xlabel "per cent of the records that are at least so quick"
set ylabel "ms"
"""
ours = percentiles("due_to_released", "value", lambda _: True)
raw = percentiles("due_to_released", "other", lambda b: "lanes" not in b and "lost" not in b)
write("latency", "from due until the application has it: median of the runs, lowest and highest", AXES,
      ours + [("without order: " + label, points) for label, points in raw])
write("read-latency", "from the last missing record read until released: median of the runs, lowest and highest", AXES,
      percentiles("read_to_released", "value", lambda _: True))

workers = {"unsalt_pipeline, in order": [], "pool without order": []}
lanes = {}
for f in figures:
    match = re.fullmatch(r"scaling, (\d+) workers", f["bench"])
    if match and f["metric"] == "time_per_record":
        x = int(match.group(1))
        workers["unsalt_pipeline, in order"].append((x, *(1e6 / f[k] for k in ("value", "max", "min"))))
        workers["pool without order"].append((x, *(1e6 / f[k] for k in ("other", "other_max", "other_min"))))
    match = re.fullmatch(r"core (\d+)x(\d+)", f["bench"])
    if match and f["metric"] == "time_per_record_cpu":
        s, b = map(int, match.groups())
        lanes.setdefault("bursts of %d" % b, {})[s] = (s, f["value"], f["min"], f["max"])
if workers["pool without order"]:
    write("workers", "one hot key, 1 ms of work: by the number of workers",
          'set logscale xy\nset xlabel "workers"\nset ylabel "records/s"\n', list(workers.items()))
write("lanes", "the core, one session: processor time per record by the number of lanes",
      'set logscale x 2\nset xrange [0.9:*]\nset yrange [0:]\nset xlabel "lanes"\nset ylabel "ns per record"\n',
      [(label, list(points.values())) for label, points in lanes.items()])
