"""The rows of a run as a text of at most 10,000 characters: outcomes of each part, everything
that was wrong, and the table of times."""

import collections
import datetime
import statistics

MOST = 10_000
# Results of 16-bit types that differ more, relative to their norm, are not of the same function.
FAR = 0.03
BAD = ("wrong", "crashed", "no end", "failed", "timeout")


def _is_bad(row):
    return row.get("outcome", row.get("status")) in BAD or "failed" in row


def is_wrong(rows):
    """Whether something was wrong: a result, a test, a part that did not come to its end by
    itself. What peers refuse, and what time has left over, is not."""
    parts = _last(rows, "part")
    return any(map(_is_bad, rows)) or any(
        row["outcome"] not in ("done", "time limit") for row in parts.values()
    )


def _last(rows, kind):
    """The last row of a kind by label."""
    return {row["label"]: row for row in rows if row["kind"] == kind}


def _counts(rows):
    counts = collections.Counter(row.get("outcome", row.get("status", "failed")) for row in rows)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def _clocks(path, begin, end):
    """The median clock of the multiprocessors, MHz, between two times, and the least."""
    values = []
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                when, clock, *_ = line.split(", ")
                at = datetime.datetime.strptime(when, "%Y/%m/%d %H:%M:%S.%f").timestamp()
                if begin <= at <= end:
                    values.append(float(clock))
            except ValueError:
                continue
    return f"{statistics.median(values):.0f} MHz ({min(values):.0f} least)" if values else ""


def _parts(rows, clocks):
    for name, row in _last(rows, "part").items():
        of_part = [
            r for r in rows if r["part"] == name and r["kind"] not in ("begin", "end", "part")
        ]
        counts = (
            _counts(of_part)
            if any("outcome" in r or "status" in r for r in of_part)
            else f"{len(of_part)} rows"
        )
        speed = _clocks(clocks, row["time"] - row["seconds"], row["time"])
        yield f"{name:12} {row['outcome']:12} {row['seconds']:6.1f} s  {counts}  {speed}"


def _machine(rows):
    for row in _last(rows, "machine").values():
        peaks = ", ".join(f"{timer} {value:.0f}" for timer, value in row["matmul_tflops"].items())
        yield (
            f"{row['gpu']}, driver {row['driver']}, torch {row['torch']}, cuDNN {row['cudnn']}, jax {row['jax']}; "
            f"bf16 product of 8192: {peaks} TFLOP/s; code for {row['chip']}"
        )


def _problems(rows):
    for row in rows:
        if _is_bad(row):
            said = (
                row.get("problems")
                or row.get("output", "").splitlines()[-3:]
                or [row.get("failed", "")]
            )
            yield f"{row['part']}: {row.get('outcome', row.get('status', 'failed'))}: {row['label']}"
            yield from (f"    {str(line)[:160]}" for line in said[:3])


def _speed(rows):
    yield "TFLOP/s sustained and in bursts; peers' times over ours (sustained/burst)"
    for kind in ("speed", "flex"):
        for label, row in _last(rows, kind).items():
            if "ours" not in row:
                continue
            ratios = " ".join(
                f"{peer} {of['sustained']:.2f}/{of['burst']:.2f}"
                for peer, of in row["ratios"].items()
            )
            clock = row["ours"]["sustained"]["sm_mhz"] or ""
            yield f"{label:44.44} {row['tflops']['sustained']:5.0f} {row['tflops']['burst']:5.0f} {clock:>5} {ratios}"


def _refused(rows):
    seen = set()
    for row in rows:
        for peer, times in row.get("peers", {}).items():
            if not (times["difference"] or 0) <= FAR:
                yield f"{peer} on {row['label']}: its result differs from ours by {times['difference']:.2g}"
        for peer, why in row.get("refused", {}).items():
            if (peer, why) not in seen and why not in ("no time", "not asked for"):
                seen.add((peer, why))
                yield f"{peer} on {row['label']}: {why[:140]}"


def _experiments(rows):
    for name, row in _last(rows, "experiment").items():
        if "ratio" not in row:
            yield f"{name}: {row['failed'][:120]}"
            continue
        yield (
            f"{name}: {row['ratio']:.3f} of today's time ({row['least']:.3f} to {row['most']:.3f}), "
            f"predicted {row['predicted']:.2f}: {row['verdict']}"
        )


def _counters(rows):
    for label, row in _last(rows, "counters").items():
        if "counters" not in row:
            yield f"{label}: {row.get('refused') or row['failed']}"
            continue
        found = row["counters"]
        pairs = [f"{name} {found.get(name)} ({row['predicted'][name]})" for name in row["predicted"]]
        others = [
            f"{name} {value:g}" for name, value in found.items()
            if name not in row["predicted"] and name != "Kernel Name"
        ]  # fmt: skip
        yield f"{label}: {found['Kernel Name']}: {', '.join([*pairs, *others])}"


def _said(rows):
    for kind in ("program", "training"):
        for name, row in _last(rows, kind).items():
            yield f"{name}: {row['outcome']}"
            yield from (f"    {line[:150]}" for line in row["said"][-8:])


SECTIONS = (
    ("Wrong", _problems, 2600), ("Times", _speed, 3800), ("Peers", _refused, 900),
    ("Experiments", _experiments, 1300), ("Counters (predicted)", _counters, 900), ("Programs and training", _said, 1200),
)  # fmt: skip


def _cut(lines, most):
    """As many lines as fit, with a count of those that do not."""
    kept, size = [], 0
    lines = list(lines)
    for i, line in enumerate(lines):
        size += len(line) + 1
        if size > most - 40:
            return [*kept, f"({len(lines) - i} more lines: rows.jsonl)"]
        kept.append(line)
    return kept


def make(rows, clocks):
    text = [*_machine(rows), *_parts(rows, clocks)]
    for title, make_lines, most in SECTIONS:
        if lines := _cut(make_lines(rows), most):
            text += ["", f"{title}:", *lines]
    return ("\n".join(text))[: MOST - 1] + "\n"
