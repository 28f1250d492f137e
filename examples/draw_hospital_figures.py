"""Draw the pictures of the hospital's story from the examples on its own page; writes docs/figures/hospital-*.svg.

python examples/draw_hospital_figures.py
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.report.figures.drawing import ACCENT, INK, MUTED, PALE, SECOND, board, finished, tidy_axes

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "hospital.md"
FIGURES = ROOT / "docs" / "figures"
K, L = sf.KAnonymity(5), sf.DistinctLDiversity(3, "diagnosis")
#: What is promised in the first try, between, and in the release.
PROMISES = {
    "k = 5, l = 3": [K, L],
    "and t = 0.3": [K, L, sf.TCloseness(0.3, "diagnosis")],
    "and t = 0.2": [K, L, sf.TCloseness(0.2, "diagnosis")],
}
FIRST, _, LAST = PROMISES
SHARED_BY = {"nobody else": (1, 1), "1 to 3 others": (2, 4), "4 to 9 others": (5, 10), "10 or more others": (11, 10**9)}


def people() -> sf.Microdata:
    """The admissions, as the page makes and describes them: its first two examples, with `inspect` between."""
    made, edited, *_ = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(made, names)
            sf.inspect("admissions.csv", schema_out="admissions.toml")
            exec(edited, names)
            read = sf.read("admissions.csv", schema="admissions.toml")
            return sf.read(read.table(), read.schema)  # the file is about to go
        finally:
            os.chdir(before)


def releases(table: sf.Microdata) -> dict[str, sf.Release]:
    """One release for each of the promises."""
    return {name: sf.protect(table, promised) for name, promised in PROMISES.items()}


def classes_of(release: sf.Release) -> tuple[np.ndarray, np.ndarray]:
    """The class of each released record, and its diagnosis as a number."""
    quasi = [release.data.column(name).to_pylist() for name in ("sex", "born", "postcode", "ward", "cost")]
    _, groups = np.unique(np.array(["|".join(map(str, row)) for row in zip(*quasi, strict=True)]), return_inverse=True)
    _, values = np.unique(np.array(release.data.column("diagnosis").to_pylist()), return_inverse=True)
    return groups, values


def rises(release: sf.Release) -> np.ndarray:
    """How far the belief in its true diagnosis rises for each released record, in points."""
    groups, values = classes_of(release)
    sizes, overall = np.bincount(groups), np.bincount(values) / len(values)
    together = np.zeros((sizes.size, overall.size))
    np.add.at(together, (groups, values), 1)
    return 100 * (together[groups, values] / sizes[groups] - overall[values])


def hospital_classes(table: sf.Microdata, made: dict[str, sf.Release]) -> str:
    """How many patients share their combination with how many others, in the file and in the release."""
    raw = list(
        zip(*(table.table().column(name).to_pylist() for name in ("sex", "born", "postcode", "ward", "cost")), strict=True)
    )
    _, alone = np.unique(np.array(["|".join(map(str, row)) for row in raw]), return_inverse=True)
    groups, _ = classes_of(made[LAST])
    shares = {}
    for name, codes in (("the file without names", alone), ("the release", groups)):
        sizes = np.bincount(codes)[codes]
        shares[name] = [float(((sizes >= low) & (sizes <= high)).mean()) for low, high in SHARED_BY.values()]
    words = [
        f"{name}: " + ", ".join(f"{each} {share:.1%}" for each, share in zip(SHARED_BY, shown, strict=True))
        for name, shown in shares.items()
    ]
    with board(7.2, 3.2) as drawn:
        axes = drawn.axes()
        for which, ((name, shown), colour) in enumerate(zip(shares.items(), (PALE, ACCENT), strict=True)):
            for place, share in enumerate(shown):
                bar = axes.barh(
                    place + 0.36 * (which - 0.5), share, height=0.34, color=colour, label=name if not place else None
                )[0]
                bar.set_gid(f"bar-{which}-{place}")
                drawn.tooltips[f"bar-{which}-{place}"] = f"{name}, {list(SHARED_BY)[place]}: {share:.1%} of the patients"
                _beside(axes, share, place + 0.36 * (which - 0.5), f"{share:.0%}")
        axes.set_yticks(range(len(SHARED_BY)), list(SHARED_BY))
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(len(SHARED_BY) - 0.4, -0.6)
        axes.set_xlim(0, 1.12)
        axes.set_xlabel("share of the patients, by others with the same combination")
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.legend(loc="center right", frameon=False, labelcolor=INK)
        tidy_axes(axes, grid="x")
        return finished(drawn, "hospital-classes", "Patients who share their combination", "; ".join(words))


def hospital_belief(made: dict[str, sf.Release]) -> str:
    """How far the belief in the true diagnosis rises, patient by patient, in the first try and in the release."""
    edges = np.arange(-30, 65, 5)
    words = []
    with board(7.2, 3.4) as drawn:
        axes = drawn.axes()
        for name, colour, said in ((FIRST, SECOND, "first try"), (LAST, ACCENT, "release")):
            rise = rises(made[name])
            shares = np.histogram(rise, bins=edges)[0] / rise.size
            line = axes.step(edges, [*shares, shares[-1]], where="post", color=colour, linewidth=2.2, label=f"{said} ({name})")[0]
            line.set_gid(f"line-{said.split()[0]}")
            words.append(f"{said}: {(rise >= 20).sum()} of {rise.size} patients at 20 points or more")
            drawn.tooltips[f"line-{said.split()[0]}"] = words[-1]
        axes.axvline(20, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            "20 points",
            (20, 1),
            (5, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=11,
            color=MUTED,
        )
        axes.set_xlim(-30, 60)
        axes.set_xlabel("how far the belief in a patient's own diagnosis rises, in points")
        axes.set_ylabel("share of the patients")
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.legend(loc="center right", frameon=False, labelcolor=INK)
        tidy_axes(axes, grid="y")
        return finished(drawn, "hospital-belief", "What the release reveals about a patient's diagnosis", "; ".join(words))


def hospital_choice(table: sf.Microdata, made: dict[str, sf.Release]) -> str:
    """What the three promises cost and what they hold back."""
    linkage = {name: sf.attack(release, register=table, only=["Linkage"])[0].success for name, release in made.items()}
    panels: Sequence[tuple[str, list[float], str]] = (
        ("granularity kept", [1 - release.scores["loss"] for release in made.values()], "{:.2f}"),
        ("chance to pick\nthe right record", list(linkage.values()), "{:.1%}"),
        ("patients at 20\npoints or more", [float((rises(release) >= 20).sum()) for release in made.values()], "{:.0f}"),
    )
    words = []
    with board(7.2, 2.9) as drawn:
        for which, (axes, (title, values, shape)) in enumerate(
            zip(drawn.figure.subplots(1, 3, sharey=True), panels, strict=True)
        ):
            for place, value in enumerate(values):
                bar = axes.barh(place, value, height=0.6, color=ACCENT if place == len(values) - 1 else PALE)[0]
                bar.set_gid(f"bar-{which}-{place}")
                drawn.tooltips[f"bar-{which}-{place}"] = f"{list(made)[place]}: {' '.join(title.split())} {shape.format(value)}"
                words.append(drawn.tooltips[f"bar-{which}-{place}"])
                _beside(axes, value, place, shape.format(value))
            axes.set_title(title, loc="left", fontsize=12, color=INK)
            axes.set_xlim(0, max(values) * 1.5)
            axes.set_xticks([])
            axes.set_yticks(range(len(made)), list(made))
            axes.set_ylim(len(made) - 0.5, -0.5)
            axes.tick_params(axis="y", labelcolor=INK)
            tidy_axes(axes, grid="x")
        return finished(drawn, "hospital-choice", "Three promises: what is kept, what is held back", "; ".join(words))


def _beside(axes: object, value: float, place: float, text: str) -> None:
    axes.annotate(text, (value, place), (4, 0), textcoords="offset points", va="center", fontsize=11, color=INK)  # type: ignore[attr-defined]


def figures() -> dict[str, str]:
    """Every picture of the page by its name."""
    table = people()
    made = releases(table)
    return {
        "hospital-classes": hospital_classes(table, made),
        "hospital-belief": hospital_belief(made),
        "hospital-choice": hospital_choice(table, made),
    }


def main() -> None:
    """Write them."""
    for name, drawn in figures().items():
        (FIGURES / f"{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
