"""The recommender: least squares against a plain solution, held-out ratings, masked ratings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from sfumato.measures.utility.recommender import RecommenderLoss, factorise


def ratings(users: int = 60, items: int = 40, share: float = 0.5, seed: int = 0, noise: float = 0.2) -> pa.Table:
    """Ratings that two factors and biases explain, but for some noise."""
    draw = np.random.default_rng(seed)
    taste, kind = draw.normal(size=(users, 2)), draw.normal(size=(items, 2))
    whole = (
        3
        + draw.normal(size=(users, 1)) / 2
        + draw.normal(size=items) / 2
        + taste @ kind.T
        + noise * draw.normal(size=(users, items))
    )
    user, item = np.nonzero(draw.random((users, items)) < share)
    return pa.table({"user": user, "item": [f"item {i}" for i in item], "rating": whole[user, item]})


def plain_rounds(
    users: list[int],
    items: list[int],
    values: list[float],
    start: np.ndarray,
    rounds: int,
    penalty: float,
) -> np.ndarray:
    """The same alternation, one user and one item at a time by least squares on stacked equations."""
    mean = sum(values) / len(values)
    width = start.shape[1]
    q, b = start.copy(), np.zeros(len(start))
    p, a = np.zeros((max(users) + 1, width)), np.zeros(max(users) + 1)
    for _ in range(rounds):
        for mine, factor, bias, theirs, other, shift in ((users, p, a, items, q, b), (items, q, b, users, p, a)):
            for owner in set(mine):
                own = [k for k, found in enumerate(mine) if found == owner]
                rows = np.array([[*other[theirs[k]], 1.0] for k in own])
                wanted = np.array([values[k] - mean - shift[theirs[k]] for k in own])
                ridge = np.sqrt(penalty * len(own)) * np.eye(width + 1)
                solved = np.linalg.lstsq(np.vstack([rows, ridge]), np.r_[wanted, np.zeros(width + 1)], rcond=None)[0]
                factor[owner], bias[owner] = solved[:-1], solved[-1]
    return np.array([mean + a[u] + b[i] + p[u] @ q[i] for u, i in zip(users, items, strict=True)])


@pytest.mark.parametrize("chunk", [1, 7, 10_000])
def test_the_factorisation_equals_solving_user_by_user(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.measures.utility.recommender._CHUNK", chunk)
    draw = np.random.default_rng(0)
    users, items = draw.integers(0, 9, 70), draw.integers(0, 6, 70)
    values, start = draw.normal(3, 1, 70), draw.normal(size=(6, 3))
    found = factorise(users, items, values, 9, start, 4, 0.3).predict(users, items)
    assert found == pytest.approx(plain_rounds(users.tolist(), items.tolist(), values.tolist(), start, 4, 0.3))


def test_the_recommender_finds_the_taste_behind_ratings() -> None:
    table = ratings()
    found = RecommenderLoss(factors=2, rounds=20, penalty=0.02).score(table, table)
    assert found.value == 0
    assert found.parts["RMSE original"] == found.parts["RMSE masked"] < 0.5 < found.parts["RMSE averages original"]


def test_no_held_out_pair_is_trained_on() -> None:
    table = pa.concat_tables([ratings(20, 10), ratings(20, 10)])  # every pair twice
    measure = RecommenderLoss(held_out=0.3)
    train, test = measure.split(table)
    pairs = [set(zip(side["user"].to_pylist(), side["item"].to_pylist(), strict=True)) for side in (train, test)]
    assert not pairs[0] & pairs[1]
    assert train.num_rows + test.num_rows == table.num_rows
    assert len(pairs[1]) == round(0.3 * len(pairs[0] | pairs[1]))
    same = measure.score(table, table)
    assert same.parts == measure.compare(train, train, test).parts


def test_masked_ratings_are_compared_on_the_same_held_out_ratings() -> None:
    table = ratings()
    measure = RecommenderLoss(factors=2, rounds=15, penalty=0.05)
    train, test = measure.split(table)
    averaged = train.set_column(2, "rating", pa.array(np.full(train.num_rows, train["rating"].to_numpy().mean())))
    found = measure.compare(train, averaged, test)
    truth = test["rating"].to_numpy()
    assert found.parts["RMSE masked"] == pytest.approx(
        np.sqrt(np.mean((truth - train["rating"].to_numpy().mean()) ** 2)), rel=1e-6
    )
    assert found.value == pytest.approx(found.parts["RMSE masked"] - found.parts["RMSE original"])
    assert found.value > 0.3


def test_masked_tables_may_have_other_rows_users_and_types() -> None:
    table = ratings(30, 20)
    dense = pa.table(
        {
            "user": pa.array([u for u in range(30) for _ in range(20)], pa.int32()),
            "item": pa.array([f"item {i}" for _ in range(30) for i in range(20)]).dictionary_encode(),
            "rating": [4] * 600,
        }
    )
    found = RecommenderLoss().score(sf.read(table, sf.Schema.of(quasi=["user", "item", "rating"])), dense)
    assert found.value > 0
    unseen = RecommenderLoss().compare(table.slice(0, 50), table.slice(50, 50), ratings(80, 60).slice(2000, 20))
    assert np.isfinite(unseen.value)


def test_the_same_seed_gives_the_same_score() -> None:
    table = ratings(20, 15)
    assert RecommenderLoss(seed=4).score(table, table) == RecommenderLoss(seed=4).score(table, table)
    assert RecommenderLoss(seed=4).score(table, table) != RecommenderLoss(seed=5).score(table, table)


def test_what_cannot_be_recommended_from_is_refused() -> None:
    table = ratings(10, 10)
    for wrong in ({"factors": 0}, {"rounds": 0}, {"penalty": 0.0}, {"held_out": 1.0}, {"user": "item"}):
        with pytest.raises(ParameterError, match="RecommenderLoss"):
            RecommenderLoss(**wrong)
    with pytest.raises(MissingColumn, match="'stars'"):
        RecommenderLoss(rating="stars").score(table, table)
    with pytest.raises(Unsupported, match="'rating' has missing values"):
        RecommenderLoss().score(table, table.set_column(2, "rating", pa.nulls(table.num_rows, pa.float64())))
    with pytest.raises(Unsupported, match="does not hold numbers"):
        RecommenderLoss().score(table.set_column(2, "rating", table["item"]), table)
    with pytest.raises(Unsupported, match="at least two pairs"):
        RecommenderLoss().score(table.slice(0, 1), table)
    with pytest.raises(Unsupported, match="one of them has none"):
        RecommenderLoss().score(table, table.slice(0, 0))
    with pytest.raises(Unsupported, match="same type"):
        RecommenderLoss().score(table, table.set_column(0, "user", table["item"]))
    with pytest.raises(InputError, match="row per rating"):
        RecommenderLoss().score([1], table)


@pytest.mark.data
@pytest.mark.slow
def test_listening_counts_averaged_over_similar_users(data_dir: Path) -> None:
    """Logarithms of counts of real listeners, averaged over groups of five (by their total): both recommenders do better than
    guessing the mean, and neither is much better than the other."""
    table = pa.csv.read_csv(
        data_dir / "graphs" / "lastfm_user_artists.dat", parse_options=pa.csv.ParseOptions(delimiter="\t")
    ).rename_columns(["user", "item", "rating"])
    users, items = table["user"].to_numpy(), table["item"].to_numpy()
    common = np.isin(items, np.unique(items)[np.bincount(np.unique(items, return_inverse=True)[1]) >= 50]) & (users < 600)
    table = pa.table({"user": users[common], "item": items[common], "rating": np.log1p(table["rating"].to_numpy()[common])})
    measure = RecommenderLoss(factors=4, penalty=0.3)
    train, test = measure.split(table)
    who, values = train["user"].to_numpy(), train["rating"].to_numpy()
    names, place = np.unique(who, return_inverse=True)
    level = np.bincount(place, weights=values) / np.bincount(place)
    group = np.empty(names.size, dtype=int)
    group[np.argsort(level)] = np.arange(names.size) // 5
    _, cell = np.unique(group[place] * 100_000 + train["item"].to_numpy(), return_inverse=True)
    averaged = (np.bincount(cell, weights=values) / np.bincount(cell))[cell]
    found = measure.compare(train, train.set_column(2, "rating", pa.array(averaged)), test)
    guess = float(np.sqrt(np.mean((test["rating"].to_numpy() - values.mean()) ** 2)))
    assert found.parts["RMSE original"] < guess and found.parts["RMSE masked"] < guess
    assert abs(found.value) < 0.2 * guess
