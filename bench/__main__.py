"""`python -m bench [NAME …] [--rounds N]`: time the benchmarks and print each as a table of ratios."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import forward, stopped, tape
from bench.measure import in_turn

BENCHMARKS = {"tape": tape, "forward": forward, "stopped": stopped}


def main() -> None:
    """Run the benchmarks that were named, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    console = Console()
    for name in options.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        calls = benchmark.contestants()
        results = [call() for call in calls.values()]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=1e-10)
        timings = in_turn(calls, rounds=options.rounds)
        ours = next(iter(timings.values())).median
        table = Table(title=benchmark.TITLE)
        for heading in ("", "µs a call", "quartiles", "µs an operation", "times the first"):
            table.add_column(heading, justify="left" if not heading else "right")
        for contestant, timing in timings.items():
            table.add_row(
                contestant,
                f"{timing.median * 1e6:.0f}",
                f"{timing.low * 1e6:.0f} - {timing.high * 1e6:.0f}",
                f"{timing.median * 1e6 / benchmark.OPERATIONS:.2f}",
                f"{timing.median / ours:.2f}",
            )
        console.print(table)


if __name__ == "__main__":
    main()
