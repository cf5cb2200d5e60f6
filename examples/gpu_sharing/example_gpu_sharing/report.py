"""What came of the runs beside the authors' results: the paper's table, its curves, and a check of every seed."""

import csv
from collections import defaultdict

import numpy as np

from example_gpu_sharing.experiment import DRAWN, FIRST

N_GPUS = 6_212
"""Of the cluster in the paper, which its tables count in."""
ORDER = ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
ALLOC_TOLERANCE, AMOUNT_TOLERANCE, RANDOM_TOLERANCE = 0.011, 0.0, 0.4
"""Percent of the GPUs; Random's draws are its own, so its mean over the seeds is compared."""
WORDS = {FIRST: "first name of equals", DRAWN: "equals drawn"}


def _grouped(results):
    """Results of a (trace, ties, policy) by seed."""
    found = defaultdict(dict)
    for task, result in results.items():
        found[task.trace, task.ties, task.policy][task.seed] = result
    return found


def _csv(folder, name):
    with (folder / name).open(newline="") as lines:
        yield from csv.DictReader(lines)


def table(results, expected=None):
    """Lines: allocated percent and unallocated GPUs at load 100 for each trace, way with equals and policy."""
    theirs = {}
    if expected is not None:
        theirs = {
            (row["trace"], row["policy"]): float(row["alloc_pct_at_100"])
            for row in _csv(expected, "headline.csv")
        }
    lines, shown = [], None
    for key, by_seed in sorted(
        _grouped(results).items(), key=lambda item: (*item[0][:2], ORDER.index(item[0][2]))
    ):
        trace, ties, policy = key
        if shown != (trace, ties):
            shown = trace, ties
            lines += ["", f"{trace}, {WORDS[ties]}: load 100, mean of the seeds"]
            head = f"{'policy':<14}{'seeds':>6}{'allocated %':>13}{'sd':>6}{'unallocated GPUs':>18}"
            lines.append(head + (f"{'the authors %':>15}{'difference':>12}" if expected is not None else ""))
        alloc = np.array(
            [result.alloc[100] for result in by_seed.values() if not np.isnan(result.alloc[100])]
        )
        if not len(alloc):
            continue
        gpus = (100 - alloc.mean()) * N_GPUS / 100
        sd = alloc.std(ddof=1) if len(alloc) > 1 else 0.0
        line = f"{policy:<14}{len(alloc):>6}{alloc.mean():>13.2f}{sd:>6.2f}{gpus:>18.1f}"
        if (trace, policy) in theirs:
            line += f"{theirs[trace, policy]:>15.2f}{alloc.mean() - theirs[trace, policy]:>+12.2f}"
        lines.append(line)
    return lines[1:]


def check(results, expected):
    """Lines that tell the largest difference from the authors' figures, policy by policy, and whether all hold.

    Runs with equals drawn are left out: the authors have none.
    """
    columns = {"alloc": "alloc", "frag_amount": "frag_amount", "frag_ratio": "frag_ratio"}
    worst = defaultdict(lambda: dict.fromkeys(columns, (0.0, "")))
    n_runs, n_values, equal = defaultdict(int), defaultdict(int), defaultdict(int)
    random_means = defaultdict(list)
    for row in _csv(expected, "per_seed.csv"):
        trace, policy, seed = row["trace"], row["policy"], int(row["seed"])
        result = next((one for task, one in results.items() if task == (trace, policy, seed, FIRST)), None)
        if result is None:
            continue
        n_runs[policy] += 1
        for name, text in row.items():
            kind, _, load = name.rpartition("_")
            if kind not in columns:
                continue
            ours = float(getattr(result, kind)[int(load)])
            if kind == "frag_ratio":
                ours = round(ours, 4)
            off = round(abs(ours - float(text)), 6)
            n_values[policy] += 1
            equal[policy] += off == 0
            if policy == "Random":
                if kind == "alloc":
                    random_means[trace, int(load)].append((ours, float(text)))
            elif not off <= worst[policy][kind][0]:
                worst[policy][kind] = off, f"{trace} {seed} {name}"
    lines, good = [], bool(n_runs)
    for policy in ORDER:
        if policy == "Random" and random_means:
            (off, ours, theirs), (trace, load) = max(
                ((abs(np.mean(pairs, axis=0) @ [1, -1]), *np.mean(pairs, axis=0)), key)
                for key, pairs in random_means.items()
            )
            good &= off <= RANDOM_TOLERANCE
            lines.append(
                f"Random: {n_runs[policy]} runs; means of the seeds differ by at most {off:.3f}: "
                f"{ours:.2f}, not {theirs:.2f} ({trace}, load {load})"
            )
        elif n_runs[policy]:
            found = worst[policy]
            good &= found["alloc"][0] <= ALLOC_TOLERANCE and found["frag_amount"][0] <= AMOUNT_TOLERANCE
            said = "; ".join(
                f"{kind} {off:g}" + (f" ({where})" if where else "") for kind, (off, where) in found.items()
            )
            equals = f"{equal[policy]} of {n_values[policy]} values equal"
            lines.append(f"{policy}: {n_runs[policy]} runs, {equals}; at most off: {said}")
    lines.append("every figure holds" if good else "not every figure holds")
    return lines, good


# ---- curves

COLOURS = dict(zip(ORDER, ("#7f7f7f", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#d62728"), strict=True))
WIDTH, HEIGHT, MARGIN, GAP = 460, 300, 50, 70


def curves(results, trace, expected=None):
    """SVG text: unallocated GPUs over load 75 to 120, medians of the seeds, and fragmentation over 0 to 120, means.

    Solid lines are the runs with the first name of equals, dotted ones those with equals drawn, dashed the authors'.
    """
    found = _grouped(results)
    if not any(key[0] == trace for key in found):
        raise ValueError(f"no results of trace {trace}")
    theirs = defaultdict(dict)
    for row in _csv(expected, "curves.csv") if expected is not None else ():
        if row["trace"] == trace:
            theirs[row["policy"]][int(row["arrived_pct"])] = (
                float(row["alloc_median"] or "nan"), float(row["frag_ratio_mean"] or "nan"),
            )  # fmt: skip
    panels = [
        (
            "Unallocated GPUs, % of all",
            range(75, 121),
            30,
            lambda one: 100 - one.alloc,
            np.median,
            0,
            lambda pct: 100 - pct,
        ),
        (
            "Fragmented, % of idle GPUs",
            range(121),
            100,
            lambda one: one.frag_ratio,
            np.mean,
            1,
            lambda pct: pct,
        ),
    ]
    parts = []
    for number, (title, loads, top, of, middle, column, shown) in enumerate(panels):
        left = MARGIN + number * (WIDTH + GAP)
        parts += _axes(title, left, loads, top)
        for policy in ORDER:
            dashes = {FIRST: "", DRAWN: ' stroke-dasharray="1 4" stroke-linecap="round"'}
            for ties, dash in dashes.items():
                runs = found.get((trace, ties, policy))
                if runs:
                    values = middle([of(one) for one in runs.values()], axis=0)
                    parts.append(_line(left, loads, top, values, policy, dash))
            if policy in theirs:
                values = np.full(131, np.nan)
                for load, both in theirs[policy].items():
                    values[load] = shown(both[column])
                parts.append(_line(left, loads, top, values, policy, ' stroke-dasharray="7 5" opacity="0.6"'))
    for place, policy in enumerate(ORDER):
        x = MARGIN + place * 130
        parts.append(f'<path d="M{x} {HEIGHT + 75}h24" stroke="{COLOURS[policy]}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 30}" y="{HEIGHT + 79}">{policy}</text>')
    parts.append(
        f'<text x="{MARGIN}" y="{HEIGHT + 104}">Solid: first name of equals. Dotted: equals drawn. '
        "Dashed: the authors.</text>"
    )
    width, height = 2 * (WIDTH + MARGIN) + GAP - 20, HEIGHT + 120
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="13" role="img"><title>{trace}: GPUs over load, by policy</title>'
        f'<rect width="{width}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _axes(title, left, loads, top):
    yield f'<text x="{left}" y="18" font-weight="bold">{title}</text>'
    for step in range(6):
        value = top * step // 5
        y = _y(value, top)
        yield f'<path d="M{left} {y}h{WIDTH}" stroke="#ddd"/>'
        yield f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{value}</text>'
    for load in [load for load in loads if load % (10 if len(loads) < 60 else 20) == 0]:
        x = _x(left, loads, load)
        yield f'<text x="{x}" y="{HEIGHT + 42}" text-anchor="middle">{load}</text>'
    yield f'<text x="{left + WIDTH / 2}" y="{HEIGHT + 58}" text-anchor="middle">GPUs asked for, % of all</text>'


def _x(left, loads, load):
    return round(left + WIDTH * (load - loads[0]) / (loads[-1] - loads[0]), 1)


def _y(value, top):
    return round(25 + HEIGHT * (1 - min(max(value / top, 0), 1)), 1)


def _line(left, loads, top, values, policy, style):
    points = " ".join(
        f"{_x(left, loads, load)},{_y(values[load], top)}" for load in loads if not np.isnan(values[load])
    )
    return f'<polyline points="{points}" fill="none" stroke="{COLOURS[policy]}" stroke-width="1.8"{style}/>'
