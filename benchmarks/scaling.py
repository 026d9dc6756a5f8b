"""Extrapolate streams on Dask to 64 workers, from costs measured on one machine.

`dask_stream.py --json benchmarks/scaling.json` measures them. The simulation (`scaling_model.py`)
is held against the measured speed of 1 and 2 workers, then has up to 64 workers, with a staleness
of one less, on a network of 10 Gbit/s. "50 %" is the number of workers up to which at least half of
their speed is of use; "limit" is what is busiest there.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bnpstream.distributed.partitions import READ_ROWS
from measure import arguments, save
from scaling_chart import draw
from scaling_model import Costs, Line, Outcome, simulate

STORED = Path(__file__).with_name("scaling.json")
WORKERS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
LONG = 8
"""Partitions so many times larger than the largest that was measured."""
GIGABIT = 1e9 / 8
BILLION = 1e9


def by_part(figures: dict[str, Any]) -> dict[int, Costs]:
    """Return costs by rows of a partition."""
    runs = [run for run in figures["news"]["runs"] if run["workers"] == 2]
    rows = figures["news"]["alone"]["npz"]["rows"]
    send = float(np.mean([run["sending"] * run["part"] / rows for run in runs]))
    played = figures["costs"]["played"]
    found = {}
    for part in sorted({run["part"] for run in played}):
        same = [run for run in played if run["part"] == part]
        found[part] = Costs.of(same, figures["costs"]["dask"], send)
    return found


def growth(costs: dict[int, Costs]) -> float:
    """Return the power of the rows of a partition with which changes grow."""
    rows = np.log(list(costs))
    sizes = np.log([[c.size.at(1), c.update] for c in costs.values()])
    return float(np.polyfit(rows, sizes.mean(axis=1), 1)[0])


def validate(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the measured seconds of clusters on this machine, and those of the simulation.

    The driver works on the same cores as the workers: it takes no less than all seconds of CPU,
    shared among the cores.
    """
    cores, news = figures["machine"]["cores"], figures["news"]
    found = []
    for run in news["runs"]:
        costs = by_part(figures).get(run["part"])
        if costs is None or run["staleness"] == 0:
            continue
        n = news["alone"]["npz"]["rows"] // run["part"]
        slower = (news["alone"][run["form"]]["cpu"] - news["alone"]["npz"]["cpu"]) / n
        costs = replace(costs, work=costs.work + slower, bandwidth=np.inf, latency=0.0)
        outcome = simulate(costs, run["workers"], run["staleness"], n)
        seconds = n * costs.part / outcome.rows_a_second
        worked = sum(outcome.busy[name] for name in ("driver", "scheduler"))
        worked = seconds * (worked + run["workers"] * outcome.busy["workers"])
        head = READ_ROWS / costs.part  # is absorbed by one, and then not by another
        simulated = max(seconds, worked / cores) * (1.0 - head / n) + head * costs.alone
        keys = ("form", "part", "workers", "staleness", "wall")
        found.append({key: run[key] for key in keys} | {"simulated": simulated})
    return found


def speeds(costs: Costs, alone: float, staleness: Any = None) -> list[dict[str, Any]]:
    """Return a record for every number of workers."""
    found = []
    for workers in WORKERS:
        outcome = simulate(costs, workers, staleness(workers) if staleness else workers - 1)
        found.append(record(outcome, workers, alone))
    return found


def record(outcome: Outcome, workers: int, alone: float) -> dict[str, Any]:
    return {
        "workers": workers,
        "rows_a_second": outcome.rows_a_second,
        "efficiency": outcome.rows_a_second / (workers * alone),
        "limit": outcome.limit,
        "busy": outcome.busy,
    }


def half(found: list[dict[str, Any]]) -> int:
    """Return the number of workers up to which half of their speed is of use."""
    points = [(r["efficiency"], r["workers"]) for r in found]
    return round(float(np.interp(-0.5, [-e for e, _ in points], [w for _, w in points])))


def variants(costs: dict[int, Costs], base: int) -> dict[str, tuple[Costs, Any]]:
    """Return what might move the point where it stops scaling."""
    power, usual = growth(costs), costs[base]
    largest = costs[max(costs)]
    return {
        f"parts of {base:,d}": (usual, None),
        **{f"parts of {part:,d}": (c, None) for part, c in costs.items() if part != base},
        f"parts of {LONG * largest.part:,d}, extrapolated": (largest.larger(LONG, power), None),
        "staleness 2 W - 1": (usual, lambda workers: 2 * workers - 1),
        "1 Gbit/s": (replace(usual, bandwidth=GIGABIT), None),
        "25 Gbit/s": (replace(usual, bandwidth=25 * GIGABIT), None),
        "half as many entries a delta": (usual.sparser(0.5), None),
        "updates from worker to worker": (replace(usual, bandwidth=np.inf, byte=0.0), None),
        "matching takes half as long": (replace(usual, resolve=usual.resolve.times(0.5)), None),
        "nothing to match": (replace(usual, resolve=Line(usual.update, 0.0)), None),
        "four drivers below one": (tree(usual, 4, power), None),
    }


def tree(costs: Costs, fan: int, power: float) -> Costs:
    """Return costs where drivers below the driver add up the changes of `fan` partitions first.

    The driver's work on the sum is that on a partition so much larger, and so are the updates.
    """
    share = fan**power / fan
    return costs.sparser(share)


def main() -> None:
    """Print the tables; draw the picture."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--costs", type=Path, default=STORED, help="JSON file of dask_stream.py")
    parser.add_argument("--part", type=int, default=14_000, help="rows of the usual partition")
    parser.add_argument("--chart", type=Path, help="draw the picture into this file")
    options = parser.parse_args()
    figures = json.loads(options.costs.read_text())
    costs = by_part(figures)
    alone = options.part / costs[options.part].alone
    print(f"costs of {options.costs.name}: {figures['machine']}; one process {alone:,.0f} rows/s")
    for part, c in costs.items():
        print(
            f"  parts of {part:6,d}: a worker's own {1e3 * c.work:.0f} ms, copy "
            f"{1e3 * c.copy.at(1):.0f} + {1e3 * c.copy.slope:.1f} an update, update "
            f"{1e3 * c.update:.1f}; driver {1e3 * c.resolve.at(1):.0f} + "
            f"{1e3 * c.resolve.slope:.1f} a partition behind; {c.size.at(1) / 1e3:.0f} kB"
        )
    print(f"  changes grow with the power {growth(costs):.2f} of rows")
    checks = validate(figures)
    for check in checks:
        print(
            f"  {check['form']}, parts of {check['part']:6,d}, {check['workers']} workers, "
            f"staleness {check['staleness']}: measured {check['wall']:.2f} s, simulated "
            f"{check['simulated']:.2f} s ({check['simulated'] / check['wall'] - 1:+.0%})"
        )
    results = {}
    for name, (c, staleness) in variants(costs, options.part).items():
        found = results[name] = speeds(c, alone, staleness)
        best = max(found, key=lambda r: r["rows_a_second"])
        at = {r["workers"]: r for r in found}
        print(
            f"{name:36s} "
            + " ".join(f"{at[w]['rows_a_second'] / 1e3:6,.0f}" for w in (1, 2, 4, 8, 16, 32, 64))
            + f" thousand/s   50 % to {half(found):2d}, limit {at[64]['limit']}; best with "
            f"{best['workers']:2d}: a billion in {BILLION / best['rows_a_second'] / 3600:.1f} h"
        )
    busy = results[f"parts of {options.part:,d}"]
    for r in busy:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in r["busy"].items())
        print(f"  {r['workers']:2d} workers: efficiency {r['efficiency']:.0%}; {shares}")
    if options.chart:
        draw(figures, results, alone, options.part, options.chart)
    save({"validation": checks, "simulated": results}, options.json)


if __name__ == "__main__":
    main()
