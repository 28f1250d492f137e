"""Several questions as one charge: what they cost together, and how each is answered.

Losses add up, except between questions that certainly have no unit in common: of those the largest counts. That is proved from
their conditions and the schema alone, before a row is read. McSherry, "Privacy integrated queries", SIGMOD 2009 (parallel
composition); the argument is in docs/theory/batches.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from sfumato.core.declared import parameters
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.plain_data import PlainDict
from sfumato.dp.accounting.composition import sequential
from sfumato.dp.accounting.conversion import kind_of
from sfumato.dp.accounting.disjoint import total_loss
from sfumato.dp.accounting.predicates import certainly_disjoint
from sfumato.dp.sql.asking.explanation import Explanation, cost_text
from sfumato.dp.sql.asking.unit_conditions import unit_condition
from sfumato.dp.sql.question import Question

if TYPE_CHECKING:
    from sfumato.dp.sql.asking.answer import QueryAnswer

#: A batch may have this many questions.
MOST_QUESTIONS = 200

_SUM = (
    "The costs add up: that no unit is in two of the questions is not proved. It is where their WHEREs exclude each other on the "
    "unit, on an aggregate of all of a unit's rows, or on a column that the schema declares one_per_unit = true"
)
_SUM_RECORDS = "The costs add up: that no record is in two of the questions is not proved from their WHEREs"


@dataclass(frozen=True)
class Parts:
    """Which questions of a batch certainly have no unit in common, by their places from 0."""

    questions: int
    apart: frozenset[tuple[int, int]]
    unit: str

    def loss(self, losses: Sequence[LossGuarantee]) -> LossGuarantee:
        """What the questions cost together, each with its own loss as a function of the whole data."""
        if len({kind_of(each) for each in losses} & {"approx", "zcdp"}) > 1:
            raise Unsupported(
                "some questions of the batch cost ρ, and those with discovered keys cost ε and δ, which do not add up exactly. "
                "Ask them as two batches, or all with epsilon and delta"
            )
        return total_loss(losses, self.apart)

    @property
    def sentence(self) -> str:
        """How the costs of the questions compose, in words."""
        count = self.questions
        if count == 1:
            return "One question alone"
        if not self.apart:
            return _SUM_RECORDS if self.unit == "record" else _SUM
        if len(self.apart) == count * (count - 1) // 2:
            return f"No {self.unit} is in two of the questions: the largest cost counts, not the sum"
        pairs = ", ".join(f"{one + 1} and {other + 1}" for one, other in sorted(self.apart)[:12])
        more = " …" if len(self.apart) > 12 else ""
        return (
            f"No {self.unit} is in both questions {pairs}{more}: of questions without a common {self.unit} the largest cost "
            "counts, others add up"
        )

    def among(self, places: Sequence[int]) -> Parts:
        """The same for some of the questions."""
        place = {before: after for after, before in enumerate(places)}
        apart = frozenset((place[one], place[other]) for one, other in self.apart if one in place and other in place)
        return Parts(len(places), apart, self.unit)


def parts_of(questions: Sequence[Question]) -> Parts:
    """Which of the questions certainly have no unit in common."""
    conditions = tuple(unit_condition(question, f"question {place}:") for place, question in enumerate(questions))
    kinds = {name: kind for each in conditions for name, kind in each.kinds.items()}
    apart = frozenset(
        (one, other)
        for one, other in combinations(range(len(questions)), 2)
        if certainly_disjoint(conditions[one].condition, conditions[other].condition, kinds=kinds)
    )
    return Parts(len(questions), apart, questions[0].unit)


def check_batch(queries: object) -> list[str]:
    """The texts of a batch, or a refusal of what is none."""
    if isinstance(queries, (str, bytes)) or not isinstance(queries, Sequence) or not queries:
        raise ParameterError("give at least one query, as a list: ['SELECT …', 'SELECT …']")
    if len(queries) > MOST_QUESTIONS:
        raise ParameterError(f"a batch has at most {MOST_QUESTIONS} questions; ask {len(queries):,} as several batches")
    return [str(each) if isinstance(each, str) else "" for each in queries]


def understood(queries: Sequence[str], keys: Collection[str], read: Callable[[str], Question]) -> list[Question]:
    """Every question; a refusal says which one it is about. Each of `keys` is a grouping key of at least one of them."""
    questions, unused = [], set(keys)
    for number, query in enumerate(queries, 1):
        try:
            questions.append(read(query))
        except Unsupported as refused:
            raise Unsupported(f"question {number} of the batch: {refused}" if len(queries) > 1 else str(refused)) from None
        unused -= {key.label for key in questions[-1].keys}
    if unused:
        raise Unsupported(f"keys={{…}} names '{min(unused)[:60]}', which is not a grouping key of any question of the batch")
    return questions


@dataclass(frozen=True)
class BatchCost:
    """What several questions cost together, and each of them; `composition` says in words how the costs compose."""

    explanations: tuple[Explanation, ...]
    total: LossGuarantee
    composition: str = ""

    @property
    def sum(self) -> LossGuarantee:
        """What they would cost one after the other."""
        return sequential(*(each.loss for each in self.explanations))

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.explanations)

    def __len__(self) -> int:
        return len(self.explanations)

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        return {
            "total": {"name": self.total.name, **parameters(self.total)},
            "composition": self.composition,
            "questions": [each.to_mapping() for each in self.explanations],
        }

    def __str__(self) -> str:
        lines = []
        for number, each in enumerate(self.explanations, 1):
            lines += [f"question {number}: {each.query}", *(f"  {line}" for line in str(each).split("\n")), ""]
        lines.append(f"together it costs {cost_text(self.total)}, reserved as one charge, all or nothing")
        return "\n".join([*lines, self.composition])


@dataclass(frozen=True)
class BatchAnswer:
    """The answers to the questions of a batch, in their order, and what was charged for all of them at once.

    `loss` is None where everything had been measured before. Each answer has its own loss: what it tells by itself.
    """

    answers: tuple[QueryAnswer, ...]
    loss: LossGuarantee | None
    composition: str
    entry: str | None = None

    def __iter__(self) -> Iterator[QueryAnswer]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, place: int) -> QueryAnswer:
        return self.answers[place]
