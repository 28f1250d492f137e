"""The loss of several questions of which some are about disjoint parts of the data.

One record is seen only by questions whose conditions it fulfils, and these overlap pairwise: the loss is the largest total
over sets of pairwise overlapping questions, never below the truth because overlap is assumed where disjointness is not
certain. Where such sets are too many to list, questions are put into groups of disjoint ones: parallel inside a group,
sequential between groups. McSherry, "Privacy integrated queries", SIGMOD 2009.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from sfumato.core.declared import require
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.dp.accounting.composition import alike, parts_of, sequential, with_parts
from sfumato.dp.accounting.predicates import certainly_disjoint, columns_read
from sfumato.engines.expressions import Expression, Kind

#: More sets of overlapping questions than this are not listed.
_MOST_SETS = 2_000


def composed(
    questions: Iterable[tuple[Expression | None, LossGuarantee]],
    *,
    constant: Collection[str] = (),
    kinds: Mapping[str, Kind] | None = None,
) -> LossGuarantee:
    """The loss of all questions together; a question is the condition of the rows it reads and what its answer costs.

    All conditions are about rows of one table, and `None` means all of them. For losses whose unit is not the record, a
    condition separates units only by columns that are the same in all records of a unit: name those in `constant`. Each
    loss is that of the answer as a function of the whole data; with replaced units, the old and the new data may fall
    into different parts, and both count.
    """
    listed = list(questions)
    require(bool(listed), "there is no question to account for")
    stated = alike([loss for _, loss in listed])
    conditions = [condition for condition, _ in listed]

    def overlap(one: Expression | None, other: Expression | None) -> bool:
        if stated[0].unit != "record" and not columns_read(one) | columns_read(other) <= set(constant):
            return True
        return not certainly_disjoint(one, other, kinds=kinds)

    pairs = combinations(range(len(conditions)), 2)
    apart = {(one, other) for one, other in pairs if not overlap(conditions[one], conditions[other])}
    return total_loss(stated, apart)


def total_loss(losses: Sequence[LossGuarantee], apart: Collection[tuple[int, int]]) -> LossGuarantee:
    """The loss of questions together of which these pairs, by their places, certainly have no unit in common.

    >>> from sfumato.core.guarantees.loss import PureDP
    >>> total_loss([PureDP(1), PureDP(2), PureDP(4)], {(0, 1)}).epsilon
    Fraction(6, 1)
    """
    stated = alike(losses)
    near: dict[int, set[int]] = {question: set() for question in range(len(stated))}
    for one, other in combinations(near, 2):
        if (one, other) not in apart and (other, one) not in apart:
            near[one].add(other)
            near[other].add(one)
    seen_by_one = _cliques(near)
    replaced = stated[0].neighbours == "replace"
    numbers = [parts_of(loss) for loss in stated]
    total = parts_of(sequential(*stated))
    for name in total:
        weights = [each[name] for each in numbers]
        bound = (
            _grouped(near, weights, 2 if replaced else 1) if seen_by_one is None else _heaviest(seen_by_one, weights, replaced)
        )
        total[name] = min(total[name], bound)
    return with_parts(stated[0], total)


def _heaviest(sets: Sequence[frozenset[int]], weights: Sequence[Fraction], replaced: bool) -> Fraction:
    """The largest total of one set, or of two sets together where a record is replaced by another."""
    if not replaced or len(sets) == 1:
        return max(sum((weights[i] for i in each), Fraction(0)) for each in sets)
    if len(sets) > 100:
        return 2 * max(sum((weights[i] for i in each), Fraction(0)) for each in sets)
    return max(sum((weights[i] for i in one | other), Fraction(0)) for one in sets for other in sets)


def _grouped(near: Mapping[int, set[int]], weights: Sequence[Fraction], seen: int) -> Fraction:
    """Groups of pairwise disjoint questions, the heaviest first; of each group a record is seen by at most `seen`."""
    groups: list[list[int]] = []
    for question in sorted(near, key=lambda i: -weights[i]):
        home = next((group for group in groups if not near[question].intersection(group)), None)
        if home is None:
            groups.append([question])
        else:
            home.append(question)
    return sum((weights[i] for group in groups for i in group[:seen]), Fraction(0))


def _cliques(near: Mapping[int, set[int]]) -> list[frozenset[int]] | None:
    """All largest sets of pairwise overlapping questions, or nothing if there are too many."""
    cliques: list[frozenset[int]] = []
    for clique in _grown(frozenset(), set(near), set(), near):
        cliques.append(clique)
        if len(cliques) > _MOST_SETS:
            return None
    return cliques


def _grown(chosen: frozenset[int], left: set[int], done: set[int], near: Mapping[int, set[int]]) -> Iterator[frozenset[int]]:
    """Bron and Kerbosch's enumeration with a pivot."""
    if not left and not done:
        yield chosen
        return
    pivot = max(left | done, key=lambda i: len(near[i] & left))
    for question in sorted(left - near[pivot]):
        yield from _grown(chosen | {question}, left & near[question], done & near[question], near)
        left = left - {question}
        done = done | {question}
