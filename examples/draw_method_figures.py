"""Draw the figures of the pages about methods and theory; writes docs/figures/.

python examples/draw_method_figures.py
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.anonymity.search.base import pose
from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.sweep import Sweep
from sfumato.data.sample import sample_schema, sample_table
from sfumato.report.figures.drawing import ACCENT, GRID, INK, MUTED, PALE, PAPER, SECOND, board, finished, tidy_axes

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
#: What examples/compare_methods.py printed for 20,000 people; see docs/methods/choosing.md.
MEASURED = [
    ("Lattice()", 0.634),
    ("Lattice(suppression=0.05)", 0.349),
    ("CellSuppression()", 0.311),
    ("TopDown()", 0.238),
    ("Mondrian()", 0.217),
    ("TopDown(partial=True)", 0.185),
    ("KMember()", 0.164),
    ("Mondrian(ranges_everywhere=True)", 0.142),
    ("LeastLoss()", 0.135),
    ("LocalRecoding()", 0.135),
    ("LocalRecoding(step=0.001)", 0.133),
]


#: Risk and what chance gives of it, with three 0/1 columns read as numbers and as codes: `sf.compare` on the people of
#: benchmarks/comparing.py; see docs/risk.md.
RISKS: list[tuple[str, tuple[float, float], tuple[float, float]]] = [
    ("RankSwapping(p=25)", (0.3355, 0.2792), (0.1449, 0.0582)),
    ("Mdav(k=3)", (0.5045, 0.2782), (0.3981, 0.0564)),
    ("KAnonymity(k=10)", (0.3579, 0.2755), (0.1736, 0.0509)),
]


def chance() -> str:
    """Risk of the same masks under two schemas, and the part of it that chance gives."""
    bars = [
        (f"{name}, {schema}", risk, floor)
        for name, *pairs in RISKS
        for schema, (risk, floor) in zip(("numbers", "codes"), pairs, strict=True)
    ]
    with board(7.2, 3.2) as drawn:
        axes = drawn.axes()
        words = []
        for place, (name, risk, floor) in enumerate(bars):
            gain = (risk - floor) / (1 - floor)
            words.append(f"{name}: risk {risk:.1%}, by chance {floor:.1%}, gain {gain:.1%}")
            for left, width, colour, part in ((0.0, floor, PALE, "chance"), (floor, risk - floor, ACCENT, "above")):
                bar = axes.barh(place, width, left=left, height=0.62, color=colour)[0]
                bar.set_gid(f"{part}-{place}")
                drawn.tooltips[f"{part}-{place}"] = words[-1]
            axes.annotate(f"gain {gain:.1%}", (risk, place), (5, 0), textcoords="offset points", va="center", fontsize=11)
        axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.set_xlim(0, 0.65)
        axes.set_xlabel("risk; the pale part is what chance gives")
        tidy_axes(axes, grid="x")
        return finished(drawn, "chance", "Risk and chance under two schemas", "; ".join(words))


def methods() -> str:
    """Loss of the same people under every search."""
    with board(7.2, 3.6) as drawn:
        axes = drawn.axes()
        for place, (name, loss) in enumerate(MEASURED):
            bar = axes.barh(place, loss, height=0.62, color=ACCENT if name == "LeastLoss()" else PALE)[0]
            bar.set_gid(f"bar-{place}")
            drawn.tooltips[f"bar-{place}"] = f"{name}: loss {loss:.3f}"
            axes.annotate(f"{loss:.3f}", (loss, place), (5, 0), textcoords="offset points", va="center", fontsize=11)
        axes.set_yticks(range(len(MEASURED)), [name for name, _ in MEASURED])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(len(MEASURED) - 0.5, -0.5)
        axes.set_xlim(0, 0.72)
        axes.set_xlabel("loss (0: as in the original, 1: nothing left)")
        tidy_axes(axes, grid="x")
        return finished(drawn, "methods", "Loss by method", "; ".join(f"{name} {loss:.3f}" for name, loss in MEASURED))


def swept(people: sf.Microdata) -> tuple[Sweep, Any]:
    """A sweep over a lattice small enough to draw."""
    problem = pose(people, [sf.KAnonymity(20), sf.EntropyLDiversity(3, "diagnosis")])
    tables = NodeTables(problem.table, problem.promises, problem.promises.totals())
    sweep = Sweep(tables, problem.allowed(0.05))
    return sweep, sweep.run()


def lattice() -> str:
    """The nodes of a small lattice by height: checked, ruled out unseen, chosen."""
    schema = sample_schema()
    kept = ("age", "sex", "education")
    columns = {name: c if name in kept else c.model_copy(update={"role": "plain"}) for name, c in schema.columns.items()}
    sweep, found = swept(sf.read(sample_table(3_000), schema.replace(columns=columns)))
    nodes = list(product(*(range(size) for size in sweep.shape)))
    heights = [sum(node) for node in nodes]
    place = {}
    for height in range(max(heights) + 1):
        row = [node for node in nodes if sum(node) == height]
        for position, node in enumerate(row):
            place[node] = (position - (len(row) - 1) / 2, height)
    with board(7.2, 4.6) as drawn:
        axes = drawn.axes()
        for low in nodes:
            for a in range(len(low)):
                high = (*low[:a], low[a] + 1, *low[a + 1 :])
                if high in place:
                    axes.plot(*zip(place[low], place[high], strict=True), color=GRID, linewidth=0.8, zorder=1)
        kinds = {"checked": [], "ruled out without a look": [], "the optimum": []}
        for node in nodes:
            kind = "the optimum" if node == found.levels else "checked" if node in sweep.checked else "ruled out without a look"
            kinds[kind].append(node)
        looks = {"checked": (ACCENT, ACCENT), "ruled out without a look": (PAPER, PALE), "the optimum": (SECOND, SECOND)}
        for number, (kind, members) in enumerate(kinds.items()):
            inside, edge = looks[kind]
            x, y = zip(*(place[node] for node in members), strict=True)
            marks = axes.scatter(
                x, y, s=240, c=inside, edgecolors=edge, linewidths=1.4, zorder=2, label=f"{kind} ({len(members)})"
            )
            marks.set_gid(f"nodes-{number}")
            drawn.tooltips[f"nodes-{number}"] = [f"levels {node}: {kind}" for node in members]
        for node in nodes:
            dark = node in sweep.checked
            axes.annotate(
                "".join(map(str, node)), place[node], ha="center", va="center", fontsize=8, color=PAPER if dark else MUTED
            )
        axes.set_axis_off()
        axes.legend(loc="lower left", markerscale=0.6, frameon=False, fontsize=11, labelcolor=INK)
        counts = ", ".join(f"{len(members)} {kind}" for kind, members in kinds.items())
        return finished(drawn, "lattice", "A lattice of level vectors, most general on top", f"{len(nodes)} nodes: {counts}.")


def mondrian() -> str:
    """The regions of a partition of two numbers."""
    import pyarrow as pa
    from matplotlib.patches import Rectangle

    rng = np.random.default_rng(4)  # noqa: TID251  (a picture, no protection)
    age = np.clip(rng.normal(45, 14, 160), 20, 79).astype(int)
    income = np.clip(age * 0.6 + rng.normal(20, 12, 160), 5, 89).astype(int)
    columns = {name: sf.Column(role="quasi", type="integer") for name in ("age", "income")}
    people = sf.read(pa.table({"age": age, "income": income}), sf.Schema(columns=columns))
    release = sf.protect(people, [sf.KAnonymity(8)], sf.Mondrian(), seed=1)
    regions = sorted({(row["age"], row["income"]) for row in release.data.to_pylist()}, key=str)
    with board(7.2, 4.2) as drawn:
        axes = drawn.axes()
        for number, (ages, incomes) in enumerate(regions):
            (left, right), (low, high) = (bounds(text) for text in (ages, incomes))
            mark = axes.add_patch(
                Rectangle((left, low), right - left, high - low, facecolor=PALE, alpha=0.35, edgecolor=ACCENT, linewidth=1.2)
            )
            mark.set_gid(f"region-{number}")
            drawn.tooltips[f"region-{number}"] = f"age {ages}, income {incomes}"
        axes.scatter(age + 0.5, income + 0.5, s=12, color=INK, linewidths=0, zorder=3)
        axes.set_xlabel("age")
        axes.set_ylabel("income")
        tidy_axes(axes, grid="y")
        return finished(
            drawn, "mondrian", "Mondrian's regions", f"160 people in {len(regions)} regions of at least 8 people each."
        )


def bounds(text: Any) -> tuple[int, int]:
    """The extent of a released number or range."""
    if isinstance(text, str) and text.startswith("["):
        low, high = text.strip("[)").split(",")
        return int(low), int(high)
    return int(text), int(text) + 1


def water_filling() -> str:
    """Counts of a class cut at a level: the most even part of that size."""
    counts, level = [14, 9, 6, 3, 2], 7.0
    with board(7.2, 3.2) as drawn:
        axes = drawn.axes()
        for place, count in enumerate(counts):
            kept = min(count, level)
            axes.bar(place, kept, width=0.7, color=ACCENT).patches[0].set_gid(f"kept-{place}")
            drawn.tooltips[f"kept-{place}"] = f"value {place + 1}: {kept:g} of {count} records can stay"
            axes.bar(place, count - kept, width=0.7, bottom=kept, color=PAPER, edgecolor=PALE, linewidth=1.2)
        axes.axhline(level, color=SECOND, linewidth=1.4, linestyle=(0, (4, 3)))
        axes.annotate("level", (4.45, level), (0, 4), textcoords="offset points", fontsize=11, color=SECOND, ha="right")
        axes.set_xticks(range(len(counts)), [f"value {place + 1}" for place in range(len(counts))])
        axes.set_ylabel("records")
        axes.set_xlim(-0.6, 4.6)
        tidy_axes(axes, grid="y")
        return finished(
            drawn, "water-filling", "The most even part of a class", "Five counts cut at level 7: what is above must go."
        )


def main() -> None:
    """Write all of them."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    drawings = {"methods": methods, "chance": chance, "lattice": lattice, "mondrian": mondrian, "water-filling": water_filling}
    for name, draw in drawings.items():
        (FIGURES / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
