"""CBFS: centroid-based clusters of fixed size, with p-sensitive and l-diverse variants.

Clusters of k around the record farthest from the centroid of those left; the variants go on with the nearest record that
makes the cluster's confidential values more diverse. Laszlo, Mukherjee, "Minimum spanning tree partitioning algorithm for
microaggregation", IEEE TKDE 17(7), 2005; Truta, Vinay, "Privacy protection: p-sensitive k-anonymity property", ICDE
Workshops 2006; Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam, "l-diversity: privacy beyond k-anonymity", ACM TKDD
1(1), 2007.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa

from sfumato.core.errors import Infeasible, MissingColumn, ParameterError, all_at_once
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.core.ranges import Each, Number, Positive, Text, Whole
from sfumato.core.texts import python_number
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records
from sfumato.data.texts.values import CodedText
from sfumato.kernels.microaggregation.diverse import Diversity, Kind, diverse_cbfs
from sfumato.kernels.microaggregation.live import Space
from sfumato.kernels.microaggregation.partitions import cbfs
from sfumato.masking.base import Context
from sfumato.masking.microaggregation.base import Int, Microaggregation
from sfumato.masking.shown_rows import ShownRows


@dataclass(frozen=True)
class _WholeOrSo(Whole):
    """Whole numbers, 2.0 among them."""

    def settled(self, value: Any) -> int:
        number = python_number(value)
        return super().settled(int(number) if isinstance(number, float) and number.is_integer() else number)


@dataclass(frozen=True)
class Cbfs(Microaggregation):
    """Replace each record by the centroid of a cluster of at least `k` similar ones.

    With `p` every cluster shows at least p different values of each `sensitive` column (p-sensitive k-anonymity); with `l` it is
    l-diverse: `diversity="entropy"` (the default), `"distinct"` (the same as p = l) or `"recursive"` with the factor `c`. Without
    `sensitive` the schema's sensitive columns are meant. Such clusters may grow beyond 2k - 1. Against linkage, and with p or l
    against reading a confidential value off a cluster. Means of numbers are kept.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> table = pa.table({"age": [20, 21, 22, 60, 61, 62], "illness": ["a", "a", "b", "b", "b", "c"]})
    >>> people = sf.read(table, sf.Schema.of(quasi=["age"], sensitive=["illness"]))
    >>> [type(claim).__name__ for claim in sf.Cbfs(2, p=2).apply(people).claimed]
    ['KAnonymity', 'DistinctLDiversity']
    """

    sensitive: Annotated[
        tuple[str, ...] | None,
        Each(Text("the name of a column"), at_least=1, what="the names of columns", alone=True),
        "the columns whose values every cluster must mix",
    ] = None
    p: Annotated[int | None, _WholeOrSo(at_least=2), "different values of each of them in a cluster"] = None
    l: Annotated[float | None, Number(above=1), "how diverse each of them must be in a cluster"] = None  # noqa: E741
    diversity: Annotated[Literal["distinct", "entropy", "recursive"], "what l counts"] = "entropy"
    c: Annotated[Positive | None, "the factor of recursive diversity"] = None

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        if self.p is not None and self.l is not None:
            yield "give p (p-sensitive) or l (l-diverse), not both"
        if self.l is not None and self.diversity != "entropy" and not float(self.l).is_integer():
            yield "distinct and recursive l must be a whole number"
        if (self.c is not None) != (self.l is not None and self.diversity == "recursive"):
            yield 'c belongs to l with diversity="recursive", which needs it'
        if self.sensitive is not None and self.p is None and self.l is None:
            yield "say what sensitive=… must show by p=… or l=…"

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse what `Microaggregation` refuses, and sensitive columns that are not there or are masked themselves."""
        super().check(records, people)
        names = self._sensitive(people)
        gone = [f"sensitive column '{name}' is not in the data" for name in names if name not in people.column_names]
        all_at_once(MissingColumn, "Cbfs", gone)
        both = sorted(set(names) & set(records.names))
        if both:
            raise ParameterError(f"Cbfs: column '{both[0]}' cannot be masked and be the sensitive one at once")

    def partition(self, space: Space, context: Context) -> Int:
        """Clusters by CBFS; refused where not even all records together are diverse enough."""
        names = self._sensitive(context.people)
        if not names:
            return cbfs(space, self.k, context.progress)
        diversities = [self._asked(name, context) for name in names]
        for name, diversity in zip(names, diversities, strict=True):
            if not diversity.holds(diversity.counts(np.arange(space.size))):
                raise Infeasible(
                    f"Cbfs: not even all {space.size:,} records together are as diverse in '{name}' as asked for, so no "
                    "clusters of them are. Lower p or l, or merge strata."
                )
        return diverse_cbfs(space, self.k, diversities, context.progress)

    def claims(self, people: Microdata) -> tuple[ClassGuarantee, ...]:
        """k-anonymity, and the diversity of every class."""
        if not self.covers_classes(people):
            return ()
        return (KAnonymity(self.k), *(self._claim(name) for name in self._sensitive(people)))

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where fewer than k rows, or too few sensitive values, share what a cluster shows; clusters that show the same are
        together as diverse as each of them."""
        if super().disproved_by(shown):
            return True
        if not shown.complete or (self.p is None and self.l is None):
            return False
        names = self.sensitive if self.sensitive is not None else shown.schema.sensitive
        diversities = [self._asked_of(shown.table.column(name)) for name in shown.shown(names)]
        groups = self.groups or (shown.columns_of(self),)
        clusters = [rows for group in groups for rows in shown.groups((*group, *(self.strata or ())))]
        return not all(
            each.holds(np.unique(each.codes[rows], return_counts=True)[1]) for each in diversities for rows in clusters
        )

    def _sensitive(self, people: Microdata) -> tuple[str, ...]:
        if self.p is None and self.l is None:
            return ()
        names = self.sensitive if self.sensitive is not None else people.schema.sensitive
        if not names:
            raise ParameterError("Cbfs: p and l are about sensitive columns: name them by sensitive=…, or in the schema")
        return tuple(names)

    def _asked(self, name: str, context: Context) -> Diversity:
        whole = self._asked_of(context.table.column(name))
        return replace(whole, codes=whole.codes[context.rows])

    def _asked_of(self, column: pa.ChunkedArray) -> Diversity:
        coded = CodedText.of(column)
        codes = coded.codes.astype(np.int64) + 1  # a missing value is a value of its own, as in the guarantees
        width = len(coded.values) + 1
        kind: Kind = "distinct" if self.p is not None else self.diversity
        return Diversity(codes, width, kind, self._least, float(self.c) if self.c is not None else 1.0)

    def _claim(self, name: str) -> Any:
        if self.p is not None or self.diversity == "distinct":
            return DistinctLDiversity(int(self._least), name)
        if self.c is not None:
            return RecursiveLDiversity(self.c, int(self._least), name)
        return EntropyLDiversity(self._least, name)

    @property
    def _least(self) -> float:
        """How many values, or as many as how many, a cluster must show."""
        return next(float(number) for number in (self.p, self.l, 1) if number is not None)
