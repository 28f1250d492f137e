"""Every figure with what is hardest to draw: long names, many marks, numbers of every size, the chosen one in every corner."""

from __future__ import annotations

from functools import cache

import numpy as np

from sfumato.report.card import page_head
from sfumato.report.content import drawing
from sfumato.report.figures.class_sizes import class_sizes, risk_profile
from sfumato.report.figures.distributions import Distribution, distributions, loss_per_attribute
from sfumato.report.figures.ledger_budget import AccountBudget, ledger_budget
from sfumato.report.figures.ledger_timeline import TimelineRelease, ledger_timeline
from sfumato.report.figures.risk_utility import Mark, RiskUtility, risk_utility
from sfumato.report.figures.synthetic_quality import synthetic_quality
from sfumato.report.figures.tradeoff import Nodes, frontier, tradeoff
from sfumato.report.markup import element

LONG = "a rather long column name of the questionnaire, number "
METHODS = [f"Method{family}(parameter={step}, columns=(age, income))" for family in range(12) for step in range(5)]


def _tradeoff(chosen: int) -> str:
    risk = [0.02, 0.9, 0.4, 0.05, 0.95]
    loss = [1.0, 0.0, 0.3, 0.05, 0.97]
    return tradeoff(Nodes(risk, loss, [0.0] * 5, chosen))


def _lattice() -> str:
    draw = np.random.default_rng(3)
    return tradeoff(Nodes(1 / draw.integers(1, 5000, 2000), draw.random(2000), np.zeros(2000), chosen=17))


def _map() -> str:
    draw = np.random.default_rng(5)
    risk, loss = draw.random(60), draw.random(60)
    best = set(frontier(risk, loss).tolist())
    marks = [
        Mark(label.split("(")[0], label, float(risk[i]), float(loss[i]), label, i in best, (0.02, 0.03))
        for i, label in enumerate(METHODS)
    ]
    return risk_utility(RiskUtility(marks, (1.0, 0.0), chosen=int(np.argmin(risk + loss)), most_risk=0.7))


def _distributions() -> str:
    ranges = tuple(f"{low} to {low + 12244}" for low in range(1000, 190_000, 12244))
    even, texts = np.full(len(ranges), 1 / len(ranges)), tuple(f"value {LONG}{i}" for i in range(10))
    numeric = Distribution(f"{LONG}1", ranges, even, even, numeric=True)
    return distributions([numeric, Distribution(f"{LONG}2", texts, np.full(10, 0.1), np.full(10, 0.1)), numeric])


def _quality() -> str:
    shares = {"labels": [f"{LONG}{i}" for i in range(5)], "original": [0.2] * 5, "synthetic": [0.1, 0.3, 0.2, 0.2, 0.2]}
    sizes = {"1": {"marginals": 3, "mean": 0.02, "largest": 0.3}, "2": {"marginals": 3, "mean": 0.05, "largest": 0.4}}
    return synthetic_quality({"columns": {f"{LONG}{i}": shares for i in range(3)}, "distance": sizes})


@cache
def figures() -> dict[str, str]:
    """The figures by name."""
    spends = tuple((f"2026-{month:02d}-14T09:26:53+00:00", 0.08) for month in range(1, 13))
    return {
        "sizes": class_sizes([1, 3, 17, 180, 2_500, 70_000, 900_000, *[5] * 12_345, *[12] * 9_999, *[30] * 8_888], k=5),
        "one-size": class_sizes([5], k=5),
        "risks": risk_profile([2, 3, 4, 8, 30, 400, 5000]),
        "losses": loss_per_attribute({f"{LONG}{i}": i / 30 for i in range(31)}),
        "lattice": _lattice(),
        **{f"chosen-{place}": _tradeoff(place) for place in range(5)},
        "map": _map(),
        "distributions": _distributions(),
        "timeline": ledger_timeline(
            [TimelineRelease(f"{LONG}{i}", f"2026-0{i + 1}-03", current=i == 5) for i in range(6)]
            + [TimelineRelease("d", "2026-06-03")]
        ),
        "budget": ledger_budget(
            [
                AccountBudget(f"{LONG}{i}", "a long name of an analyst", 0.1 * i, "ε 0.3333 of 1, δ 1e-07 of 1e-06", spends)
                for i in range(9)
            ]
        ),
        "quality": _quality(),
    }


def gallery() -> str:
    """One page with all of them."""
    shown = [drawing(source, name, f"The figure {name}.") for name, source in figures().items()]
    body = element("body", element("main", element("h1", "Figures"), *shown))
    return "<!DOCTYPE html>\n" + element("html", page_head("Figures"), body, lang="en").source
