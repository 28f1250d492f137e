"""Integral privacy: a published model should have many possible origins that share no record.

Gen(G) is the set of databases, drawn from a population, from which an algorithm A computes the model G.
G is integrally private with parameter k when there are at least k generators and no record belongs to
all of them (beyond the adversary's background S*). Small populations are searched completely, larger
ones by sampled subsets; the models that recur are the ones to publish. Torra, Navarro-Arribas, "Integral
privacy", CANS 2016; Senavirathne, Torra, "Integrally private model selection for decision trees",
Computers & Security 83, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Annotated, Any, Generic, TypeVar

from sfumato.core import randomness
from sfumato.core.declared import Declared, require
from sfumato.core.errors import Unsupported
from sfumato.core.ranges import Count, Each, Whole
from sfumato.measures.parameters import DrawSeed

Record = TypeVar("Record")

#: Above this many subsets a population is sampled instead of searched completely.
MAX_SUBSETS = 200_000


@dataclass(frozen=True)
class Generators:
    """A model with the databases (as sets of record numbers) that give it."""

    model: Hashable = field(repr=False)
    databases: tuple[frozenset[int], ...] = field(repr=False)
    background: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def count(self) -> int:
        """How many generators there are."""
        return len(self.databases)

    @property
    def common(self) -> frozenset[int]:
        """Records that are in every generator: what publishing the model proves about its origin."""
        return frozenset.intersection(*self.databases) if self.databases else frozenset()

    def is_private(self, k: int) -> bool:
        """At least k generators, and nothing in common beyond the background."""
        return self.count >= k and self.common == self.background


@dataclass(frozen=True)
class IntegralPrivacy(Declared, Generic[Record]):
    """Generators of the models that `algorithm` computes from subsets of the population.

    `algorithm` maps a list of records to a hashable model (round real numbers, compare trees by
    structure). `sizes` are the sizes of databases considered. `samples` draws that many subsets per size
    instead of all of them; `background` are the numbers of the records that the adversary knows to be in
    the database. A model is private when at least `k` databases give it that have nothing in common but the background.
    Another `seed`, other samples.
    """

    algorithm: Annotated[Callable[[list[Record]], Hashable], "what computes a model from records"]
    k: Annotated[Count, "databases that give a private model, at the least"]
    sizes: Annotated[tuple[int, ...], Each(Whole(at_least=1), at_least=1), "the sizes of databases considered"]
    background: Annotated[frozenset[int], "the numbers of the records known to be in the database"] = frozenset()
    samples: Annotated[Count | None, "subsets drawn per size; all of them where left out"] = None
    seed: DrawSeed = "integral privacy"

    def generators(self, population: Sequence[Record]) -> dict[Hashable, Generators]:
        """All models found, each with its generators."""
        generators: dict[Hashable, set[frozenset[int]]] = {}
        for chosen in self._subsets(len(population)):
            model = self.algorithm([population[i] for i in sorted(chosen)])
            generators.setdefault(model, set()).add(chosen)
        return {model: Generators(model, tuple(sets), self.background) for model, sets in generators.items()}

    def private_models(self, population: Sequence[Record]) -> list[Generators]:
        """The integrally private models, the most recurrent first."""
        private = [entry for entry in self.generators(population).values() if entry.is_private(self.k)]
        return sorted(private, key=lambda entry: -entry.count)

    def is_private(self, database: Iterable[int], population: Sequence[Record]) -> bool:
        """Whether the model of this database (record numbers of the population) may be published."""
        chosen = frozenset(database)
        model = self.algorithm([population[i] for i in sorted(chosen)])
        entry = self.generators(population).get(model)
        return entry is not None and entry.is_private(self.k)

    def _subsets(self, people: int) -> Iterator[frozenset[int]]:
        require(
            all(0 <= i < people for i in self.background),
            "IntegralPrivacy: background names records of the population",
        )
        others = [i for i in range(people) if i not in self.background]
        free = [size - len(self.background) for size in self.sizes if len(self.background) <= size <= people]
        if self.samples is not None:
            yield from self._sampled(others, free, self.samples)
            return
        if sum(comb(len(others), size) for size in free) > MAX_SUBSETS:
            raise Unsupported(
                f"the population has more than {MAX_SUBSETS:,} subsets of these sizes. Pass samples= to draw some of them."
            )
        for size in free:
            for chosen in combinations(others, size):
                yield self.background.union(chosen)

    def _sampled(self, others: list[int], free: list[int], samples: int) -> Iterator[frozenset[int]]:
        source = randomness.default(self.seed)
        for size in free:
            for _ in range(samples):
                order = randomness.permutation(source, len(others)).tolist()
                yield self.background.union(others[i] for i in order[:size])


def rounded_mean(digits: int = 6) -> Callable[[list[float]], Hashable]:
    """The algorithm "mean, rounded"."""
    return lambda records: round(sum(records) / len(records), digits)


def tree_structure(depth: int = 3, digits: int = 0) -> Callable[[list[tuple[tuple[float, ...], Hashable]]], Hashable]:
    """The algorithm "decision tree", compared by structure: the attribute and rounded threshold of every
    node, the answer of every leaf.

    Records are pairs of a tuple of numbers and a label.
    """

    def learn(records: list[tuple[tuple[float, ...], Hashable]]) -> Hashable:
        from sklearn.tree import DecisionTreeClassifier

        labels = [str(label) for _, label in records]
        tree: Any = DecisionTreeClassifier(max_depth=depth, random_state=0)
        tree.fit([list(features) for features, _ in records], labels)
        return _structure(tree.tree_, list(tree.classes_), 0, digits)

    return learn


def _structure(tree: Any, labels: list[str], node: int, digits: int) -> Hashable:
    left, right = int(tree.children_left[node]), int(tree.children_right[node])
    if left == right:
        return labels[int(tree.value[node][0].argmax())]
    split = int(tree.feature[node]), round(float(tree.threshold[node]), digits)
    return (*split, _structure(tree, labels, left, digits), _structure(tree, labels, right, digits))
