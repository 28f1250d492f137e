"""Publish a table about people: read, protect, save, verify, attack. Run it in an empty folder."""

from __future__ import annotations

import sfumato as sf
from sfumato.data.sample import write_sample


def main() -> None:
    """Make a release of generated people in ./out and look at it from outside."""
    write_sample(".", rows=10_000)
    people = sf.read("people.csv", schema="people.toml")
    release = sf.protect(
        people,
        [sf.KAnonymity(5), sf.TCloseness(0.5, "diagnosis", distance="hierarchical")],
        sf.Lattice(suppression=0.05),
        utility=["loss", "discernibility"],
        attacks=["Homogeneity", "Skewness"],
        ledger="ledger.db",
    )
    print(release)
    release.save("out", overwrite=True)
    print(sf.verify("out", original="people.csv").explain())
    for result in sf.attack("out", register="people.csv"):
        print(f"{result.attack}: {result.finding}")


if __name__ == "__main__":
    main()
