"""`make bench`: measure every case against its bar and write `benchmarks/results.json`.

A missed bar is printed and kept in the file; it is not an error of the run. With `--only` or `--quick` the file is
left as it is unless `--output` names one.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.adult import NoData
from benchmarks.harness import HEADER, Case, Result, as_json, line, measure, one_thread, row, summary, write

RESULTS = Path(__file__).with_name("results.json")
_QUICK_REPEATS = 3


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure speed against the bars.")
    parser.add_argument("--only", metavar="PATTERN", help="cases whose name matches this regular expression")
    parser.add_argument("--quick", action="store_true", help="three repetitions at most, and no ten million rows")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")
    parser.add_argument("--output", type=Path, help=f"where to write the results (default: {RESULTS.name} beside this file)")
    chosen = parser.parse_args(arguments)
    one_thread()
    warm()
    wanted = re.compile(chosen.only or "", re.IGNORECASE)
    say = _silent if chosen.json else _print
    say(line(HEADER))
    results = []
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        for case in _cases(Path(folder), wanted, quick=chosen.quick):
            results.append(_measured(case, quick=chosen.quick))
            say(line(row(results[-1])))
    say("", summary(results))
    if chosen.json:
        print(as_json(results), end="")
    whole = not (chosen.only or chosen.quick)
    if chosen.output or whole:
        write(results, chosen.output or RESULTS)
    return 0


def _cases(folder: Path, wanted: re.Pattern[str], *, quick: bool) -> Iterator[Case]:
    """The cases asked for; those of a group whose data are missing are skipped, and that is said."""
    from benchmarks import (
        cells,
        comparing,
        counting,
        defaults,
        itemsets,
        large,
        linkage,
        masking,
        measuring,
        noise,
        passengers,
        queries,
        scale,
        searches,
        sessions,
        spark_sessions,
        starting,
        swapping,
        synthesis,
        tables,
    )

    groups: list[Callable[[], Iterator[Case]]] = [
        starting.cases,
        searches.cases,
        defaults.cases,
        measuring.cases,
        queries.cases,
        noise.cases,
        synthesis.cases,
        masking.cases,
        swapping.cases,
        linkage.cases,
        itemsets.cases,
        tables.cases,
        lambda: sessions.cases(folder),
        lambda: large.cases(folder),
    ]
    if not quick:
        groups.append(masking.long_cases)
        groups.append(passengers.cases)
        groups.append(comparing.cases)
        groups.append(linkage.long_cases)
        groups.append(cells.cases)
        groups.append(itemsets.long_cases)
        groups.append(lambda: large.long_cases(folder))
        groups.append(lambda: large.engine_cases(folder))
        groups.append(lambda: queries.long_cases(folder))
        groups.append(lambda: sessions.long_cases(folder))
        groups.append(lambda: spark_sessions.long_cases(folder))
        groups.append(lambda: scale.cases(folder))
        groups.append(lambda: counting.cases(folder))
        groups.append(lambda: scale.long_cases(folder))
    missing: dict[str, None] = {}
    for group in groups:
        try:
            yield from (case for case in group() if wanted.search(case.name))
        except NoData as reason:
            missing[str(reason)] = None
    for reason in missing:
        print(f"skipped cases on real data: {reason}", file=sys.stderr)


def _measured(case: Case, *, quick: bool) -> Result:
    return measure(case, repeats=_QUICK_REPEATS if quick else None)


def warm() -> None:
    """Compile the kernels when the set-up has not."""
    from sfumato.kernels import compiled

    if not compiled.available():
        print("compiling the kernels once …", file=sys.stderr)
        compiled.warm()


def _print(*lines: str) -> None:
    for text in lines:
        print(text, flush=True)


def _silent(*lines: str) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
