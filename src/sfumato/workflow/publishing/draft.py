"""A draft: content of any kind that nobody has verified yet, with what is promised about it and on what evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sfumato.core.guarantees.base import Guarantee
from sfumato.workflow.contents.base import Content

if TYPE_CHECKING:
    from sfumato.report.content import Answer

C = TypeVar("C", bound=Content, covariant=True)

#: What a certificate notices where the randomness was seeded.
DEMONSTRATION = "made with a seed: a demonstration that anybody can repeat, not a private release"


@dataclass(frozen=True)
class Promise:
    """A guarantee and, where its evidence is a process, why it holds and the ledger's entry that paid for it."""

    guarantee: Guarantee
    argument: str = ""
    ledger_entry: str | None = None


@dataclass(frozen=True, eq=False)
class Draft(Generic[C]):
    """Content with its promises, and what a certificate tells about how it was made.

    `details` says how the work went; `computed` is what was computed from the original and never leaves. `recipe` and `answers`
    are what the owner said and keeps with the release.
    """

    content: C
    promises: tuple[Promise, ...]
    method: Mapping[str, Any]
    randomness: str
    private: bool
    fingerprint: str | None = None
    transparency: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    notices: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    computed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    recipe: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    answers: Mapping[str, Answer] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What is promised."""
        return tuple(promise.guarantee for promise in self.promises)
