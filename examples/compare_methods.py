"""Protect the same generated people with every table search and print what each costs, as a Markdown table.

python examples/compare_methods.py [number of people]
"""

from __future__ import annotations

import sys
import time

import sfumato as sf
from sfumato.data.sample import sample_schema, sample_table

METHODS = [
    sf.Lattice(),
    sf.Lattice(suppression=0.05),
    sf.TopDown(),
    sf.TopDown(partial=True),
    sf.KMember(),
    sf.Mondrian(),
    sf.Mondrian(ranges_everywhere=True),
    sf.Mondrian(relaxed=True, ranges_everywhere=True),
    sf.LocalRecoding(),
    sf.LocalRecoding(step=0.001),
    sf.LeastLoss(),
    sf.CellSuppression(),
]
WANTED = [sf.KAnonymity(5), sf.DistinctLDiversity(3, "diagnosis")]
HEADINGS = ("method", "loss", "range shown", "classes", "records per class", "suppressed", "query error", "CPU s")


def described(method: object) -> str:
    """The call as one would write it: parameters that differ from their defaults."""
    usual = type(method)()
    changed = [f"{name}={value!r}" for name, value in vars(method).items() if getattr(usual, name) != value]
    return f"{type(method).__name__}({', '.join(changed)})"


def compared(people: sf.Microdata) -> list[tuple[str, ...]]:
    """One row per method: loss, classes, their average size, suppressed records, median error of count queries, time."""
    rows = []
    for method in METHODS:
        method.run(people, WANTED)  # a first run, so that no method pays for what is made once
        before = time.process_time()
        method.run(people, WANTED)
        spent = time.process_time() - before
        release = sf.protect(people, WANTED, method, seed=1, utility=["loss", "range_shown", "average_class_size", "query_error"])
        rows.append(
            (
                f"`{described(method)}`",
                f"{release.scores['loss']:.3f}",
                f"{release.scores['range_shown']:.3f}",
                f"{release.details['classes']:,}",
                f"{release.scores['average_class_size']:.1f}",
                f"{release.details['suppressed'] / len(people):.1%}",
                f"{release.scores['query_error']:.2f}",
                f"{spent:.2f}",
            )
        )
    return rows


def main(rows: int = 20_000) -> None:
    """Print the comparison for that many people."""
    people = sf.read(sample_table(rows), sample_schema())
    print("| " + " | ".join(HEADINGS) + " |")
    print("|---" * len(HEADINGS) + "|")
    for row in compared(people):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
