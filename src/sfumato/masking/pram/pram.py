"""PRAM, the post-randomisation method: each category becomes another with the probabilities of its row of a matrix.

The matrix is given, keeps each category with one probability, is randomised response at ε, or is invariant, so that
frequencies are kept on average; draws are by inversion of the cumulative rows.
Gouweleeuw, Kooiman, Willenborg, De Wolf, "Post randomisation for statistical disclosure control: theory and
implementation", Journal of Official Statistics 14(4), 1998.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from sfumato.core.certificate import plain
from sfumato.core.errors import ParameterError, Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Number, Range, Share
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, Kind, Records
from sfumato.data.schema import Column, Schema
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.counted_columns import CountedColumns
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.engine_summaries import masked_columns
from sfumato.masking.pram import transition_matrix as matrices
from sfumato.masking.pram.keyed_transitions import changed
from sfumato.masking.pram.transition_law import JOIN, TransitionLaw, Variable, invariant_told, is_same_law, published_labels
from sfumato.masking.transparency import Test, VisibleTable, alike
from sfumato.masking.unchanged import MOST_UNCHANGED, changed_at_random, least_changed


class _Matrices(Range):
    """Matrices by column, as plain numbers; what is wrong with one is an error at once."""

    words = "a table of matrices by column"

    def settled(self, value: Any) -> dict[str, matrices.Rows]:
        if not isinstance(value, Mapping) or not value:
            raise self.refuse(value)
        return {str(name): matrices.checked(rows, str(name)) for name, rows in value.items()}


@dataclass(frozen=True)
class Pram(Mask):
    """Change categories at random by a matrix of transition probabilities.

    `stay`: every category stays with this probability and otherwise becomes any other of the column, all equally likely.
    `epsilon`: randomised response, the probability to stay is e^ε/(e^ε + c - 1) among c categories. `matrix`: the owner's
    own, by column: rows in the order of the column's categories, or `{label: {label: probability}}`; columns it does not
    name follow `stay` or `epsilon`. `suppress`: afterwards a value becomes the extra category `*` with this probability.
    `invariant`: use the invariant matrix built on these (two-stage PRAM), so that expected frequencies are those of the
    data; whoever has the matrix can compute them, so a column (in each stratum) needs at least 100 known values. `joint`:
    treat the columns as one, whose categories are combinations of theirs.

    The categories of a column are its declared domain or order, otherwise those that occur (`source` says `data` then, and
    publishing the matrix tells that they occur). Missing values stay missing. The matrix and the ε that it provides are
    published: an analyst corrects frequencies by it, an intruder computes the posterior of a true category. The columns
    are drawn independently, so their ε add up for a record; several records of a person add up further. The ε is a property of
    the matrix, about values that are there; draws are in floating point and an invariant matrix depends on the data, so that
    no differential privacy is claimed.

    A column that `stay`, `epsilon` or `suppress` would leave as it is in more than 95 % of its values is refused. An own
    matrix is taken as it is written, even one that changes nothing, and a published `notice` says so; `details` has the
    `unchanged` share by column and the one that was expected.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> masked = sf.Pram(stay=0.75, columns=("smoker",)).apply(pa.table({"smoker": ["yes", "no"] * 50}), seed=1).result
    >>> masked.transparency["transitions"]["smoker"]["matrix"]
    [[0.75, 0.25], [0.25, 0.75]]
    >>> round(masked.transparency["epsilon"], 6)   # ln 3
    1.098612
    """

    stay: Annotated[float | None, Number(at_least=0, below=1), "the probability that a category stays what it is"] = None
    epsilon: Annotated[float | None, Number(at_least=0), "the ε of randomised response, in place of stay"] = None
    matrix: Annotated[Mapping[str, Any] | None, _Matrices(), "the owner's matrix of transition probabilities, by column"] = None
    suppress: Annotated[Share, "the probability that a value becomes the extra category * afterwards"] = 0.0
    invariant: Annotated[bool, "whether the matrix is made so that expected frequencies stay"] = False
    joint: Annotated[bool, "whether the columns are treated as one"] = False

    handles: ClassVar[frozenset[Kind]] = frozenset({"ordered", "category"})
    #: A column with one value may still change within its declared domain; `check` refuses where it cannot.
    refuses_constant: ClassVar[bool] = False
    shows_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.matrix is not None and self.columns is None and self.stay is None and self.epsilon is None:
            object.__setattr__(self, "columns", tuple(self.matrix))

    def coherent(self) -> Iterable[str]:
        drawn = self.stay is not None or self.epsilon is not None or self.matrix is not None
        if self.matrix is not None and self.joint:
            yield "joint columns take stay or epsilon, not a matrix by column"
        if self.stay is not None and self.epsilon is not None:
            yield "give stay or epsilon, not both"
        if not drawn and not self.suppress:
            yield "give stay, epsilon, a matrix, or suppress: nothing would change otherwise"
        if self.joint and self.suppress:
            yield "joint columns have no extra category; leave out suppress"
        if self.invariant and self.suppress:
            yield "an invariant matrix has no extra category; leave out suppress"
        if self.invariant and not drawn:
            yield "invariant is built on stay, epsilon or a matrix"

    def check(self, records: Records, people: Microdata) -> None:
        """Refuse columns that the matrix does not fit, or would leave as they are."""
        faults = self._faults(records.categories)
        self._refuse([] if faults else self._variables(records.categories, people.schema), faults)

    def _faults(self, columns: Sequence[CategoryColumn]) -> list[str]:
        names = {column.name for column in columns}
        faults = [f"matrix names column '{name}', which is not masked" for name in self.matrix or () if name not in names]
        if self.joint and any(not column.known.all() for column in columns):
            faults.append("joint columns must not have missing values; mask them one by one, or leave such records out")
        return faults

    def _refuse(self, variables: Sequence[Variable], faults: list[str]) -> None:
        for variable in variables:
            faults += variable.faults(self.stay is not None or self.epsilon is not None, self.invariant, self.suppress > 0)
        all_at_once(ParameterError, "Pram", faults)
        all_at_once(Unsupported, "Pram", (fault for variable in variables for fault in self._nearly_as_it_is(variable)))

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Draw a category from the row of each."""
        values: dict[str, Any] = {}
        transitions: dict[str, Any] = {}
        moved, unchanged, expected, notices = {}, {}, {}, []
        for position, variable in enumerate(self._variables(records.categories, context.people.schema)):
            context.progress("post-randomising", position, len(records.columns))
            law = self.law(variable)
            drawn = law.draw(variable.codes, draws)
            values.update(variable.restored(drawn, law.outputs))
            transitions[variable.name] = law.published(variable.source)
            moved[variable.name] = int(np.count_nonzero(drawn != variable.codes))
            present = int(np.count_nonzero(variable.codes >= 0))
            unchanged[variable.name] = 1.0 - moved[variable.name] / present if present else 0.0
            expected[variable.name] = law.kept(variable.frequencies())
            notices += law.notices(variable.name, self.invariant)
        context.progress("post-randomising", len(records.columns), len(records.columns))
        details = {"changed": moved, "unchanged": unchanged, "expected_unchanged": expected}
        return Change(values, None, False, _published(transitions, notices), details)

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Categories looked up in tables of the law; an invariant matrix is made of counts that the engine adds up."""
        names = masked_columns(self, rows)
        together = [names] if self.joint and len(names) > 1 else [(name,) for name in names]
        counted = [CountedColumns.of(rows, each) for each in together]
        faults = self._faults([column for each in counted for column in each.columns])
        variables = [] if faults else [self._variable(each, rows.schema) for each in counted]
        self._refuse(variables, faults)
        transitions: dict[str, Any] = {}
        notices: list[str] = []
        expected = {}
        for each, variable in zip(counted, variables, strict=True):
            law = self.law(variable)
            rows = changed(rows, each, variable, law)
            transitions[variable.name] = law.published(variable.source)
            expected[variable.name] = law.kept(variable.frequencies())
            notices += law.notices(variable.name, self.invariant)
        return EngineChange(rows, names, _published(transitions, notices), {"expected_unchanged": expected})

    def _variable(self, counted: CountedColumns, schema: Schema) -> Variable:
        (variable,) = self._variables(counted.columns, schema)
        return replace(variable, weights=counted.counts)

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The law of each column, the sum of their ε, and what a reader has to know about them, each tested with the others."""
        return dict.fromkeys(("transitions", "epsilon", "notice"), Test(lambda published, visible: True))

    def could_tell(self, facts: Plain, names: tuple[str, ...], visible: VisibleTable) -> bool:
        """Whether the laws are those of the parameters and these columns, with the ε and the notice that follow from them."""
        laws = facts.get("transitions")
        if not super().could_tell(facts, names, visible):
            return False
        if laws is None:
            return not set(facts)
        variables = [JOIN.join(names)] if self.joint and len(names) > 1 else list(names)
        if not isinstance(laws, dict) or sorted(laws) != sorted(variables):
            return False
        restated = {name: self._retold(name, laws[name], visible) for name in variables}
        notices = [notice for name, law in restated.items() if law is not None for notice in law.notices(name, self.invariant)]
        total = math.fsum(law.epsilon() for law in restated.values() if law is not None)
        return (
            None not in restated.values()
            and facts.get("notice") == ("; ".join(notices) or None)
            and ("epsilon" not in facts or alike(facts["epsilon"], plain(total)))
        )

    def _retold(self, name: str, facts: Any, visible: VisibleTable) -> TransitionLaw | None:
        """The law that was published about a column, made again from the parameters; None where it is another one."""
        source = str(facts.get("source")) if isinstance(facts, dict) else ""
        labels = published_labels(facts) if source in ("data", "declared") else None
        if labels is None:
            return None
        rows = (self.matrix or {}).get(name)
        if isinstance(rows, dict):  # a certificate has lost the order of its rows
            if set(rows) != set(labels):
                return None
            rows = {label: rows[label] for label in labels}
        elif rows is not None and len(rows) != len(labels):
            return None
        described = visible.schema.columns.get(name, Column())
        declared = described.order or described.domain
        if source == "declared" and rows is None and declared and {*labels} != {*declared}:
            return None
        if self.invariant:  # it depends on the frequencies, which nobody else has
            return invariant_told(facts, labels)
        law = self.law(Variable(name, (), np.empty(0, dtype=np.int32), labels, source, 0, rows))
        return law if is_same_law(facts, plain(law.published(source))) else None

    def law(self, variable: Variable) -> TransitionLaw:
        """The law by which the categories of a variable change."""
        labels, count = variable.labels, len(variable.labels)
        outputs, matrix, stay = labels, None, None
        if isinstance(variable.rows, dict):
            _, outputs, matrix = matrices.from_rows(variable.rows)
        elif variable.rows is not None:
            matrix = np.array(variable.rows)
        elif self.epsilon is not None:
            stay = matrices.staying(self.epsilon, count)
        else:
            stay = 1.0 if self.stay is None else self.stay
        if self.invariant:
            before = matrices.uniform(1.0 if stay is None else stay, count) if matrix is None else matrix
            frequencies = variable.frequencies()
            if variable.source != "data":
                frequencies = matrices.occurring(frequencies)
            matrix, stay = matrices.invariant(before, frequencies / max(frequencies.sum(), 1.0)), None
        return TransitionLaw(labels, outputs, stay, matrix, self.suppress)

    def _nearly_as_it_is(self, variable: Variable) -> list[str]:
        """Why a column without an own matrix would be published nearly as it is; an own matrix is what its owner wrote."""
        if variable.rows is not None or not np.any(variable.codes >= 0):
            return []
        least = 1.0 - MOST_UNCHANGED
        if self.invariant:  # rare categories are reached rarely, which keeps a column of nearly one category as it is
            least = least_changed(changed_at_random(variable.frequencies()))
        kept = self.law(variable).kept(variable.frequencies())
        if kept <= 1.0 - least or math.isclose(kept, 1.0 - least):
            return []
        highest = math.floor(100 * matrices.epsilon_of(MOST_UNCHANGED, len(variable.labels))) / 100
        return [
            f"column '{variable.name}' is expected to keep {100 * kept:.1f} % of its values, so that it would be published "
            f"nearly as it is; give stay = {MOST_UNCHANGED:g} or less, epsilon = {highest:g} or less, or suppress = "
            f"{1 - MOST_UNCHANGED:.2g} or more; or leave it out of columns=(…)"
        ]

    def keeps(self) -> tuple[Kept, ...]:
        """Frequencies, on average, where the matrix is invariant."""
        note = "of each column, on average over draws; declared categories that do not occur gain up to 1 % together"
        return (Kept("frequencies", note=note),) if self.invariant else ()

    def _variables(self, columns: Sequence[CategoryColumn], schema: Schema) -> list[Variable]:
        matrices = self.matrix or {}
        parts = [Variable.of(column, schema.columns.get(column.name, Column()), matrices.get(column.name)) for column in columns]
        return [Variable.joined(parts)] if self.joint and len(parts) > 1 else parts


def _published(transitions: Mapping[str, Any], notices: Sequence[str]) -> dict[str, Any]:
    """The law of each column, the sum of their ε, and what a reader has to know about them."""
    total = math.fsum(law["epsilon"] for law in transitions.values())
    return {"transitions": transitions, "epsilon": total, **({"notice": "; ".join(notices)} if notices else {})}
