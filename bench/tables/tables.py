#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the tables of bench/README.md and README.md from the committed results, bench/results/*.jsonl.

    tables.py write            writes them, between the lines <!-- bench:NAME:begin --> and <!-- bench:NAME:end -->
    tables.py check            fails if the documents are not what `write` would make of the results
    tables.py targets FILE...  prints the table of targets for the JSON lines in these files, as of a run of one's own
    tables.py names FILE       fails if a row that the lists here speak of is not among the JSON lines in FILE; rows of
                               benchmarks that need a broker are not looked for

What the tables hold is said by the lists beside this script. Of lines of the same figure those of a whole matrix count
before those of a reduced one, and of these the last one, files in the order of their names. `make bench-tables` calls
it.
"""
import glob
import json
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BROKERED = re.compile(r"(raw-|split|poll|batch|callback|extract|latency|hot key|scaling|restart|workers)")


def lines_of(name):
    """The lines of a list, without comments and empty ones."""
    with open(os.path.join(HERE, name)) as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def rows_of(name, width):
    """The lines of a list, cut into columns. A heading `= text` is a row of one column."""
    rows = []
    for line in lines_of(name):
        row = [line] if line.startswith("= ") else [part.strip() for part in (line + " ").split(" | ")]
        if len(row) not in (1, width):
            sys.exit("tables: %s: %d columns instead of %d: %s" % (name, len(row), width, line))
        rows.append(row)
    return rows


def read_results(paths):
    """Figures by bench, metric and against, each with the place of its machine among the other lines; and of each file
    these others, which say of machines and parts."""
    figures, others = {}, []
    for path in paths:
        whole, machine = False, None
        with open(path) as file:
            for number, line in enumerate(file, 1):
                row = json.loads(line)
                if row.get("tiny"):
                    sys.exit("tables: %s:%d: figures of a run with UNSALT_BENCH_TINY say nothing" % (path, number))
                if "bench" not in row:
                    whole = bool(row.get("full", whole))
                    machine = len(others) if "machine" in row else machine
                    others.append((os.path.basename(path), row))
                    continue
                key = (row["bench"], row["metric"], row["against"] or "-")
                if whole or not figures.get(key, {}).get("whole"):
                    figures.pop(key, None)
                    figures[key] = dict(row, whole=whole, machine=machine)
    return figures, others


def found(figures, bench, metric, against):
    return [row for (b, m, a), row in figures.items() if m == metric and a == against and re.fullmatch(bench, b)]


def number(x):
    """Three significant digits, without an exponent."""
    x = float("%.3g" % x)
    return "{:,.0f}".format(x) if abs(x) >= 100 or x == 0 else ("%#.3g" % x).rstrip(".")


def with_unit(x, unit):
    for small, large in (("ns", "us"), ("us", "ms"), ("ms", "s")):
        if unit == small and abs(x) >= 1000 and small != "ns":
            x, unit = x / 1000, large
    return "%s %s" % (number(x), unit)


# ---- targets


def measured(row, field):
    """Median, lowest, highest in the field that a target speaks of."""
    if field == "value":
        return row["value"], row["min"], row["max"]
    median, low, high = row["ratio"], row["ratio_min"], row["ratio_max"]
    if field == "ratio":
        return median, low, high
    if field == "faster":
        return 1 / median, 1 / high, 1 / low
    sys.exit("tables: no such field: " + field)


def judge(rows, field, limit):
    """The row that decides, and whether the target is met; None: there is no target."""
    if limit == "-":
        return max(rows, key=lambda row: measured(row, field)[0]), None
    match = re.match(r"(<=|>=) ([\d.]+)( \w+)?", limit)
    if not match:
        sys.exit("tables: no such limit: " + limit)
    bound = float(match.group(2))
    unit = (match.group(3) or "").strip()
    if field == "value" and any(row["unit"] != unit for row in rows) or field != "value" and unit != "x":
        sys.exit("tables: the unit of the limit %s is not that of the figure %s" % (limit, rows[0]["bench"]))
    if match.group(1) == "<=":
        worst = max(rows, key=lambda row: measured(row, field)[0])
        return worst, measured(worst, field)[0] <= bound
    worst = min(rows, key=lambda row: measured(row, field)[0])
    return worst, measured(worst, field)[0] >= bound


def spread(row, field):
    median, low, high = measured(row, field)
    unit = "x" if field != "value" else row["unit"]
    show = (lambda x: "%.2f" % x) if field != "value" else number
    text = "%s %s" % (show(median), unit)
    if row["runs"] > 1:
        text += " (%s to %s)" % (show(low), show(high))
    if field != "value":
        text += "; %s / %s" % (with_unit(row["value"], row["unit"]), with_unit(row["other"], row["unit"]))
    elif row["against"]:
        text += "; %s: %s %s" % (row["against"], number(row["other"]), row["unit"])
    return text


def target_rows(figures, rows_named=False):
    """Rows (what, target, measured, verdict) and headings (text,). rows_named: each with the row that it is of."""
    for row in rows_of("targets.txt", 6):
        if len(row) == 1:
            yield (row[0][2:],)
            continue
        what, bench, metric, against, field, limit = row
        rows = found(figures, bench, metric, against)
        if not rows:
            yield what, limit, "not measured", "-"
            continue
        worst, met = judge(rows, field, limit)
        text = spread(worst, field)
        if len(rows) > 1 or rows_named:
            text += "; at `%s`" % worst["bench"] + (" `%s`" % worst["metric"] if rows_named else "")
        yield what, limit, text, {True: "met", False: "**not met**", None: "-"}[met]


def table_of(rows, columns):
    """The rows under their headings; headings without a row are left out."""
    head = ["what", "target", "measured: median (lowest to highest of the rounds)", ""][:columns]
    table, heading = ["| %s |" % " | ".join(head), "|---" * columns + "|"], None
    for row in rows:
        if len(row) == 1:
            heading = row[0]
            continue
        if heading:
            table.append("| **%s** |%s" % (heading, " |" * (columns - 1)))
            heading = None
        table.append("| %s |" % " | ".join(row[:columns]))
    return table


def targets(figures, _):
    return table_of(target_rows(figures), 4)


def unmet(figures, _):
    """What speaks against us: the targets that are not met."""
    rows = list(target_rows(figures))
    judged = [row for row in rows if len(row) > 1 and row[3] != "-"]
    bad = [row for row in judged if row[3] != "met"]
    text = ["%d of the %d targets that were measured are not met:" % (len(bad), len(judged)), ""]
    return text + table_of([row for row in rows if len(row) == 1 or row in bad], 3) if bad else text[:1]


# ---- the other tables


def machines_of(figures, others):
    """Which machine the figures of each file are of, at which commit, and the parts that were done there."""
    texts, at = {}, None
    counted = {row["machine"] for row in figures.values()}
    for place, (name, row) in enumerate(others):
        if "part" in row and at:
            texts[at].append("`%s`" % row["part"])
        if "machine" not in row:
            continue
        text = "* [%s](results/%s): %s, %s, %s processors, %s GiB, %s, %s, librdkafka %s" % (
            name, name, row["date"], row["machine"], row["processors"], row["memory_gib"], row["kernel"],
            re.sub(r"^GCC: \([^)]*\) ", "gcc ", row["compiler"]), row["librdkafka"])
        text += "" if row["kafka"] == "none" else ", Kafka %s on the same machine" % row["kafka"]
        text += ", Java %s" % row["java"] if row.get("java") else ""
        text += ", commit %s" % row["commit"] if row.get("commit") else ""
        text += "; %s" % row["note"] if row.get("note") else ""
        at = (text, "whole" if row.get("full") else "reduced") if place in counted else None
        if at:
            texts.setdefault(at, [])
    lines = []
    for (text, matrix), done in texts.items():
        text += "; of the %s matrix: %s" % (matrix, ", ".join(dict.fromkeys(done)) or "no part to its end")
        lines += textwrap.wrap(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return lines


def without_empty(table):
    """The rows of a table without the columns that have no figure at all."""
    rows = [line.strip("| ").split(" | ") for line in table[:1] + table[2:]]
    kept = [i for i in range(len(rows[0])) if i == 0 or any(row[i] != "-" for row in rows[1:])]
    lines = ["| %s |" % " | ".join(row[i] for i in kept) for row in rows]
    return lines[:1] + ["|---" * len(kept) + "|"] + lines[1:]


def figures_of(figures, _):
    table = ["| what | unsalt | against | ratio |", "|---|---|---|---|"]
    for what, bench, metric, against, words in rows_of("figures.txt", 5):
        rows = found(figures, bench, metric, against)
        if not rows:
            continue
        row = rows[0]
        other = "%s, %s" % (with_unit(row["other"], row["unit"]), words) if row["against"] else ""
        ratio = "%.2f" % row["ratio"] if row["against"] else ""
        table.append("| %s | %s | %s | %s |" % (what, with_unit(row["value"], row["unit"]), other, ratio))
    return table


def latency(figures, _):
    """A line for each course of bench/latency.c."""
    courses, shares = [], ("p50", "p99", "p99.9", "p99.99")
    heads = [before + " | ".join(shares) for before in ("", "without order: ", "read to released: ")]
    table = ["| course | %s |" % " | ".join(heads), "|---" * 13 + "|"]
    for bench, _metric, _against in figures:
        if bench.startswith("latency ") and bench not in courses:
            courses.append(bench)

    def cell(bench, metric, side):
        for (b, m, _a), row in figures.items():
            if b == bench and m == metric:
                return number(row[side] / 1000)
        return "-"

    for bench in courses:
        cells = [cell(bench, "due_to_released_" + share, "value") for share in shares]
        cells += [cell(bench, "due_to_released_" + share, "other") for share in shares]
        cells += [cell(bench, "read_to_released_" + share, "value") for share in shares]
        table.append("| %s | %s |" % (bench[len("latency "):], " | ".join(cells)))
    return without_empty(table)


def sides_of(figures, pattern, metric):
    """By bench, in the order of the results: ours by "-", each thing that it was compared with by its words; and what
    the pattern has found in the name."""
    benches = {}
    for (bench, m, against), row in figures.items():
        match = re.fullmatch(pattern, bench) if m == metric else None
        if match:
            _, sides = benches.setdefault(bench, (match, {}))
            sides["-"] = row["value"]
            if against != "-":
                sides[against] = row["other"]
    return benches.values()


def rate(sides, side):
    """Records a second of what took so many microseconds for each."""
    return "{:,.0f}".format(float("%.3g" % (1e6 / sides[side]))) if side in sides else "-"


POOL = "100 threads, raw consumer, no order"
PEER = "Parallel Consumer "


def hot_keys(figures, _):
    """Every kind of work, with the peer in its three orders; the last rows are the table of the peer's own README."""
    table = ["| records/s | unsalt_pipeline | pool, no order | UNORDERED | PARTITION | KEY "
             "| processor us: unsalt_pipeline | processor us: pool |", "|---" * 8 + "|"]
    for match, sides in sides_of(figures, r"hot key, (.*)", "time_per_record"):
        cells = [rate(sides, side) for side in ("-", POOL, PEER + "UNORDERED", PEER + "PARTITION", PEER + "KEY")]
        cpu = figures.get((match.group(), "time_per_record_cpu", POOL))
        cells += [number(cpu["value"]), number(cpu["other"])] if cpu else ["-"] * 2
        table.append("| %s | %s |" % (match.group(1), " | ".join(cells)))
    return table


def workers(figures, _):
    """Relays of 8 threads each in one process."""
    table = ["| 1 ms of work that sleeps, relays | records/s | lowest to highest |", "|---" * 3 + "|"]
    for (bench, metric, _against), row in figures.items():
        if bench == "workers, 1 ms of work" and row["unit"] == "us/record":
            table.append("| %s | %s | %s to %s |" % (metric, *(rate(row, end) for end in ("value", "max", "min"))))
    return table


def scaling(figures, _):
    """The threads of a pipeline, and their processor time."""
    table = ["| 1 ms of work that sleeps, threads | records/s | lowest to highest | pool, no order "
             "| processor us a record | pool, no order | ratio |", "|---" * 7 + "|"]
    for (bench, metric, against), row in figures.items():
        match = re.fullmatch(r"scaling, (\d+) workers", bench)
        if not match or metric != "time_per_record":
            continue
        cpu = figures.get((bench, metric + "_cpu", against))
        cells = [rate(row, "value"), "%s to %s" % (rate(row, "max"), rate(row, "min")), rate(row, "other")]
        cells += [number(cpu["value"]), number(cpu["other"]), "%.2f x" % cpu["ratio"]] if cpu else ["-"] * 3
        table.append("| %s | %s |" % (match.group(1), " | ".join(cells)))
    return table


RAW = ["rd_kafka_consumer_poll", "rd_kafka_consumer_poll and the number read", "rd_kafka_consume_batch_queue",
       "rd_kafka_consume_batch_queue and the number read", "a batch from each partition's queue in turns",
       "a batch from each partition's queue in turns and the number read (floor)"]


def readers(figures, _):
    """A line for each topic and librdkafka: what every reader takes for a record."""
    table = ["| ns a record, wall | raw poll | raw poll, number | raw batch | raw batch, number | split batch "
             "| split batch, number: floor | unsalt poll | unsalt batch | unsalt callback | unsalt extract |",
             "|---" * 11 + "|"]
    topics = {}
    for match, sides in sides_of(figures, r"(poll|batch|callback|extract) (.*), (.*)", "time_per_record"):
        cells = topics.setdefault((match.group(2), match.group(3)), {})
        cells.update({side: sides[side] for side in RAW if side in sides})
        cells[match.group(1)] = sides["-"]
    for (topic, version), cells in sorted(topics.items()):
        shown = [number(cells[c]) if c in cells else "-" for c in RAW + ["poll", "batch", "callback", "extract"]]
        table.append("| %s, %s | %s |" % (topic, version, " | ".join(shown)))
    return without_empty(table)


def sessions(figures, _):
    table = ["| processor ns a record | in batches | one by one | bare uthash look-up | floor: row found and touched |",
             "|---" * 5 + "|"]

    def value(bench, metric, side="value"):
        rows = [row for (b, m, _a), row in figures.items() if b == bench and m == metric]
        return number(rows[0][side]) if rows else "-"

    idle = ["", "| idle sessions | bytes beside the id | expiry, processor ns each |", "|---" * 3 + "|"]
    for bench in dict.fromkeys(b for b, _m, _a in figures if b.startswith("sessions ")):
        name = re.sub(r"\d+", lambda n: "{:,}".format(int(n.group())), bench[len("sessions "):])
        if name.endswith(" idle"):
            cells = (name[:-5], value(bench, "bytes_beside_id"), value(bench, "expiry_cpu"))
            idle.append("| %s | %s | %s |" % cells)
            continue
        table.append("| %s | %s | %s | %s | %s |" % (
            name, value(bench, "record_in_batch_cpu"), value(bench, "record_one_by_one_cpu"),
            value(bench, "record_in_batch_cpu", "other"), value(bench, "row_touched_in_batch_cpu")))
    return table + idle


PARTS = ["core", "consumer", "consumer_100_none", "consumer_100_lz4", "consumer_1024_none", "consumer_1024_lz4",
         "latency", "hot_key", "scaling", "restart", "workers", "peers"]


def parts(_, others):
    """How long each part took, in either matrix."""
    took = {}
    for _name, row in others:
        if "part" in row:
            took[row["part"], bool(row["full"])] = row["seconds"]
    table = ["| part | reduced: minutes | `FULL=1`: minutes |", "|---|---|---|"]
    for part in PARTS:
        cells = ["%.1f" % max(took[part, full] / 60, 0.1) if (part, full) in took else "-" for full in (False, True)]
        table += ["| `%s` | %s |" % (part, " | ".join(cells))] if cells != ["-", "-"] else []
    return table


def hot_key(figures, _):
    def of_a_second(match):
        *key, side = [part.strip() for part in match.group(1).split(" | ")]
        rows = found(figures, *key)
        if not rows:
            sys.exit("tables: hot-key.txt: not measured: " + match.group(1))
        return "{:,.0f}".format(float("%.2g" % (1e6 / rows[0]["value" if side == "ours" else "other"])))

    return textwrap.wrap(re.sub(r"\{([^}]*)\}", of_a_second, " ".join(lines_of("hot-key.txt"))), 119)


TABLES = {
    "bench/README.md": {"unmet": unmet, "machines": machines_of, "targets": targets, "latency": latency,
                        "hot-keys": hot_keys, "workers": workers, "scaling": scaling, "readers": readers,
                        "sessions": sessions, "parts": parts},
    "README.md": {"hot-key": hot_key, "figures": figures_of},
}


def made(document, tables, results):
    """The document's text with its tables made anew."""
    with open(os.path.join(ROOT, document)) as file:
        text = file.read()
    for name, make in tables.items():
        begin, end = ("<!-- bench:%s:%s -->\n" % (name, which) for which in ("begin", "end"))
        parts = text.split(begin)
        if len(parts) != 2 or parts[1].count(end) != 1:
            sys.exit("tables: %s: no place for the table %s: %s" % (document, name, begin.strip()))
        body = "\n".join(make(*results)) + "\n"
        rest = parts[1].split(end)[1]
        gap = "\n" if body.startswith("|") or name in ("unmet", "machines", "hot-key") else ""
        text = parts[0] + begin + gap + body + gap + end + rest
    return text


def names(path):
    figures, missing = {}, 0
    with open(path) as file:
        for row in map(json.loads, filter(None, map(str.strip, file))):
            if "bench" in row:
                figures[row["bench"], row["metric"], row["against"] or "-"] = row
    for name, width in (("targets.txt", 6), ("figures.txt", 5)):
        for row in rows_of(name, width):
            if len(row) == 1 or BROKERED.match(row[1]) or row[3].startswith("rte_reorder"):
                continue
            if not found(figures, *row[1:4]):
                missing += 1
                print("%s: no program measures: %s" % (name, " | ".join(row[1:4])))
    return 1 if missing or not figures else 0


def main():
    what = sys.argv[1:]
    if len(what) == 2 and what[0] == "names":
        return names(what[1])
    if len(what) >= 2 and what[0] == "targets":
        print("\n".join(table_of(target_rows(read_results(what[1:])[0], True), 4)))
        return 0
    if what not in (["write"], ["check"]):
        sys.exit(__doc__)
    results = read_results(sorted(glob.glob(os.path.join(ROOT, "bench/results/*.jsonl"))))
    status = 0
    for document, tables in TABLES.items():
        text = made(document, tables, results)
        with open(os.path.join(ROOT, document), "r+") as file:
            if file.read() == text:
                continue
            if what == ["check"]:
                print("%s is not what the results say; write it by: make bench-tables" % document)
                status = 1
                continue
            file.seek(0)
            file.write(text)
            file.truncate()
    return status


if __name__ == "__main__":
    sys.exit(main())
