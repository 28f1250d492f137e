"""A generated table about people, for examples, demonstrations and tests.

Every person is made up. Sex, age, place, education, family, work, income and illness depend on each other
roughly as they do in life, so that protecting the table is neither trivial nor hopeless. The same seed gives
the same table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, ParameterError
from sfumato.core.randomness import StreamRandomness, words
from sfumato.data import sample_words as made_up
from sfumato.data.schema import Column, HierarchySpec, Schema

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

_YOUNGEST, _OLDEST, _RETIREMENT = 18, 95, 67
_STUDENT, _RETIRED = made_up.OCCUPATIONS.index("student"), made_up.OCCUPATIONS.index("retired")


class _Draws:
    """Vectors of random numbers from one seeded byte stream."""

    def __init__(self, rows: int, seed: int) -> None:
        self._rows = rows
        self._source = StreamRandomness(f"sample people {seed}")

    def uniform(self) -> Floats:
        return (words(self._source, self._rows) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def bell(self) -> Floats:
        """Roughly normal, by adding uniform numbers: exact arithmetic, hence the same on every machine."""
        total: Floats = np.zeros(self._rows)
        for _ in range(6):
            total += self.uniform()
        bell: Floats = (total - 3.0) * 2.0**0.5
        return bell

    def choice(self, weights: Floats | Sequence[float]) -> Codes:
        """One category per row; `weights` is one row for all, or one per row."""
        table = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        bounds = np.cumsum(table, axis=1)
        point = self.uniform() * bounds[:, -1]
        if table.shape[0] == 1:
            chosen = np.searchsorted(bounds[0], point, side="right")
        else:
            chosen = np.sum(point[:, None] >= bounds, axis=1)
        codes: Codes = np.minimum(chosen, table.shape[1] - 1).astype(np.int64)
        return codes


def sample_table(rows: int = 50_000, seed: int = 1) -> pa.Table:
    """That many made-up people, one per row."""
    import pyarrow as pa

    if isinstance(rows, bool) or rows < 0:
        raise ParameterError("the number of rows must not be negative")
    draws = _Draws(rows, seed)
    sex = draws.choice([0.508, 0.488, 0.004])
    age = _YOUNGEST + draws.choice(_age_weights())
    country = draws.choice(_falling(len(made_up.COUNTRIES), 1.6))
    education = _education(draws, age)
    family = _family(draws, age)
    work = _work(draws, age, education, sex)
    income = _income(draws, age, education, work)
    lacking = draws.uniform() < 0.02
    names = np.asarray(made_up.FIRST_NAMES)[draws.choice([1.0] * len(made_up.FIRST_NAMES))]
    family_names = np.asarray(made_up.FAMILY_NAMES)[draws.choice(_falling(len(made_up.FAMILY_NAMES), 0.6))]
    columns = {
        "name": pa.array(np.char.add(np.char.add(names, " "), family_names)).dictionary_encode(),
        "sex": _category(made_up.SEXES, sex),
        "age": pa.array(age),
        "postcode": _postcodes(draws),
        "country": _category(made_up.COUNTRIES, country),
        "education": _category(made_up.EDUCATION, education),
        "marital-status": _category(made_up.MARITAL_STATUS, family),
        "occupation": _category(made_up.OCCUPATIONS, work),
        "income": pa.array(income, mask=lacking),
        "diagnosis": _category(made_up.DIAGNOSES, _diagnosis(draws, age, sex, work)),
    }
    return pa.table(columns)


def sample_schema() -> Schema:
    """The schema of `sample_table`, with every kind of hierarchy a table about people usually needs."""
    return Schema(
        dataset="sample-people",
        unit="record",  # every person is made up once; that two have the same name is chance
        columns={
            "name": Column(role="identifier", type="string"),
            "sex": Column(role="quasi", type="string", domain=made_up.SEXES, hierarchy=HierarchySpec(flat=True)),
            "age": Column(
                role="quasi",
                type="integer",
                bounds=(_YOUNGEST, _OLDEST),
                hierarchy=HierarchySpec(intervals=(5, 10, 20, 40)),
            ),
            "postcode": Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right", width=5)),
            "country": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=made_up.COUNTRY_TREE)),
            "education": Column(
                role="quasi",
                type="string",
                order=made_up.EDUCATION,
                hierarchy=HierarchySpec(tree=made_up.EDUCATION_TREE),
            ),
            "marital-status": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=made_up.MARITAL_STATUS_TREE)),
            "occupation": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree=made_up.OCCUPATION_TREE)),
            "income": Column(role="sensitive", type="integer", bounds=(0, 250_000)),
            "diagnosis": Column(role="sensitive", type="string", hierarchy=HierarchySpec(tree=made_up.DIAGNOSIS_TREE)),
        },
    )


def write_sample(folder: str | Path, rows: int = 50_000, seed: int = 1) -> tuple[Path, Path]:
    """Write `people.csv`, its schema `people.toml` and two hierarchy files; returns the first two paths."""
    from sfumato.data.hierarchies.hierarchy import from_tree
    from sfumato.data.writers import atomic_path, write_csv

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    schema = sample_schema()
    columns = dict(schema.columns)
    trees = {}
    for name in ("country", "occupation"):
        spec = columns[name].hierarchy
        trees[target / f"people_{name}.csv"] = from_tree((spec.tree if spec else None) or {}, name=name)
        columns[name] = columns[name].model_copy(update={"hierarchy": HierarchySpec(file=f"people_{name}.csv")})
    data, description = target / "people.csv", target / "people.toml"
    text = schema.replace(columns=columns).to_toml()
    _refuse_other_file(data, ",".join(f'"{name}"' for name in schema.columns), lines=1)
    _refuse_other_file(description, text)
    for path, tree in trees.items():
        _refuse_other_file(path, "\n".join(";".join(map(str, row)) for row in tree.rows()))
    for path, tree in trees.items():
        with atomic_path(path) as temporary:
            tree.save(temporary)
    write_csv(sample_table(rows, seed), data)
    with atomic_path(description) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return data, description


def _refuse_other_file(path: Path, text: str, lines: int | None = None) -> None:
    """A sample may be replaced by another, which has this text in so many of its lines, and nothing else: it may be somebody's
    work."""
    if not os.path.lexists(path):
        return
    if path.is_file():
        with path.open(encoding="utf-8", errors="replace") as file:
            start = file.read(len(text) + 2)
        if start.splitlines()[:lines] == text.splitlines():
            return
    raise InputError(f"{path} is there already and is not as a sample has it. Write the sample into another folder.")


def _category(values: Sequence[str], codes: Codes) -> pa.DictionaryArray:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(list(values)))


def _falling(count: int, steepness: float) -> Floats:
    """Weights that fall with rank, as sizes of towns and frequencies of names do."""
    return 1.0 / np.arange(1, count + 1, dtype=np.float64) ** steepness


def _age_weights() -> Floats:
    ages = np.arange(_YOUNGEST, _OLDEST + 1)
    return np.where(ages < 60, 1.0 + 0.006 * (ages - 18), np.maximum(1.25 * (1.0 - ((ages - 60) / 37.0) ** 2), 0.01))


def _education(draws: _Draws, age: Codes) -> Codes:
    """Younger people studied longer; nobody has a degree before the usual age."""
    young = ((80.0 - age) / 60.0).clip(0.0, 1.0)[:, None]
    old_weights, young_weights = np.array([[22, 26, 30, 14, 4, 3.5, 0.5], [3, 9, 27, 20, 23, 16, 2.0]])
    weights = young * young_weights + (1.0 - young) * old_weights
    earliest = np.array([0, 0, 0, 19, 22, 24, 28])
    return draws.choice(np.where(age[:, None] >= earliest, weights, 0.0))


def _family(draws: _Draws, age: Codes) -> Codes:
    """Never married when young, married in the middle, widowed when old."""
    years = age.astype(np.float64)
    never = np.maximum(8.0, 100.0 - 3.2 * (years - 18.0).clip(0.0))
    married = (2.6 * (years - 20.0)).clip(0.5, 62.0) - (1.6 * (years - 68.0)).clip(0.0, 42.0)
    divorced = (0.6 * (years - 26.0)).clip(0.05, 14.0)
    separated = (0.12 * (years - 24.0)).clip(0.02, 3.0)
    widowed = (1.7 * (years - 62.0)).clip(0.15, 60.0)
    return draws.choice(np.stack([never, married, divorced, separated, widowed], axis=1))


def _work(draws: _Draws, age: Codes, education: Codes, sex: Codes) -> Codes:
    """Occupations ask for an education; some are held by more women or men; the young study, the old are
    retired."""
    levels = np.asarray(made_up.OCCUPATION_LEVEL, dtype=np.float64)
    distance = np.abs(levels[None, :] - education[:, None])
    weights = np.asarray(made_up.OCCUPATION_SHARE)[None, :] / (1.0 + distance) ** 3
    lean = np.asarray(made_up.OCCUPATION_WOMEN)[None, :]
    weights = weights * np.where(sex[:, None] == 0, lean, np.where(sex[:, None] == 1, 2.0 - lean, 1.0))
    weights[:, _STUDENT] = np.where(age < 26, 0.9, 0.004)
    weights[:, _RETIRED] = np.where(age >= _RETIREMENT, 300.0, np.where(age >= 60, 0.15, 0.0))
    return draws.choice(weights)


def _income(draws: _Draws, age: Codes, education: Codes, work: Codes) -> NDArray[np.int64]:
    """A year's income in thousands, rising with occupation, education and experience."""
    base = np.asarray(made_up.OCCUPATION_INCOME, dtype=np.float64)[work]
    experience = 1.0 + 0.012 * (age - 20).clip(0, 30)
    spread = np.maximum(1.0 + 0.28 * draws.bell() + 0.10 * np.maximum(draws.bell(), 0.0) ** 2, 0.25)
    income = base * experience * (1.0 + 0.05 * education) * spread
    return (np.rint(income / 1000.0) * 1000.0).clip(0, 250_000).astype(np.int64)


def _postcodes(draws: _Draws) -> pa.DictionaryArray:
    """Five digits, some with leading zeros: large and small areas, each with a few dozen codes."""
    area = np.asarray(made_up.AREAS)[draws.choice(_falling(len(made_up.AREAS), 0.7))]
    within = draws.choice(_falling(24, 0.5)) * 41 % 1000
    codes = area * 1000 + within
    distinct, positions = np.unique(codes, return_inverse=True)
    return _category([f"{code:05d}" for code in distinct.tolist()], positions.reshape(-1))


def _diagnosis(draws: _Draws, age: Codes, sex: Codes, work: Codes) -> Codes:
    """Illnesses that come with age, with sex or with work."""
    years = age[:, None].astype(np.float64)
    weights = np.asarray(made_up.DIAGNOSIS_SHARE)[None, :] * (
        1.0 + np.asarray(made_up.DIAGNOSIS_WITH_AGE)[None, :] * ((years - 18.0) / 30.0)
    ).clip(0.05)
    women = np.asarray(made_up.DIAGNOSIS_WOMEN)[None, :]
    weights = weights * np.where(sex[:, None] == 0, women, np.where(sex[:, None] == 1, 2.0 - women, 1.0))
    heavy = np.asarray(made_up.OCCUPATION_LEVEL)[work] <= 2
    weights[:, made_up.DIAGNOSES.index("back pain")] *= np.where(heavy, 1.8, 0.9)
    return draws.choice(weights)
