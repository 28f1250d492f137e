"""Draw the figures of the documentation from the sample people; writes docs/figures/."""

from __future__ import annotations

from pathlib import Path

import sfumato as sf
from sfumato.data.sample import sample_schema, sample_table
from sfumato.report.figures.tradeoff import Nodes, tradeoff

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"


def main() -> None:
    """The trade-off map of the README."""
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
    FIGURES.mkdir(parents=True, exist_ok=True)
    (FIGURES / "tradeoff.svg").write_text(tradeoff(nodes), encoding="utf-8")


if __name__ == "__main__":
    main()
