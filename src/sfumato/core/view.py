"""What an adversary or a measure sees of a release, and the two protocols that look at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from sfumato.core.declared import Declared
from sfumato.core.errors import ParameterError

#: The unit of a release, as its certificate tells it, where no column names the units.
ONE_RECORD = "one record"

#: What was published, and what describes it.
R = TypeVar("R", covariant=True)
S = TypeVar("S", covariant=True)
#: The views an attack looks at, and what it knows besides.
V = TypeVar("V", bound="View[object, object]")
K = TypeVar("K")
#: The two sides that a measure compares.
Original = TypeVar("Original", contravariant=True)
Released = TypeVar("Released", contravariant=True)

#: Three things that must not be possible with anonymous data (Article 29 Working Party, opinion 05/2014, WP216).
Criterion = Literal["singling out", "linkability", "inference"]

#: Counts, rates and words, as a certificate or a command tells them.
Detail: TypeAlias = "None | bool | int | float | str | Sequence[Detail] | Mapping[str, Detail]"


@dataclass(frozen=True)
class View(Generic[R, S]):
    """A published result with what its certificate says: everything an outsider has.

    `result` is an Arrow table for a table release; `schema` describes it, for a table by the roles of its columns;
    `certificate` is the public part, as plain data.
    """

    result: R
    schema: S
    certificate: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # JSON of any depth
    name: str = "release"


@dataclass(frozen=True)
class AttackResult:
    """How far an attack got, beside what blind guessing gets.

    `success` and `baseline` are rates in [0, 1]; `interval` is a 95 % interval of the success rate; `targets` is
    how many people were attacked, or records where nobody can tell whose they are; `finding` says in one sentence what it
    means; `details` holds counts, never record values.
    """

    attack: str
    success: float
    baseline: float
    interval: tuple[float, float]
    targets: int
    finding: str
    details: Mapping[str, Detail] = field(default_factory=lambda: MappingProxyType({}))


class Attack(Declared, ABC, Generic[V, K]):
    """An adversary: `run` looks at a view with some knowledge and reports success beside blind guessing.

    `needs` says what it must know besides the view, as names: a command, a file or an owner who has these things hands
    them over in a mapping, from which `knowledge_from` makes what `run` takes; `helped_by` names what else it can use.
    `fits` says whether a view invites the attack. Nothing else decides who is attacked by whom.
    """

    #: What it cannot do without: "register" is a table of people, "truth" the row of each of them, "earlier" other releases.
    needs: ClassVar[tuple[str, ...]] = ()
    #: What it can use beyond that, where somebody has it.
    helped_by: ClassVar[tuple[str, ...]] = ()
    #: Those of `helped_by` that may also stand among the parameters where the attack is named: `Minimality(l=2)`.
    supposed: ClassVar[tuple[str, ...]] = ()
    #: Whether it is run on whatever it fits when nobody has named an attack.
    unasked: ClassVar[bool] = True
    #: What its success supposes, for the sentence about it.
    supposing: ClassVar[str] = ""
    #: Whether it picks the record of a person, which a promise of k records allows once in k times.
    identifies: ClassVar[bool] = False
    #: Whether it exploits what is published about the method.
    knows_the_method: ClassVar[bool] = False
    #: Whether it takes rows by their groups, with how many records each stands for (`ReleasedTable.counts`).
    of_groups: ClassVar[bool] = False
    #: What it shows to be possible, in the words of data protection; None where none of them fits.
    criterion: ClassVar[Criterion | None] = None

    @abstractmethod
    def fits(self, view: View[object, object]) -> bool:
        """Whether the view is of a kind that this attack makes sense of: then `run` does not raise `Unsupported` for what the
        view shows, although it may for what somebody knows, or for a size that takes too long."""

    def knowledge_from(self, entries: Mapping[str, object]) -> K | None:
        """What `run` takes, from what is known by name (values as a file, a command or an owner has them); all that is told
        must be of use. By default nothing is."""
        if entries:
            raise ParameterError("knowledge must be empty here: what this adversary knows are the parameters of the attack")
        return None

    @abstractmethod
    def run(self, view: V, knowledge: K | None = None) -> AttackResult:
        """Attack the view; `knowledge` is what this adversary has besides it (each attack says which)."""


#: An attack out of several kinds; whether it takes a view is asked with `fits`, which no type says.
AnyAttack: TypeAlias = Attack[Any, Any]


@dataclass(frozen=True)
class Score:
    """A measured number with the reading direction and, where it helps, its parts (per attribute, per class size).

    A risk also has its `floor`, what chance alone gives: the same measure where people are paired with released rows at
    random, or a blind guess. `interval` is a 95 % interval of the value; both ends equal the value where it is exact. Of a risk
    that rests on record linkages, `linked_shares` are the share of records that each of them finds, and what chance finds.
    `words` are what a summary says of the score, line by line.

    >>> Score("linkage", 0.28, "lower", "share linked", floor=0.1, interval=(0.19, 0.37)).gain
    0.2
    """

    measure: str
    value: float
    better: str  # "lower" or "higher"
    meaning: str
    parts: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    uses_original: bool = True
    floor: float | None = None
    interval: tuple[float, float] | None = None
    linked_shares: tuple[tuple[float, float], ...] = ()
    words: tuple[str, ...] = ()

    @property
    def gain(self) -> float | None:
        """(value − floor)/(1 − floor): 0 is chance, 1 certainty, below 0 less than chance; None without a floor below 1."""
        return self.above_floor(self.value)

    @property
    def gain_interval(self) -> tuple[float, float] | None:
        """The interval on the scale of the gain; None where either is."""
        if self.interval is None:
            return None
        low, high = (self.above_floor(end) for end in self.interval)
        return None if low is None or high is None else (low, high)

    def above_floor(self, risk: float) -> float | None:
        """Any risk of this measure as a gain over its floor."""
        if self.floor is None or self.floor >= 1.0:
            return None
        return (risk - self.floor) / (1.0 - self.floor)


class Described(Protocol):
    """What a measure may ask of the schema of a table that is still to be published."""

    @property
    def columns(self) -> Mapping[str, object]:
        """What describes each column."""

    @property
    def weight(self) -> str | None:
        """The column with the survey weights."""


class Measure(Declared, ABC, Generic[Original, Released]):
    """How useful or how safe: `score(original, released)`.

    A measure of `masked` tables takes a `Masked`, which knows the record behind each row, or a table whose rows stand in
    the order of the original; others take a `ReleasedTable`.
    """

    masked: ClassVar[bool] = False
    #: Whether the published rows alone give its score, so that whoever has them can compute it again.
    of_rows_alone: ClassVar[bool] = False
    #: Whether it takes rows by their groups, with how many records each stands for (`ReleasedTable.counts`).
    of_groups: ClassVar[bool] = False
    #: Whether it counts what was generalised or suppressed and takes every shown value for true: of values that were changed
    #: it says nothing.
    supposes_truth: ClassVar[bool] = False

    def lacks(self, published: Described) -> str | None:
        """What it cannot do without and this table will not have, in a sentence; None where it can be measured as far as anybody
        knows. Asked before the long work. The columns that its parameters name (`target`, `columns`) must be there."""
        target, columns = getattr(self, "target", None), getattr(self, "columns", None)
        named = (*(() if target is None else (target,)), *(columns if isinstance(columns, tuple) else ()))
        absent = next((name for name in named if name not in published.columns), None)
        if absent is None:
            return None
        return f"{getattr(self, 'key', type(self).__name__)} is about the column '{str(absent)[:60]}', which is not published"

    @abstractmethod
    def score(self, original: Original, released: Released) -> Score:
        """Measure the released table, against the original where the measure needs it."""


#: A measure out of several kinds; `masked` says which table it takes.
AnyMeasure: TypeAlias = Measure[Any, Any]
