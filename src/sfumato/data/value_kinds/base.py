"""A kind of values: which texts are of it, and what stands above each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sfumato.data.profiling.identifier_names import words_of
from sfumato.data.schema import HierarchySpec

#: What stands above a value, from fine to coarse and without the root; None where the value is not of the kind.
Groups = tuple[str, ...] | None


@dataclass(frozen=True)
class ValueKind:
    """A kind of values. `levels` names what stands above a value; `words` are names of columns that hold such values.

    `groups` places one value and returns None for a value that it does not know: nothing is placed by likeness. A kind whose
    tree parameters describe gives them by `parameters`, from the values that are of the kind, and has no `levels`; it returns
    None where only a list of its values will do. Values are `telling` if few other things look like them; `spellings` lists
    names that an unknown value may be a misspelling of.
    """

    name: str
    title: str
    levels: tuple[str, ...]
    words: tuple[str, ...] = field(repr=False)
    groups: Callable[[str], Groups] = field(repr=False)
    telling: bool = False
    parameters: Callable[[Sequence[str]], HierarchySpec | None] = field(default=lambda values: None, repr=False)
    spellings: Callable[[], Sequence[str]] = field(default=tuple, repr=False)

    def named_by(self, column: str) -> bool:
        """Whether the name of a column says that it holds such values; an entry of two words matches them in a row."""
        spaced = f" {' '.join(words_of(column))} "
        return any(f" {word} " in spaced for word in self.words)
