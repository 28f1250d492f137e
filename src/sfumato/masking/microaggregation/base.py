"""Microaggregation: clusters of at least k similar records, each record replaced by the centroid of its cluster.

Whoever knows somebody's masked attributes finds at least k records that show the same. Clusters need at most 2k - 1
records: one of 2k could be cut in two. Domingo-Ferrer, Mateo-Sanz, "Practical data-oriented microaggregation for
statistical disclosure control", IEEE TKDE 14(1), 2002.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.ranges import Each, Text, Whole
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, Records
from sfumato.kernels.microaggregation.live import Space
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.microaggregation.clustered_records import CategoryCentroid, ClusteredRecords
from sfumato.masking.shown_rows import ShownRows

Int = NDArray[np.int64]

#: How many records a cluster has at the least.
ClusterSize = Annotated[int, Whole(at_least=2), "the records of a cluster, at the least"]


@dataclass(frozen=True)
class Microaggregation(Mask):
    """What the multivariate methods share; each of them says how clusters are made.

    `k` is the least number of records of a cluster. `groups` are sets of columns that are clustered separately (together
    they are the masked columns): less is lost, and k-anonymity no longer holds, because two of them together may single
    out a record. `standardise` divides numbers by their standard deviation before distances are measured. Categories are
    shown as the central one of the cluster (`category_centroid="mode"`) or as the lowest common ancestor in their
    hierarchy (`"ancestor"`).

    A missing cell lies at its column's mean when distances are measured, and is filled with the centroid of the known
    values of its cluster, so that all records of a cluster stay equal.
    """

    k: ClusterSize
    _: KW_ONLY
    groups: Annotated[
        tuple[tuple[str, ...], ...] | None,
        Each(Each(Text("the name of a column"), at_least=1), at_least=1, what="lists of columns, none of them empty"),
        "sets of columns that are clustered separately",
    ] = None
    standardise: Annotated[bool, "whether numbers are divided by their standard deviation before distances are measured"] = True
    category_centroid: Annotated[CategoryCentroid, "how the categories of a cluster are shown"] = "mode"

    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})
    #: What does not vary in a stratum is shared by all of it, as by a cluster.
    refuses_constant_stratum: ClassVar[bool] = False
    certain: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        listed = [column for group in self.groups or () for column in group]
        if len(set(listed)) < len(listed):
            yield "groups must list columns, each in one group"

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse fewer records than a cluster needs, and groups that are not the masked columns."""
        check_records(type(self).__name__, self.k, records)
        if self.groups is not None:
            listed = {column for group in self.groups for column in group}
            if listed != set(records.names):
                raise ParameterError(
                    f"{type(self).__name__}: groups must hold exactly the masked columns ({', '.join(records.names)}); "
                    "name them in columns=(…) too"
                )

    @abstractmethod
    def partition(self, space: Space, context: Context) -> Int:
        """The cluster of each record."""

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Cluster the records (group by group) and show centroids."""
        values: dict[str, Any] = {}
        clusters: list[Mapping[str, Any]] = []
        for group in self.groups or (records.names,):
            columns = tuple(column for column in records.columns if column.name in group)
            clustered = ClusteredRecords(Records(columns, records.size), context.people, standardise=self.standardise)
            labels = self.partition(clustered.space, context)
            values.update(clustered.centroids(labels, self.category_centroid))
            clusters.append(described_clusters(clustered.space, labels))
        details = clusters[0] if len(clusters) == 1 else {name: [entry[name] for entry in clusters] for name in clusters[0]}
        return Change(values, published=self.tells(records.names), details=details)

    def tells(self, names: tuple[str, ...]) -> Plain:
        """How many records a cluster has at least, and which columns are clustered together."""
        groups = [list(group) for group in self.groups or (names,)]
        return {"k": self.k, "standardised": self.standardise, "attribute_groups": groups}

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where fewer than k rows share what a cluster shows, or a masked column is in no group."""
        names = shown.columns_of(self)
        groups = self.groups or (names,)
        clustered = {name for group in groups for name in group}
        return not clustered.issuperset(names) or not all(
            shown.are_shared_by(self.k, (*group, *(self.strata or ()))) for group in groups
        )

    def keeps(self) -> tuple[Kept, ...]:
        """Means of numbers."""
        return (Kept("mean", exactly=True, note="of columns of numbers without missing values"),)

    def claims(self, people: Microdata) -> tuple[ClassGuarantee, ...]:
        """k-anonymity, where all quasi-identifiers are clustered together and a record is a person."""
        return (KAnonymity(self.k),) if self.covers_classes(people) else ()

    def covers_classes(self, people: Microdata) -> bool:
        """Whether a cluster is (part of) a class: all quasi-identifiers masked, in one group and without strata."""
        schema = people.schema
        masked = set(self.columns if self.columns is not None else schema.quasi)
        together = self.groups is None or len(self.groups) == 1
        return bool(schema.quasi) and set(schema.quasi) <= masked and together and not self.strata and schema.unit is None


def described_clusters(space: Space, labels: Int) -> PlainDict:
    """For the owner: the cluster of each record, how many there are and how large, their squared error in the units in which
    distances were measured, and its share of the total (the information loss)."""
    sizes = np.bincount(labels)
    error = space.squared_error(labels, sizes.size)
    total = space.squared_error(np.zeros(labels.size, dtype=np.int64), 1)
    return {
        "clusters": int(sizes.size),
        "smallest_cluster": int(sizes.min()),
        "largest_cluster": int(sizes.max()),
        "squared_error": error,
        "information_loss": error / total if total > 0.0 else 0.0,
        "labels": labels.tolist(),
    }


def check_records(name: str, k: int, records: Records) -> None:
    """Refuse fewer records than one cluster needs."""
    if records.size < k:
        raise ParameterError(
            f"{name}: {records.size:,} records cannot make a cluster of k = {k:,}. Take a smaller k, or fewer strata."
        )
