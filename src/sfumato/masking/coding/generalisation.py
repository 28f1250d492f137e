"""Generalisation and suppression: columns shown at a chosen level of their hierarchy, chosen or rare values not at all.

Global recoding without a search: the owner names the level. What is shown is true, only less detailed. Samarati, "Protecting
respondents' identities in microdata release", IEEE TKDE 13(6), 2001; Hundepool et al., "Statistical disclosure
control", Wiley 2012, section 3.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError, Unsupported, all_at_once
from sfumato.core.ranges import Because, ByName, Each, Value, Whole
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.hierarchies.shown_levels import MOST_LEVELS
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, Records
from sfumato.data.relation import COUNT
from sfumato.data.schema import Column
from sfumato.data.texts.values import CodedText, text_of
from sfumato.engines.expressions import Reference
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.engine_summaries import masked_columns
from sfumato.masking.shown_rows import ShownRows


@dataclass(frozen=True)
class Generalisation(Mask):
    """Show columns at a level of their hierarchy, and replace some values by `*`.

    `levels` gives the level of each column: 1 is the first above the values themselves, the highest is `*`. `suppress` names
    values that are not shown at all, by column: `{"diagnosis": ["HIV"]}`. `fewer_than` replaces what fewer than so many
    records (of the stratum) would show after that; where these are fewer than so many together, the rarest other values join
    them until they are enough, so that `*` does not single them out. Columns are those named in `levels` and `suppress`, and with
    `fewer_than` those in `columns` too.

    Masked columns become text; missing values stay missing. Hierarchies come from the schema; a column without one is flat,
    with `*` as level 1. Nothing is random and nothing false. The release tells all this, the values in
    `suppress` among it (who knows the domain sees which are missing anyway); `fewer_than` names none.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> masked = sf.Generalisation({"age": 1}).apply(people).result
    >>> masked.table.column("age")[0].as_py()
    '[20, 25)'
    """

    levels: Annotated[
        Mapping[str, int],
        Because(ByName(Whole(at_least=1)), "level 0 would leave a column as it is"),
        "the level of its hierarchy at which each column is shown",
    ] = field(default_factory=dict)
    suppress: Annotated[
        Mapping[str, tuple[str, ...]],
        ByName(Each(Value(), what="a list of values")),
        "values of each column that are not shown at all",
    ] = field(default_factory=dict)
    fewer_than: Annotated[int | None, Whole(at_least=2), "what fewer records than this show is replaced"] = None
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})
    refuses_constant: ClassVar[bool] = False
    shows_missing: ClassVar[bool] = True
    certain: ClassVar[bool] = True
    generalises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.columns is None and isinstance(self.levels, Mapping) and isinstance(self.suppress, Mapping):
            object.__setattr__(self, "columns", self._named or None)
        super().__post_init__()

    def coherent(self) -> Iterable[str]:
        if not self._named and self.fewer_than is None:
            yield "give levels, suppress or fewer_than"
        if not set(self._named) <= set(self.columns or ()):
            yield "levels and suppress name a column that is not in columns=(…)"

    @property
    def _named(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.levels, *self.suppress)))

    def check(self, records: Records, people: Microdata) -> None:
        """Levels exist; every column is changed by something; there are as many records as `fewer_than` asks for."""
        name = type(self).__name__
        faults = []
        for column in records.names:
            leveled = column in self.levels
            height = _tree(people, column).height if leveled else 0
            faults.append(self._fault(column, height, set() if leveled else set(_texts(people, column))))
        all_at_once(ParameterError, name, filter(None, faults))
        if self.fewer_than is not None and records.size < self.fewer_than:
            raise Unsupported(
                f"{name}: fewer_than={self.fewer_than} is more than there are records, {records.size:,} (in a stratum, where "
                "there are strata)"
            )

    def _fault(self, column: str, height: int, texts: Collection[str | None]) -> str:
        """Why a column with a hierarchy of this height, or with these texts, cannot be masked; empty where it can."""
        level = self.levels.get(column)
        if level is not None and level > height:
            return f"column '{column}' has no level {level}: its hierarchy ends at {height}"
        if (
            level is None
            and self.fewer_than is None
            and self._hidden(column).isdisjoint(text for text in texts if text is not None)
        ):
            return (
                f"column '{column}' has neither a level nor a value that is suppressed, so it would stay as it is; name a value "
                "that occurs, or leave it out of columns=(…)"
            )
        return ""

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Recode each column by its distinct texts; hierarchies stand on the whole table, whatever the stratum."""
        values, suppressed, different = {}, {}, {}
        for done, name in enumerate(records.names):
            context.progress("generalising", done, len(records.names))
            coded = CodedText.of(context.table.column(name))
            hidden, level = self._hidden(name), self.levels.get(name)
            tree = _tree(context.people, name) if level is not None else None
            texts = [
                ROOT if text in hidden else text if tree is None or level is None else tree.generalise(text, level)
                for text in coded.values.to_pylist()
            ]
            shown = CodedText(coded.codes[context.rows], coded.values).with_values(texts)
            shown = shown if self.fewer_than is None else _without_rare(shown, self.fewer_than)
            labels = shown.values.to_pylist()
            values[name] = shown.to_arrow()
            suppressed[name] = int((shown.codes == labels.index(ROOT)).sum()) if ROOT in labels else 0
            different[name] = int((shown.counts() > 0).sum())
        return Change(values, details={"suppressed": suppressed, "different_values": different})

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Each different value is looked up in a table of what is shown for it."""
        name, names = type(self).__name__, masked_columns(self, rows)
        if self.fewer_than is not None and rows.size < self.fewer_than:
            raise Unsupported(f"{name}: fewer_than={self.fewer_than} is more than there are records, {rows.size:,}")
        shown = {column: self._shown_in_engine(rows, column) for column in names}
        all_at_once(ParameterError, name, (fault for fault, _ in shown.values() if fault))
        for place, (column, (_, table)) in enumerate(shown.items()):
            key, text = table.column_names
            rows = rows.looked_up(table.rename_columns([key, f"{text} {place}"]), {column: key})
            rows = rows.replaced({column: (Reference(f"{text} {place}"), pa.string())}, [f"{text} {place}"])
        return EngineChange(rows, names)

    def _shown_in_engine(self, rows: EngineRows, name: str) -> tuple[str, pa.Table]:
        """What keeps a column from being masked, if anything, and what is shown for each of its values."""
        answer = rows.counted([name])
        counts = answer.column(COUNT).to_numpy().astype(np.int64)
        coded = CodedText.of(answer.column(name))
        present = coded.codes >= 0
        weights = np.bincount(coded.codes[present], weights=counts[present], minlength=len(coded.values)).astype(np.int64)
        listed = dict(sorted(zip(coded.values.to_pylist(), weights.tolist(), strict=True)))
        level, hidden = self.levels.get(name), self._hidden(name)
        described = rows.schema.columns.get(name, Column())
        tree = (
            hierarchy_builders.build(name, described, list(listed), list(listed.values()), rows.schema.folder) if level else None
        )
        fault = self._fault(name, 0 if tree is None else tree.height, set(listed))
        if fault:
            return fault, answer
        texts = [
            ROOT if text in hidden else text if tree is None or level is None else tree.generalise(text, level)
            for text in coded.values.to_pylist()
        ]
        by_text = CodedText(np.arange(len(texts), dtype=np.int32), coded.values).with_values(texts)
        if self.fewer_than is not None:
            totals = np.bincount(by_text.codes, weights=weights, minlength=len(by_text.values)).astype(np.int64)
            by_text = _without_rare(by_text, self.fewer_than, totals)
        shown = by_text.to_arrow().cast(pa.string()).take(pa.array(coded.codes[present]))
        return "", pa.table({"\x00value": answer.column(name).filter(pa.array(present)), "\x00shown": shown})

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where a column is no text, or shows what is suppressed or too rare. Hierarchies stay with the owner of masked rows, so
        that a level is only compared with the highest that there are."""
        return any(self._shows_more(name, shown) for name in shown.shown(shown.columns_of(self)))

    def _shows_more(self, name: str, shown: ShownRows) -> bool:
        texts = {text: count for text, count in shown.texts(name).items() if text != ROOT}
        # a level may show a group of the same name
        hidden = self._hidden(name) if name not in self.levels else set()
        fewest = self.fewer_than if self.fewer_than is not None and shown.complete else 0
        if shown.are_numbers((name,)) or self.levels.get(name, 0) > MOST_LEVELS:
            return True
        return not hidden.isdisjoint(texts) or any(count < fewest for count in texts.values())

    def keeps(self) -> tuple[Kept, ...]:
        """Nothing that numbers could state: what is shown is true, with less detail."""
        return ()

    def _hidden(self, column: str) -> set[str]:
        return {str(text_of(value)) for value in self.suppress.get(column, ())}


def _texts(people: Microdata, name: str) -> dict[str | None, int]:
    """How often each text occurs in the whole table, in the order of texts, a missing value last."""
    coded = CodedText.of(people.table().column(name))
    counts: dict[str | None, int] = dict(sorted(zip(coded.values.to_pylist(), coded.counts().tolist(), strict=True)))
    missing = int((coded.codes < 0).sum())
    return {**counts, None: missing} if missing else counts


def _tree(people: Microdata, name: str) -> Hierarchy:
    """The column's hierarchy over all values that occur, built once for these data."""
    tree = people.hierarchies.get(name)
    if tree is None:
        counts = _texts(people, name)
        described = people.schema.columns.get(name, Column())
        tree = hierarchy_builders.build(name, described, list(counts), list(counts.values()), people.schema.folder)
        people.hierarchies[name] = tree
    return tree


def _without_rare(shown: CodedText, fewest: int, totals: NDArray[np.int64] | None = None) -> CodedText:
    """Rare texts become `*`; so do the rarest of the others while those with `*` are fewer than `fewest`. `totals` says how many
    records show each text, where the codes are not those of records."""
    counts = shown.counts() if totals is None else totals
    texts: list[str | None] = list(shown.values.to_pylist())
    starred = {place for place, text in enumerate(texts) if text == ROOT or 0 < counts[place] < fewest}
    pool = int(sum(counts[place] for place in starred))
    for place in sorted(np.flatnonzero(counts > 0).tolist(), key=lambda place: (int(counts[place]), str(texts[place]))):
        if not 0 < pool < fewest:
            break
        if place not in starred:
            starred.add(place)
            pool += int(counts[place])
    return shown.with_values([ROOT if place in starred else text for place, text in enumerate(texts)])
