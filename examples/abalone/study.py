"""The Abalone study: twenty settings, the loss and the risk of each, and what four classifiers still learn.

    python examples/abalone/study.py abalone.csv            # the table, a map beside it
    python examples/abalone/study.py abalone.csv --quick    # without classifiers

`abalone.csv` is the UCI file with a header (4,177 shells: sex, seven measures, rings). The printed figures are those of one
published experiment; README.md says what can match and what cannot.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.data.schema import Column, Schema
from sfumato.masking.base import Mask

TARGET = "Sex"
LEARNERS = ("tree", "bayes", "knn", "svm")
HEADS = ("DT", "NB", "kNN", "SVM")


@dataclass(frozen=True)
class Setting:
    """A row of the table: its name, the mask, and the published PIL, DR, four accuracies and four areas in percent."""

    name: str
    mask: Mask | None
    published: tuple[float, ...]


def noise(percent: float) -> Mask:
    """Noise whose deviation is that percentage of each attribute's."""
    return sf.AdditiveNoise((percent / 100) ** 2, may_round_back=True, whole=False)


SETTINGS = (
    Setting("Original", None, (0.0, 100.0, 54.22, 54.78, 53.93, 54.56, 71.60, 73.30, 71.60, 70.30)),
    Setting("Noise 3", noise(3), (7.90, 74.56, 54.39, 51.81, 53.36, 54.49, 73.09, 73.41, 71.48, 70.50)),
    Setting("Noise 10", noise(10), (24.65, 38.95, 53.67, 51.88, 51.62, 54.37, 73.24, 73.42, 70.55, 70.49)),
    Setting("Noise 100", noise(100), (73.94, 4.10, 51.04, 52.21, 48.17, 53.20, 72.06, 73.98, 66.47, 69.50)),
    Setting(
        "MultNoise 5",
        sf.MultiplicativeNoise(5, whole=False),
        (13.50, 50.81, 54.44, 51.90, 52.36, 54.39, 73.51, 73.42, 71.22, 70.50),
    ),
    Setting(
        "MultNoise 10",
        sf.MultiplicativeNoise(10, whole=False),
        (24.81, 24.75, 54.20, 51.76, 54.20, 54.32, 73.15, 73.42, 72.67, 70.41),
    ),
    Setting(
        "MultNoise 100",
        sf.MultiplicativeNoise(100, whole=False),
        (74.29, 0.00, 50.73, 52.12, 50.90, 53.27, 71.00, 73.90, 68.10, 69.52),
    ),
    Setting(
        "RS p-dist 2",
        sf.DistributionRankSwapping(2),
        (22.12, 51.12, 53.19, 51.23, 53.99, 54.37, 70.95, 73.24, 74.15, 70.57),
    ),
    Setting(
        "RS p-dist 10",
        sf.DistributionRankSwapping(10),
        (29.00, 23.49, 53.55, 51.85, 54.35, 54.18, 71.84, 73.52, 73.17, 70.40),
    ),
    Setting(
        "RS p-dist 50",
        sf.DistributionRankSwapping(50),
        (39.96, 7.80, 40.63, 50.56, 37.32, 53.20, 59.24, 73.17, 57.75, 69.50),
    ),
    Setting(
        "CBFS k=5",
        sf.Cbfs(5, whole=False),
        (39.05, 13.73, 54.56, 51.64, 54.01, 54.54, 74.10, 73.29, 73.26, 70.62),
    ),
    Setting(
        "CBFS k=25",
        sf.Cbfs(25, whole=False),
        (58.08, 6.65, 53.31, 51.95, 53.05, 54.01, 73.48, 73.10, 74.22, 70.23),
    ),
    Setting(
        "CBFS k=100",
        sf.Cbfs(100, whole=False),
        (63.55, 4.32, 51.30, 51.59, 53.53, 54.10, 71.16, 73.24, 74.56, 70.31),
    ),
    Setting(
        "CBFS 2-sen k=25",
        sf.Cbfs(25, sensitive=TARGET, p=2, whole=False),
        (58.08, 0.55, 53.31, 52.00, 53.05, 54.13, 73.44, 73.10, 74.22, 70.30),
    ),
    Setting(
        "CBFS 3-sen k=25",
        sf.Cbfs(25, sensitive=TARGET, p=3, whole=False),
        (73.0, 0.0, 45.0, 42.0, 43.0, 41.0, 62.0, 61.0, 63.0, 60.0),
    ),
    Setting(
        "CBFS 2-div k=25",
        sf.Cbfs(25, sensitive=TARGET, l=2, whole=False),
        (61.55, 0.40, 52.72, 51.57, 52.84, 54.37, 72.13, 73.24, 73.09, 70.36),
    ),
    Setting(
        "CBFS 3-div k=25",
        sf.Cbfs(25, sensitive=TARGET, l=3, diversity="recursive", c=2, whole=False),
        (86.0, 0.0, 38.0, 39.0, 38.0, 40.0, 60.0, 61.0, 62.0, 63.0),
    ),
    Setting(
        "IPSO g=2",
        sf.Ipso(groups=2, whole=False),
        (65.09, 1.66, 52.81, 51.52, 50.11, 53.39, 72.36, 73.61, 68.06, 69.66),
    ),
    Setting(
        "IPSO g=3",
        sf.Ipso(groups=3, whole=False),
        (58.93, 4.93, 51.45, 51.09, 49.87, 52.41, 69.58, 73.22, 68.24, 68.81),
    ),
    Setting(
        "IPSO g=4",
        sf.Ipso(groups=4, whole=False),
        (58.56, 1.81, 52.05, 51.23, 50.68, 52.52, 70.41, 73.22, 68.52, 69.00),
    ),
)


@dataclass(frozen=True)
class Row:
    """What was measured of a setting, in percent; empty where it was refused."""

    name: str
    measured: tuple[float, ...]
    published: tuple[float, ...]
    refused: str = ""


def read(path: Path) -> sf.Microdata:
    """The shells: the eight numbers are known to an intruder, the sex is confidential."""
    people = sf.read(path)
    columns = {name: Column(role="sensitive" if name == TARGET else "quasi") for name in people.column_names}
    return people.with_schema(Schema(dataset="abalone", columns=columns))


def run(people: sf.Microdata, *, classifiers: bool = True, cache: Any = True, progress: Any = None) -> tuple[list[Row], Any]:
    """Measure every setting; returns the rows and the comparison behind them."""
    masks = {setting.name: setting.mask for setting in SETTINGS if setting.mask is not None}
    also = [{"name": "classification", "target": TARGET}] if classifiers else []
    shown = {} if progress is None else {"progress": progress}
    axes = {"risk": "disclosure_risk", "loss": "pil"}  # as the published experiment has them
    found = sf.compare(people, list(masks.values()), **axes, also=also, runs=1, seed="abalone", cache=cache, **shown)
    by_method = dict(zip(masks, found.points, strict=True))
    rows = []
    for setting in SETTINGS:
        if setting.mask is None:
            some = next((point for point in found.measured if point.parts.get("classification")), None)
            rows.append(Row(setting.name, (0.0, 100 * found.original.risk, *_learnt(some, "original")), setting.published))
            continue
        point = by_method[setting.name]
        if point.refused is not None:
            rows.append(Row(setting.name, (), setting.published, point.refused))
            continue
        rows.append(Row(setting.name, (100 * point.loss, 100 * point.risk, *_learnt(point, "masked")), setting.published))
    return rows, found


def _learnt(point: Any, side: str) -> tuple[float, ...]:
    parts = {} if point is None else point.parts.get("classification", {})
    named = [f"{what} {learner} {side}" for what in ("accuracy", "AUC") for learner in LEARNERS]
    return tuple(100 * parts[name] for name in named) if parts else ()


def printed(rows: list[Row]) -> list[str]:
    """The table: measured, and below it in brackets what was published."""
    heads = ("PIL", "DR", *(f"acc {head}" for head in HEADS), *(f"AUC {head}" for head in HEADS))
    lines = [f"{'method':<17}" + "".join(f"{head:>9}" for head in heads)]
    for row in rows:
        lines.append(f"{row.name:<17}" + ("".join(f"{value:>9.2f}" for value in row.measured) or f"  refused: {row.refused}"))
        lines.append(f"{'':<17}" + "".join(f"{f'({value:.2f})':>9}" for value in row.published))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="abalone.csv")
    parser.add_argument("--quick", action="store_true", help="without the classifiers")
    parser.add_argument("--map", type=Path, default=Path("abalone-map.html"), help="where the map goes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    rows, found = run(read(given.data), classifiers=not given.quick)
    found.save_map(given.map)
    if given.json:
        print(json.dumps([row.__dict__ for row in rows], indent=2))
    else:
        print("\n".join([*printed(rows), "", *found.reasons, "", f"map: {given.map}"]))


if __name__ == "__main__":
    main()
