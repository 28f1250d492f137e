"""Top and bottom coding: values beyond a bound are shown as the bound, or as the mean of all beyond it.

The extremes of a column are its easiest records to find; nothing between the bounds is touched. Hundepool et al.,
"Statistical disclosure control", Wiley 2012, section 3.3.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError, Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import ByName, Either, Number, Value
from sfumato.data.microdata import Microdata
from sfumato.data.records import SECOND, CategoryColumn, Kind, NumberColumn, Records, column_of, mean_of
from sfumato.data.schema import Column
from sfumato.data.texts.values import CodedText, as_numbers, text_of
from sfumato.engines.expressions import Reference
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.counted_columns import CountedColumns
from sfumato.masking.engine_rows import EngineChange, EngineRows
from sfumato.masking.engine_summaries import NumberSummary, coded_values, masked_columns, summaries, value_of_rank
from sfumato.masking.shown_rows import ShownRows
from sfumato.masking.transparency import Test

_FEWEST_FOR_MEAN = 3
_ORDERED = "ordered_codes"
#: A code that a column of numbers, dates or truth values can show.
_CODE = re.compile(r"[-+0-9.:eETZ ]{1,40}|true|false")
#: More strata than these are not compared with their bounds.
_MOST_STRATA = 2000
_EPOCH = datetime.datetime(1970, 1, 1)
_BOUND = Either((Number(), Value()))
_BOUNDS = Either((_BOUND, ByName(_BOUND, at_least=1)), "a number, a category or a date, or a table of bounds by column")


@dataclass(frozen=True)
class TopBottomCoding(Mask):
    """Replace the values above `top` and below `bottom`.

    One bound for all columns, or one for each: `top={"age": 85, "income": 200_000}`; a column without a bound on either
    side is refused. Bounds are values (a category of an ordered column, an ISO date for dates), or with `by="quantile"`
    shares: `top=0.99` codes the highest hundredth. Quantiles come from the data, within each stratum where there are any. Such
    a bound is the outermost value that is shown anyway, so that it tells nothing about those that are coded; a column (or a
    stratum of it) of which the quantiles code nothing at all is refused.

    `show="bound"` shows the bound itself; `show="mean"` (numbers only) the mean of all coded values on that side, which
    keeps the mean of the column exactly and needs at least three of them. Nothing is random: whoever knows the bounds knows
    which records were coded. Where no value lies beyond bounds given as values, `details` and the release say so. The release
    also tells the order of codes that are written as numbers, where the schema gives one.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> masked = sf.TopBottomCoding(top={"age": 80}, columns=("age",)).apply(people).result
    >>> max(masked.table.column("age").to_pylist())
    80
    """

    top: Annotated[float | str | Mapping[str, float | str] | None, _BOUNDS, "values above it are replaced"] = None
    bottom: Annotated[float | str | Mapping[str, float | str] | None, _BOUNDS, "values below it are replaced"] = None
    by: Annotated[Literal["value", "quantile"], "whether bounds are values or shares of the values"] = "value"
    show: Annotated[Literal["bound", "mean"], "what is shown in place of a coded value"] = "bound"
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered"})
    #: A value beyond the bounds is coded, be it the only one of its stratum or not.
    refuses_constant_stratum: ClassVar[bool] = False
    shows_missing: ClassVar[bool] = True
    certain: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        ends = [bound for bound in (self.top, self.bottom) if bound is not None]
        if not ends:
            yield "give top, bottom or both"
        bounds = [each for bound in ends for each in (bound.values() if isinstance(bound, Mapping) else (bound,))]
        if self.by == "quantile" and not all(isinstance(each, (int, float)) and 0 < each < 1 for each in bounds):
            yield "quantiles lie between 0 and 1, ends excluded"

    def check(self, records: Records, people: Microdata) -> None:
        """Every column needs a bound that makes sense for it; a mean needs three values behind it."""
        name = type(self).__name__
        self._refuse_stray(records.names)
        faults = []
        for column in records.columns:
            fault = self._unbounded(column)
            if fault is None:
                low, high = self._bounds(column)
                below, above = _beyond(column, low, high)
                fault = self._misplaced(column, low, high, (int(below.sum()), int(above.sum())), bool(column.known.any()))
            faults += [] if fault is None else [fault]
        all_at_once(Unsupported, name, faults)

    def _refuse_stray(self, names: tuple[str, ...]) -> None:
        stray = {column for bound in (self.top, self.bottom) if isinstance(bound, Mapping) for column in bound} - {*names}
        if stray:
            name = type(self).__name__
            raise ParameterError(f"{name}: bounds are given for '{sorted(stray)[0]}', which is not among the masked columns")

    def _unbounded(self, column: NumberColumn | CategoryColumn) -> str | None:
        """Why a column has no bound to be coded at."""
        if _for(self.top, column.name) is None and _for(self.bottom, column.name) is None:
            return f"column '{column.name}' has neither a top nor a bottom; give one, or leave it out of columns=(…)"
        if isinstance(column, CategoryColumn) and self.show == "mean":
            return f"column '{column.name}' holds ordered categories, which have no mean; use show=\"bound\""
        return None

    def _misplaced(
        self, column: NumberColumn | CategoryColumn, low: float, high: float, coded: tuple[int, int], some: bool
    ) -> str | None:
        """Why a column cannot be coded at these bounds, beyond which so many values lie."""
        if isinstance(column, CategoryColumn) and not all(_can_hold(column, bound) for bound in (low, high)):
            return f"column '{column.name}' cannot show its bound, which is no value of its type"
        if low > high:
            return f"the bottom of column '{column.name}' lies above its top"
        if self.by == "quantile" and some and not any(coded):
            return (
                f"the quantiles of column '{column.name}' code nothing (in a stratum, where there are strata), because too few "
                'values are known or too many share the extreme one; merge strata, or give bounds as values (by="value")'
            )
        if self.show == "mean" and any(0 < side < _FEWEST_FOR_MEAN for side in coded):
            return (
                f"fewer than {_FEWEST_FOR_MEAN} values of column '{column.name}' are coded on one side (in a stratum, where "
                'there are strata), and their mean would give them away; move the bound or use show="bound"'
            )
        return None

    def in_engine(self, rows: EngineRows) -> EngineChange:
        """Bounds compared in the engine; quantiles are looked for by counting, means are sums of whole numbers."""
        name, names = type(self).__name__, masked_columns(self, rows)
        self._refuse_stray(names)
        numbers = summaries(self, rows, [each for each in names if rows.column_kind(each) == "number"], moments=False)
        faults: list[str] = []
        coded: dict[str, tuple[int, int]] = {}
        orders: list[CategoryColumn] = []
        for column in names:
            if column in numbers:
                fault, rows, coded[column] = self._coded_numbers(rows, numbers[column])
            else:
                counted = CountedColumns.of(rows, [column])
                orders += counted.columns
                fault, rows, coded[column] = self._coded_categories(rows, counted)
            faults += [] if fault is None else [fault]
        all_at_once(Unsupported, name, faults)
        idle = [column for column, counts in coded.items() if not any(counts)]
        sides = {column: dict(zip(("bottom", "top"), counts, strict=True)) for column, counts in coded.items()}
        return EngineChange(rows, names, {"nothing_coded": idle, _ORDERED: _ordered_codes(orders)}, {"coded": sides})

    def _coded_numbers(self, rows: EngineRows, column: NumberSummary) -> tuple[str | None, EngineRows, tuple[int, int]]:
        bare = NumberColumn(column.name, np.empty(0), rows.types[column.name])
        fault = self._unbounded(bare)
        if fault is not None:
            return fault, rows, (0, 0)
        low, high = self._bounds(bare) if self.by == "value" else self._ranked(rows, column)
        values = coded_values(rows, column, low, high)
        fault = self._misplaced(bare, low, high, (values.below, values.above), column.count > 0)
        if fault is not None:
            return fault, rows, (0, 0)
        shown = values.means() if self.show == "mean" else (low, high)
        masked = values.replaced(shown, whole=column.whole and self.whole)
        arrow = pa.float64() if column.whole and not self.whole else rows.types[column.name]
        return None, rows.replaced({column.name: (masked, arrow)}), (values.below, values.above)

    def _ranked(self, rows: EngineRows, column: NumberSummary) -> tuple[float, float]:
        """The bounds of `_bounds` for quantiles, found by counting."""
        bottom, top, value = _for(self.bottom, column.name), _for(self.top, column.name), Reference(column.name)
        last = column.count - 1
        low = -math.inf if bottom is None else float(value_of_rank(rows, value, math.ceil(float(bottom) * last)))
        high = math.inf if top is None else float(value_of_rank(rows, value, math.floor(float(top) * last)))
        return low, high

    def _coded_categories(self, rows: EngineRows, counted: CountedColumns) -> tuple[str | None, EngineRows, tuple[int, int]]:
        (column,) = counted.columns
        fault = self._unbounded(column)
        present = column.known
        if fault is None and int(present.sum()) < 2:
            fault = f"column '{column.name}' has one value only, which cannot be coded; leave it out of columns=(…)"
        if fault is not None:
            return fault, rows, (0, 0)
        low, high = self._bounds(column) if self.by == "value" else self._ranked_codes(column, counted)
        below, above = _beyond(column, low, high)
        coded = int(counted.counts[below].sum()), int(counted.counts[above].sum())
        fault = self._misplaced(column, low, high, coded, bool(present.any()))
        if fault is not None:
            return fault, rows, (0, 0)
        shown = column.restored(np.clip(column.codes, low, high).astype(np.int32)).filter(pa.array(present))
        values = counted.values.column(0).filter(pa.array(present))
        rows = rows.looked_up(pa.table({"\x00value": values, "\x00shown": shown}), {column.name: "\x00value"})
        arrow = shown.type.value_type if pa.types.is_dictionary(shown.type) else shown.type
        return None, rows.replaced({column.name: (Reference("\x00shown"), arrow)}, ["\x00shown"]), coded

    def _ranked_codes(self, column: CategoryColumn, counted: CountedColumns) -> tuple[float, float]:
        bottom, top = _for(self.bottom, column.name), _for(self.top, column.name)
        order = np.argsort(column.codes, kind="stable")
        order = order[column.codes[order] >= 0]
        upto = np.cumsum(counted.counts[order])
        last = int(upto[-1]) - 1

        def at(rank: int) -> float:
            return float(column.codes[order[int(np.searchsorted(upto, rank, side="right"))]])

        low = -math.inf if bottom is None else at(math.ceil(float(bottom) * last))
        high = math.inf if top is None else at(math.floor(float(top) * last))
        return low, high

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Code each column."""
        values: dict[str, Any] = {}
        coded: dict[str, dict[str, int]] = {}
        for column in records.columns:
            low, high = self._bounds(column)
            below, above = _beyond(column, low, high)
            entries = column.values if isinstance(column, NumberColumn) else column.codes
            shown = entries.copy()
            for side, bound in ((below, low), (above, high)):
                if side.any():
                    shown[side] = mean_of(entries[side].astype(np.float64)) if self.show == "mean" else bound
            values[column.name] = shown
            coded[column.name] = {"bottom": int(below.sum()), "top": int(above.sum())}
        idle = [name for name, counts in coded.items() if not any(counts.values())]
        return Change(
            values, published={"nothing_coded": idle, _ORDERED: _ordered_codes(records.categories)}, details={"coded": coded}
        )

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The columns in which no value lay beyond a bound, and the order of those whose numbers are codes."""
        some = Test(
            lambda published, _: isinstance(published, list) and published == [name for name in names if name in published]
        )
        return {"nothing_coded": some, _ORDERED: Test(lambda published, _: _are_orders(published, names))}

    def disproved_by(self, shown: ShownRows) -> bool:
        """Where a value lies beyond its bound: the rows coded again are the same rows. Earlier versions did not say which numbers
        are codes in an order of their owner's: whole ones may be."""
        strata = shown.shown(self.strata or ())
        by_stratum = self.by == "quantile" or self.show == "mean"
        if any(_for(self.top, name) is None and _for(self.bottom, name) is None for name in self.columns or ()):
            return True
        if by_stratum and (not shown.complete or len(strata) < len(self.strata or ())):
            return False
        codes_told, orders = _ORDERED in shown.facts, shown.facts.get(_ORDERED, {})
        numbers = shown.numbers(name for name in shown.columns_of(self) if name not in orders)
        numbers = [column for column in numbers if codes_told or not _may_be_codes(column)]
        groups = shown.groups(strata if by_stratum else ())
        if len(groups) > _MOST_STRATA:  # so many take long
            return False
        try:
            columns = [*numbers, *self._in_order(shown, orders)]
            return any(self._shows_more(column.take(rows)) for rows in groups for column in columns)
        except (ParameterError, Unsupported):  # a bound or a code that is none of the order, or a bound of another kind
            return codes_told

    def _in_order(self, shown: ShownRows, orders: Mapping[str, list[str]]) -> Iterable[NumberColumn | CategoryColumn]:
        """The columns of codes, and those of texts whose order the schema publishes."""
        for name in shown.shown(shown.columns_of(self)):
            column, described = shown.table.column(name), shown.schema.columns[name]
            published = described.order if described.role == "sensitive" else None
            is_text = _is_text(column.type)
            if name in orders and (is_text or described.role == "sensitive" and orders[name] != _codes(published or ())):
                raise Unsupported("the order is another one than the schema's, or texts are called codes")
            order = published or orders.get(name)
            if order is not None:
                yield column_of(_spelled(column, order), name, Column(order=tuple(order)))

    def _shows_more(self, column: NumberColumn | CategoryColumn) -> bool:
        """Whether more lies beyond a bound than the mean that stands for all that did."""
        low, high = self._bounds(column)
        if isinstance(column, CategoryColumn):
            return any(side.any() for side in _beyond(column, low, high))
        if column.whole:
            low, high = min(low, np.rint(low)), max(high, np.rint(high))
        slack = SECOND if pa.types.is_timestamp(column.arrow) else 0.0
        beyond = _beyond(column, low - slack, high + slack)
        return any(np.unique(column.values[side]).size > (self.show == "mean") for side in beyond)

    def keeps(self) -> tuple[Kept, ...]:
        """The order of values, unless bounds or means differ between strata; with `show="mean"` the mean too."""
        same = not self.strata or (self.by == "value" and self.show == "bound")
        order = (Kept("order", True, "coded values become equal"),) if same else ()
        return (Kept("mean", True), *order) if self.show == "mean" else order

    def _bounds(self, column: NumberColumn | CategoryColumn) -> tuple[float, float]:
        """Bottom and top as numbers or codes; infinite where there is none."""
        bottom, top = _for(self.bottom, column.name), _for(self.top, column.name)
        if self.by == "value":
            low = -math.inf if bottom is None else _as_number(column, bottom)
            high = math.inf if top is None else _as_number(column, top)
            return low, high
        values = column.values if isinstance(column, NumberColumn) else column.codes.astype(np.float64)
        present = values[column.known]
        if not present.size:
            return -math.inf, math.inf
        # a value that is shown: anything between it and the first coded one would be a function of that one's secret
        low = -math.inf if bottom is None else float(np.quantile(present, float(bottom), method="higher"))
        high = math.inf if top is None else float(np.quantile(present, float(top), method="lower"))
        return low, high


def _ordered_codes(columns: Iterable[CategoryColumn]) -> dict[str, list[str]]:
    """The codes, in the order that their owner declared, of columns that look like numbers where they are published."""
    return {column.name: _codes(column.labels) for column in columns if not _is_text(column.arrow)}


def _codes(labels: Iterable[str]) -> list[str]:
    return [code for code in dict.fromkeys(labels) if _CODE.fullmatch(code)]


def _spelled(column: pa.ChunkedArray, codes: Sequence[str]) -> pa.ChunkedArray:
    """The values as the codes that they are equal to: a number or a time may be written in more than one way."""
    code_of = {_meaning(code): code for code in codes}
    coded = CodedText.of(column)
    as_they_are = set(codes)
    texts = [text if text in as_they_are else code_of.get(_meaning(text), text) for text in coded.values.to_pylist()]
    return pa.chunked_array([coded.with_values(texts).to_arrow()])


def _meaning(text: str) -> object:
    number = as_numbers([text])
    if number is not None:
        return float(number[0])
    try:
        moment = datetime.datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return text


def _can_hold(column: CategoryColumn, bound: float) -> bool:
    """Whether the column, as it is typed, can show the label of a bound."""
    if math.isinf(bound):
        return True
    try:
        pa.array([column.labels[int(bound)]]).cast(column.arrow)
    except pa.ArrowInvalid:
        return False
    return True


def _may_be_codes(column: NumberColumn) -> bool:
    values = column.values[column.known]
    return not pa.types.is_temporal(column.arrow) and bool(np.all(values == np.rint(values)))


def _are_orders(published: object, names: tuple[str, ...]) -> bool:
    return (
        isinstance(published, dict)
        and set(published) <= set(names)
        and all(isinstance(codes, list) and len(set(map(str, codes))) == len(codes) for codes in published.values())
        and all(isinstance(code, str) and _CODE.fullmatch(code) for codes in published.values() for code in codes)
    )


def _is_text(arrow: pa.DataType) -> bool:
    value = arrow.value_type if pa.types.is_dictionary(arrow) else arrow
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


def _for(bound: float | str | Mapping[str, float | str] | None, column: str) -> float | str | None:
    return bound.get(column) if isinstance(bound, Mapping) else bound


def _beyond(column: NumberColumn | CategoryColumn, low: float, high: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    values = column.values if isinstance(column, NumberColumn) else column.codes
    present = column.known
    return present & (values < low), present & (values > high)


def _as_number(column: NumberColumn | CategoryColumn, bound: float | str) -> float:
    """A bound in the unit of the column: its code, its days since 1970, or the number."""
    if isinstance(column, CategoryColumn):
        if text_of(bound) not in column.labels:
            raise ParameterError(
                f"TopBottomCoding: the bound of column '{column.name}' is none of the categories that the schema orders"
            )
        return float(column.labels.index(str(text_of(bound))))
    if isinstance(bound, (int, float)) and not isinstance(bound, bool):
        return float(bound)
    if isinstance(bound, bool) or not pa.types.is_temporal(column.arrow):
        raise ParameterError(f"TopBottomCoding: the bound of column '{column.name}' must be a number")
    try:
        moment = datetime.datetime.fromisoformat(bound)
        moment = moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ParameterError(f"TopBottomCoding: the bound of column '{column.name}' must be an ISO date") from None
    if pa.types.is_date(column.arrow) and moment.time() != datetime.time():
        raise ParameterError(f"TopBottomCoding: the bound of column '{column.name}' must be a date without a time of day")
    return (moment - _EPOCH) / datetime.timedelta(days=1)
