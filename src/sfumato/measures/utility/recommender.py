"""Recommender loss: how well does a recommender trained on masked ratings predict ratings it has not seen?

A biased matrix factorisation, r ≈ μ + b_user + b_item + p_user · q_item, is fitted by alternating least squares to original and
to masked ratings; both predict the same held-out original ratings. Masking may help, as it takes noise away. Koren, Bell,
Volinsky, "Matrix factorization techniques for recommender systems", Computer 42(8), 2009; masked ratings: Sakuma, Osame,
"Recommendation with k-anonymized ratings", Transactions on Data Privacy 11, 2018.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, MissingColumn, Unsupported, all_at_once
from sfumato.core.randomness import default
from sfumato.core.ranges import ColumnName, Count, Positive, Probability
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, Masked
from sfumato.data.microdata import Microdata
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.parameters import DrawSeed

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_CHUNK = 1 << 15  # ratings whose products are held at a time


@dataclass(frozen=True)
class RecommenderLoss(Measure[Microdata, Compared]):
    """Root mean squared error of predicted ratings, trained on masked ratings, minus that of training on original ones.

    Both tables are long: one row per rating with `user`, `item` and `rating`. A share `held_out` of the original ratings is
    kept for testing (which, by `seed`) and taken out of both tables. Masked ratings that were averaged *with* the held-out ones
    still know of them; to rule that out, `split` first, mask the training part alone, and `compare`. Ratings are predicted with
    `factors` factors after `rounds` rounds, `penalty` being added for each rating a user or item has. Parts have both errors
    and those of guessing from the averages of users and items.

    >>> import pyarrow as pa
    >>> ratings = pa.table({"user": [1, 1, 2, 2, 3, 3], "item": ["a", "b", "a", "b", "a", "b"], "rating": [5, 3, 4, 2, 5, 2]})
    >>> RecommenderLoss(factors=1).score(ratings, ratings).value
    0.0
    """

    user: Annotated[ColumnName, "the column of users"] = "user"
    item: Annotated[ColumnName, "the column of items"] = "item"
    rating: Annotated[ColumnName, "the column of ratings"] = "rating"
    factors: Annotated[Count, "factors of a user and of an item"] = 8
    rounds: Annotated[Count, "rounds of fitting"] = 10
    penalty: Annotated[Positive, "what is added for each rating of a user or item"] = 0.1
    held_out: Annotated[Probability, "the share of the ratings kept for testing"] = 0.2
    seed: DrawSeed = "recommender"
    key: ClassVar[str] = "recommender"
    masked: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        if len({self.user, self.item, self.rating}) < 3:
            yield "user, item and rating must be three columns"

    def score(self, original: Microdata, released: Compared) -> Score:
        """RMSE masked − RMSE original, in units of the rating."""
        ratings = _table(original)
        train, test = self.split(ratings)
        return self.compare(train, self._without(_table(released), test), test)

    def split(self, ratings: object) -> tuple[pa.Table, pa.Table]:
        """Ratings to train on and held-out ones; drawn pair by pair of user and item, so that no copy stays behind."""
        table = _table(ratings)
        users, items = self._codes([table])
        _, pair = np.unique(users * (int(items.max(initial=0)) + 1) + items, return_inverse=True)
        pairs = int(pair.max(initial=-1)) + 1
        if pairs < 2:
            raise Unsupported("a recommender needs ratings of at least two pairs of a user and an item")
        count = min(pairs - 1, max(1, round(self.held_out * pairs)))
        held = np.zeros(pairs, dtype=bool)
        held[Draws(default(self.seed)).sample(pairs, count)] = True
        return table.filter(pa.array(~held[pair])), table.filter(pa.array(held[pair]))

    def compare(self, train: object, masked_train: object, test: object) -> Score:
        """Both recommenders on the same test ratings."""
        tables = [_table(train), _table(masked_train), _table(test)]
        if not all(table.num_rows for table in tables):
            raise Unsupported("a recommender needs original ratings, masked ratings and held-out ratings; one of them has none")
        users, items = self._codes(tables)
        ratings = np.concatenate([self._ratings(table) for table in tables])
        ends = np.cumsum([table.num_rows for table in tables])
        parts_of = [slice(0, ends[0]), slice(ends[0], ends[1]), slice(ends[1], ends[2])]
        everybody, everything = int(users.max()) + 1, int(items.max()) + 1
        test_part = parts_of[2]
        parts = {}
        for name, part in zip(("original", "masked"), parts_of[:2], strict=True):
            start = 0.1 * Draws(default(self.seed)).normal(everything, self.factors)
            fitted = factorise(users[part], items[part], ratings[part], everybody, start, self.rounds, self.penalty)
            for what, model in ((f"RMSE {name}", fitted), (f"RMSE averages {name}", fitted.averages)):
                missed = model.predict(users[test_part], items[test_part]) - ratings[test_part]
                parts[what] = float(np.sqrt(np.mean(missed**2)))
        value = parts["RMSE masked"] - parts["RMSE original"]
        meaning = "error of predicted ratings added by training on masked ratings"
        return Score(self.key, value, "lower", meaning, MappingProxyType(parts))

    def _without(self, table: pa.Table, test: pa.Table) -> pa.Table:
        """The masked ratings except those of held-out pairs."""
        users, items = self._codes([table, test])
        keys = users * (int(items.max(initial=0)) + 1) + items
        return table.filter(pa.array(~np.isin(keys[: table.num_rows], keys[table.num_rows :])))

    def _codes(self, tables: list[pa.Table]) -> tuple[Int, Int]:
        """Users and items of all tables one after another, with the same codes."""
        users, items = (_coded([table.column(name) for table in map(self._checked, tables)]) for name in (self.user, self.item))
        return users, items

    def _checked(self, table: pa.Table) -> pa.Table:
        gone = [name for name in (self.user, self.item, self.rating) if name not in table.column_names]
        all_at_once(MissingColumn, "recommender", [f"column '{name}' is not in the table" for name in gone])
        unknown = [name for name in (self.user, self.item, self.rating) if table.column(name).null_count]
        all_at_once(Unsupported, "recommender", [f"column '{name}' has missing values; leave those rows out" for name in unknown])
        return table

    def _ratings(self, table: pa.Table) -> Real:
        try:
            ratings = table.column(self.rating).cast(pa.float64()).to_numpy()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise Unsupported(f"column '{self.rating}' does not hold numbers") from None
        if not np.isfinite(ratings).all():
            raise Unsupported(f"column '{self.rating}' has ratings that are not finite numbers")
        return np.asarray(ratings, dtype=np.float64)


@dataclass(frozen=True)
class Factors:
    """A fitted recommender: overall mean, then for users and items the factors with the bias in the last column."""

    mean: float
    users: Real
    items: Real

    def predict(self, users: Int, items: Int) -> Real:
        """Predicted ratings of these pairs; who or what was never seen is average."""
        u, i = self.users[users], self.items[items]
        predicted: Real = self.mean + u[:, -1] + i[:, -1] + (u[:, :-1] * i[:, :-1]).sum(axis=1)
        return predicted

    @property
    def averages(self) -> Factors:
        """The same without factors: what biases alone predict."""
        return Factors(self.mean, self.users[:, -1:], self.items[:, -1:])


def factorise(users: Int, items: Int, ratings: Real, everybody: int, start: Real, rounds: int, penalty: float) -> Factors:
    """Alternating least squares: users for given items, items for given users; `start` has the items' first factors."""
    mean = float(ratings.mean())
    by_user, by_item = np.argsort(users, kind="stable"), np.argsort(items, kind="stable")
    found_items = np.hstack([start, np.zeros((len(start), 1))])
    found_users = np.zeros((everybody, found_items.shape[1]))
    centred = ratings - mean
    for _ in range(rounds):
        _solve(found_users, users[by_user], found_items[items[by_user]], centred[by_user], penalty)
        _solve(found_items, items[by_item], found_users[users[by_item]], centred[by_item], penalty)
    return Factors(mean, found_users, found_items)


def _solve(factors: Real, owners: Int, others: Real, centred: Real, penalty: float) -> None:
    """Least squares for each owner from its ratings (which stand together): factors and bias against the other side's factors
    and 1, after the other side's bias is taken off. Only the products of one chunk of owners are held."""
    width = factors.shape[1]
    features = np.hstack([others[:, :-1], np.ones((len(others), 1))])
    targets = centred - others[:, -1]
    starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    stops = np.r_[starts[1:], owners.size]
    first = 0
    while first < starts.size:
        last = max(first + 1, int(np.searchsorted(stops, starts[first] + _CHUNK, side="right")))
        begin, end = starts[first], stops[last - 1]
        inside = starts[first:last] - begin
        part = features[begin:end]
        grams = np.add.reduceat(part[:, :, None] * part[:, None, :], inside, axis=0)
        sums = np.add.reduceat(part * targets[begin:end, None], inside, axis=0)
        sizes = (stops[first:last] - starts[first:last]).astype(np.float64)
        grams += (penalty * sizes)[:, None, None] * np.eye(width)
        factors[owners[starts[first:last]]] = np.linalg.solve(grams, sums[:, :, None])[:, :, 0]
        first = last


def _coded(columns: list[pa.ChunkedArray]) -> Int:
    kind = columns[0].type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        chunks = [chunk.cast(kind) for column in columns for chunk in column.chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise Unsupported("users and items must have the same type in the original and the masked ratings") from None
    if not chunks:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(pa.chunked_array(chunks).combine_chunks().dictionary_encode().indices, dtype=np.int64)


def _table(ratings: object) -> pa.Table:
    if isinstance(ratings, Microdata):
        return ratings.table()
    if isinstance(ratings, Masked):
        return ratings.table
    if isinstance(ratings, pa.Table):
        return ratings
    raise InputError("ratings are Microdata, a Masked or an Arrow table with a row per rating")
