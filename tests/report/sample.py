"""A release card with everything in it, and the texts that must never act."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from sfumato.core.certificate import Certificate, Claim
from sfumato.core.view import AttackResult, Score
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Schema
from sfumato.report.content import Answer, CardContent
from sfumato.report.figures.class_sizes import class_sizes, risk_profile
from sfumato.report.figures.distributions import compared, distributions, loss_per_attribute
from sfumato.report.figures.ledger_budget import AccountBudget, ledger_budget
from sfumato.report.figures.ledger_timeline import TimelineRelease, ledger_timeline
from sfumato.report.figures.tradeoff import Nodes, tradeoff

#: Markup, attribute and script canaries, a closing tag for every element that switches parsing, terminal
#: escapes and
#: characters that reorder text.
CANARY = "<script>canary()</script>\"onload='canary()' </style></title></svg><!-- ]]> &lt; $x^2$ \x1b[31m\u202eevil\x00"

SIZES = np.array([5, 5, 6, 7, 9, 12, 14, 20, 33, 48, 51, 120, 340, 900])


def certificate() -> Certificate:
    return Certificate(
        dataset="people",
        created="2026-03-14T09:26:53+00:00",
        claims=(
            Claim(
                guarantee="KAnonymity",
                parameters={"k": 5},
                promised="every combination of quasi-identifiers is shared by at least 5 records",
                measured=5,
                holds=True,
                evidence="output",
                protects="identity disclosure",
            ),
            Claim(
                guarantee="TCloseness(disease)",
                parameters={"t": 0.2, "attribute": "disease"},
                promised="the distribution of 'disease' in every class is within 0.2 of the original",
                measured=0.1834,
                holds=True,
                evidence="output+reference",
                protects="attribute disclosure",
                also_measured={"against_the_released_rows": 0.1799},
                reference="sha256:" + "ab" * 32,
            ),
        ),
        method={"name": "Lattice", "suppression": 0.05},
        schema={
            "dataset": "people",
            "columns": {"age": {"role": "quasi"}, "zip": {"role": "quasi"}, "disease": {"role": "sensitive"}},
        },
        files={"data.parquet": {"sha256": "cd" * 32, "bytes": 123456, "rows": 1570}},
        versions={"sfumato": "0.1.0", "python": "3.11"},
        fingerprint="hmac-sha256:" + "ef" * 32,
        randomness="none",
        private=True,
        ledger="12" * 32,
        composition={"earlier_releases": 1, "worst_remaining_group": 4, "finding": "Nobody is singled out."},
        attacks=(
            {
                "attack": "Homogeneity",
                "success": 0.0,
                "baseline": 0.0,
                "interval": [0.0, 0.002],
                "targets": 1570,
                "finding": "0 of 14 classes show a single value.",
            },
        ),
        transparency={"hierarchies": "published with the release"},
        notices=("A column was dropped because it names people.",),
    )


def figures(name: str = "age") -> dict[str, str]:
    tree = Hierarchy.from_levels([[str(age), f"[{age // 10 * 10}, {age // 10 * 10 + 10})", "*"] for age in range(20, 60)])
    table = pa.table({name: ["[20, 30)"] * 60 + ["*"] * 40})
    released = ReleasedTable(table, Schema.of(quasi=[name]), {name: tree}, 100)
    counts = Counter(str(20 + i % 17) for i in range(100))
    return {
        "class_sizes": class_sizes(SIZES, k=5),
        "loss_per_attribute": loss_per_attribute({name: 0.31, "zip": 1.0, "sex": 0.0}, levels={name: name}),
        "risk_profile": risk_profile(SIZES),
        "tradeoff": tradeoff(
            Nodes(
                [0.2, 0.5, 1.0, 0.01],
                [0.3, 0.2, 0.0, 1.0],
                [0.0, 0.05, 0.0, 0.0],
                0,
                names=[name, "b", "c", "d"],
            )
        ),
        "distributions": distributions([compared(name, dict(counts), released)]),
        "ledger_timeline": ledger_timeline(
            [TimelineRelease(name, "2026-01-03", name), TimelineRelease(name, "2026-03-14T09:26:53+00:00", name, current=True)]
        ),
        "ledger_budget": ledger_budget(
            [
                AccountBudget(name, name, 0.4, name, (("2026-03-14T09:26:53+00:00", 0.1), ("2026-03-14T11:00:00+00:00", 0.3))),
                AccountBudget(name, "bob", 1.0, name),
            ]
        ),
    }


@cache
def content() -> CardContent:
    return CardContent(
        certificate=certificate(),
        title="People, first release",
        scored=True,
        scores=(
            Score(
                "loss",
                0.1798,
                "lower",
                "share of detail that was given up",
                {"age": 0.31},
                uses_original=False,
            ),
            Score("query_error", 0.0421, "lower", "OWNERSCORE median relative error of count queries"),
        ),
        figures=figures(),
        risk={"prosecutor_highest": 0.2, "prosecutor_average": 0.0089, "uniques": 0},
        owner_risks=(Score("OWNERRISK", 0.003, "lower", "share linked", floor=0.001, interval=(0.001, 0.005)),),
        attacks=(AttackResult("Skewness", 0.4, 0.1, (0.2, 0.6), 20, "Belief rises."),),
        owner_attacks=(AttackResult("Linkage", 0.01, 0.001, (0.0, 0.02), 1600, "OWNERATTACK nobody is identified."),),
        details={
            "levels": {"age": 2, "zip": 5},
            "released": 1570,
            "suppressed": 30,
            "classes": 14,
            "gap": 0.0,
        },
        owner_details={"OWNERDETAIL": 1600},
        answers={"roles": Answer(True), "informed": Answer(False, "letters go out in May")},
        signature="Ed25519, key 4f3a",
        signed=True,
    )


@cache
def hostile() -> CardContent:
    """Every text a canary."""
    c = CANARY
    claim = Claim(c, {c: c}, c, 1.5, True, "process", c, {c: 2.0}, c, c, c)
    hostile_certificate = Certificate(
        dataset=c,
        created=c,
        claims=(claim, replace(claim, evidence=c)),  # type: ignore[arg-type]
        method={"name": c, c: c},
        schema={"dataset": c, "columns": {c: {"role": c, "source": "data", "domain": [c]}}},
        files={c: {"sha256": c, "bytes": c, "rows": c}},
        versions={c: c},
        fingerprint=c,
        randomness=c,
        private=True,
        ledger=c,
        composition={c: c, "nested": {c: c}, "list": [c]},
        attacks=({"attack": c, "success": c, "baseline": c, "interval": (c, c), "targets": c, "finding": c},),
        transparency={c: {c: [c]}},
        notices=(c,),
        format=c,
    )
    return CardContent(
        certificate=hostile_certificate,
        title=c,
        scores=(Score(c, 1.0, c, c, {c: 1.0}, uses_original=False),),
        figures=figures(c),
        risk={c: 0.5},
        owner_risks=(Score(c, 0.5, c, c, {c: 1.0}, floor=0.25, interval=(0.25, 0.75)),),
        attacks=(AttackResult(c, 0.5, 0.5, (0.0, 1.0), 1, c),),
        owner_attacks=(AttackResult(c, 0.5, 0.5, (0.0, 1.0), 1, c),),
        details={c: c, "levels": {c: c}, "released": 3},
        owner_details={c: {c: c}},
        answers={"roles": Answer(False, c)},
        signature=c,
        signed=False,
    )
