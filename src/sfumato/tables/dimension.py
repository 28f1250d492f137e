"""A dimension of an aggregate table: its codes, the total over all of them, and which codes add up to which.

A dimension may have several hierarchies over the same leaves (regions by county and by size): each of them is more sums that
hold at the same time, so that tables which show either are one system of equations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sfumato.core.errors import HierarchyError, SchemaError, all_at_once, as_name
from sfumato.core.texts import text_of
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy

#: What the total of a dimension is called where nobody calls it otherwise.
TOTAL = "Total"

#: A sum of a dimension: the place of the code that is the total, and the places of its parts.
Sum = tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class Dimension:
    """`codes` in order, of which `total` is the place of the grand total; `sums` are the equations between them.

    Make one with `flat` (a list of values), `tree` (a parent for each code) or `of_hierarchy`.

    >>> Dimension.flat("sex", ["f", "m"]).codes
    ('Total', 'f', 'm')
    """

    name: str
    codes: tuple[str, ...] = field(repr=False)
    sums: tuple[Sum, ...] = field(repr=False)
    total: int = 0

    def __post_init__(self) -> None:
        faults = list(_faults(self))
        all_at_once(HierarchyError, f"dimension {as_name(self.name)}", faults)
        if len(self.leaves) < 2:
            raise SchemaError(f"the dimension {as_name(self.name)} has one value only, which is the total too: leave it out")

    @classmethod
    def flat(cls, name: str, values: Iterable[object], total: str = TOTAL) -> Dimension:
        """Values that add up to the total."""
        return cls.tree(name, dict.fromkeys((_code(each) for each in values), total), total=total)

    @classmethod
    def tree(cls, name: str, *parents: Mapping[str, str], total: str = TOTAL) -> Dimension:
        """From the parent of each code; codes without one belong to the total. Several mappings are several hierarchies over the
        same leaves."""
        if not parents or not any(parents):
            raise SchemaError(f"the dimension {as_name(name)} has no values")
        leaves = _shared_leaves(name, parents)
        codes = [total]
        sums: list[tuple[str, list[str]]] = []
        for tree in parents:
            children: dict[str, list[str]] = {}
            inner = [code for code in dict.fromkeys(tree.values()) if code != total and code not in tree]
            for child, parent in [*tree.items(), *((code, total) for code in inner)]:
                if child != total:
                    children.setdefault(parent, []).append(child)
            above = set(tree) | set(tree.values())
            children.setdefault(total, []).extend(leaf for leaf in leaves if leaf not in above)
            if total not in children or _unreached(children, total):
                raise HierarchyError(f"dimension {as_name(name)}: some codes lie in a circle and never reach the total")
            _listed(total, children, codes)
            sums += [(parent, below) for parent, below in children.items() if below]
        place = {code: i for i, code in enumerate(dict.fromkeys(codes))}
        stated = {(place[parent], tuple(sorted(place[child] for child in below))) for parent, below in sums}
        return cls(name, tuple(place), tuple(sorted(stated)), 0)

    @classmethod
    def of_hierarchy(cls, name: str, tree: Hierarchy, total: str = TOTAL) -> Dimension:
        """From a hierarchy of a column; its root is the total."""
        top = tree.height
        parents: dict[str, str] = {}
        label = [_code(each) for each in tree.labels]
        one_root = len(set(tree.node_of[top].tolist())) == 1
        for leaf in range(len(tree.leaves)):
            path = list(dict.fromkeys(tree.node_of[:, leaf].tolist()))
            names = [label[node] for node in path]
            if one_root:
                names[-1] = total
            names = [each for i, each in enumerate(names) if i == 0 or each != names[i - 1]]
            names += [total] if names[-1] != total else []
            for child, parent in zip(names, names[1:], strict=False):
                if parents.setdefault(child, parent) != parent:
                    raise HierarchyError(f"dimension {as_name(name)}: two nodes of its hierarchy have the same name; rename one")
        return cls.tree(name, parents, total=total)

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each code."""
        return {code: i for i, code in enumerate(self.codes)}

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The places of the codes that have no parts."""
        above = {total for total, _ in self.sums}
        return tuple(i for i in range(len(self.codes)) if i not in above)

    @cached_property
    def covered(self) -> tuple[frozenset[int], ...]:
        """For every code the leaves that it stands for."""
        parts = dict(self.sums)
        covered: dict[int, frozenset[int]] = {leaf: frozenset([leaf]) for leaf in self.leaves}
        for start in range(len(self.codes)):
            stack = [start]
            while stack:
                code = stack[-1]
                missing = [each for each in parts.get(code, ()) if each not in covered]
                if missing:
                    stack.extend(missing)
                    continue
                stack.pop()
                covered.setdefault(code, frozenset().union(*(covered[each] for each in parts.get(code, ()))))
        return tuple(covered[code] for code in range(len(self.codes)))

    @cached_property
    def depth(self) -> tuple[int, ...]:
        """How many sums lie between each code and the total, for showing it indented."""
        depth = [0] * len(self.codes)
        for code, parts in sorted(self.sums, key=lambda each: -len(self.covered[each[0]])):
            for part in parts:
                depth[part] = max(depth[part], depth[code] + 1)
        return tuple(depth)

    def ancestors(self) -> list[tuple[int, int]]:
        """Pairs of a leaf and a code that covers it, itself included."""
        return [(leaf, code) for code, leaves in enumerate(self.covered) for leaf in sorted(leaves)]

    def code_of(self, value: object) -> int | None:
        """The place of a value, if it is a code."""
        return self.place.get(_code(value))


def _code(value: object) -> str:
    text = text_of(value)
    return ROOT if text is None else text


def _shared_leaves(name: str, parents: Sequence[Mapping[str, str]]) -> list[str]:
    """The leaves of several hierarchies, which must be the same ones wherever they are named."""
    inner = {parent for tree in parents for parent in tree.values()}
    leaves = dict.fromkeys(child for tree in parents for child in tree if child not in inner)
    if not leaves:
        raise HierarchyError(f"dimension {as_name(name)}: every code is the parent of another one")
    return list(leaves)


def _unreached(children: Mapping[str, Sequence[str]], total: str) -> bool:
    reached = {total}
    stack = [total]
    while stack:
        for child in children.get(stack.pop(), ()):
            if child in reached:
                return True
            reached.add(child)
            stack.append(child)
    return any(parent not in reached for parent in children)


def _listed(total: str, children: Mapping[str, Sequence[str]], codes: list[str]) -> None:
    """The codes below the total, each after its parent."""
    stack = list(reversed(children[total]))
    while stack:
        code = stack.pop()
        codes.append(code)
        stack.extend(reversed(children.get(code, ())))


def _faults(dimension: Dimension) -> Iterable[str]:
    size = len(dimension.codes)
    if len(set(dimension.codes)) != size:
        yield "a code is listed twice"
        return
    totals = [total for total, _ in dimension.sums]
    for total, parts in dimension.sums:
        if not parts or len(set(parts)) != len(parts) or total in parts or not all(0 <= each < size for each in (total, *parts)):
            yield "a sum is not between a code and different other codes"
            return
    if _circular(dimension.sums, size):
        yield "some codes lie in a circle and never reach the total"
        return
    if dimension.total not in totals:
        yield "the total is the sum of nothing"
        return
    for total, parts in dimension.sums:
        covered = [leaf for part in parts for leaf in dimension.covered[part]]
        if len(set(covered)) != len(covered):
            yield "a sum counts a leaf twice"
            return
        if frozenset(covered) != dimension.covered[total]:
            yield "two sums for one code cover different leaves"
            return
    if len(dimension.covered[dimension.total]) != len(dimension.leaves):
        yield "some codes are in no sum that leads to the total"


def _circular(sums: Sequence[Sum], size: int) -> bool:
    below: dict[int, list[int]] = {}
    for total, parts in sums:
        below.setdefault(total, []).extend(parts)
    state = [0] * size
    for start in range(size):
        stack = [(start, False)]
        while stack:
            code, done = stack.pop()
            if done:
                state[code] = 2
            elif state[code] == 1:
                return True
            elif state[code] == 0:
                state[code] = 1
                stack.append((code, True))
                if any(state[each] == 1 for each in below.get(code, ())):
                    return True
                stack.extend((each, False) for each in below.get(code, ()) if state[each] == 0)
    return False
