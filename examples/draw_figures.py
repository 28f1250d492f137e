"""Draw the figures of the documentation from the sample people; writes docs/figures/."""

from __future__ import annotations

from pathlib import Path

import sfumato as sf
from sfumato.data.sample import sample_schema, sample_table
from sfumato.report.figures.tradeoff import Nodes, tradeoff

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"


#: What the map of the documentation compares.
MASKS = (
    "Mdav(k=[3, 5, 10, 25])",
    "RankSwapping(p=[2, 5, 10, 25])",
    "AdditiveNoise(ratio=[0.05, 0.2, 1.0])",
    "MultiplicativeNoise(alpha=[10, 30])",
    "Shuffling()",
)


def main() -> None:
    """The trade-off map of the README, the risk-utility map and the map of methods of hiding."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    (FIGURES / "tradeoff.svg").write_text(tradeoff_map(), encoding="utf-8")
    (FIGURES / "risk-utility.svg").write_text(risk_utility_map(), encoding="utf-8")
    (FIGURES / "hiding-map.svg").write_text(hiding_map(), encoding="utf-8")


def hiding_map() -> str:
    """Methods of hiding three itemsets in sixty small baskets."""
    goods = ("apples", "bread", "butter", "coffee", "eggs", "flour", "milk", "tea")
    rows = [[x for j, x in enumerate(goods) if (i * i * (j + 2) + i * (2 * j + 3) + j * j) % 11 < 5] for i in range(60)]
    hidden = sf.Hidden([["apples", "bread"], ["butter", "coffee"], ["eggs", "flour", "milk"]], 9)
    return sf.workflow.compare_hiding(sf.data.Transactions.of(rows), hidden, seed=1).map()


def risk_utility_map() -> str:
    """Masks of two numbers of the sample people."""
    columns = {name: column for name, column in sample_schema().columns.items() if name in ("age", "income")}
    columns = {name: column.model_copy(update={"role": "quasi", "hierarchy": None}) for name, column in columns.items()}
    schema = sf.Schema(dataset="sample-people", columns=columns)
    people = sf.read(sample_table(2_000).select(["age", "income"]), schema)
    return sf.compare(people, MASKS, runs=3, cache=False).figure()


def tradeoff_map() -> str:
    """Risk against loss of every generalisation that a search looked at."""
    people = sf.read(sample_table(20_000), sample_schema())
    wanted = [sf.KAnonymity(5), sf.DistinctLDiversity(3, "diagnosis")]
    looked_at = sf.protect(people, wanted, sf.Lattice(suppression=0.05), seed=1).details["map"]
    nodes = Nodes(
        looked_at["risk"],
        looked_at["loss"],
        looked_at["suppressed"],
        chosen=looked_at["chosen"],
        risk_label="average risk of a record",
    )
    return tradeoff(nodes)


if __name__ == "__main__":
    main()
