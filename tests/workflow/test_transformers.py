"""Masks and pseudonyms in pipelines of scikit-learn, held to its own checks; what comes out says that it is no release."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import sfumato as sf
from sfumato.core.errors import MissingColumn, ParameterError, Unsupported
from sfumato.wire.keys import OwnerKey
from sfumato.workflow.transformers import MARK, NO_RELEASE

_ALONE = "the check masks each row alone, and a mask refuses a column with one value, which it could not change"
_TEXTS = "pseudonyms are texts, and the check subtracts them from each other; the test below holds them to the same law"

#: Transformers, and the checks of scikit-learn that do not hold for them, with the reason.
CHECKED: dict[str, tuple[object, dict[str, str]]] = {
    "a mask of single values": (
        sf.MaskTransformer("Rounding(base=0.5, whole=false)"),
        {
            "check_methods_subset_invariance": _ALONE,
            "check_estimators_dtypes": "its whole numbers are multiples of 0.5 already, which the mask refuses",
        },
    ),
    "a mask of all rows": (sf.MaskTransformer("Mdav(k=3)"), {"check_methods_subset_invariance": _ALONE}),
    "a mask that draws": (
        sf.MaskTransformer("AdditiveNoise(ratio=0.1, whole=false)", random_state=0),
        {
            "check_methods_subset_invariance": _ALONE,
            "check_methods_sample_order_invariance": "each row has the draw of its place",
            "check_estimators_dtypes": "32-bit values lie on a grid that would take so little noise back, which the mask refuses",
        },
    ),
    "pseudonyms": (
        sf.PseudonymTransformer(key=OwnerKey(bytes(32))),
        dict.fromkeys(
            (
                "check_estimators_pickle",
                "check_fit_idempotent",
                "check_methods_sample_order_invariance",
                "check_methods_subset_invariance",
                "check_pipeline_consistency",
                "check_transformer_data_not_an_array",
                "check_transformer_general",
            ),
            _TEXTS,
        ),
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_the_checks_of_scikit_learn_hold_but_those_named(name: str) -> None:
    transformer, excepted = CHECKED[name]
    results = check_estimator(transformer, expected_failed_checks=excepted, on_fail=None, on_skip=None)
    failed = {each["check_name"]: str(each["exception"])[:300] for each in results if each["status"] == "failed"}
    unexpected_pass = set(excepted) - {each["check_name"] for each in results if each["status"] == "xfail"}
    assert failed == {} and unexpected_pass == set()
    assert sum(each["status"] == "passed" for each in results) >= 30


FRAME = pd.DataFrame(
    {"age": [21, 34, 45, 56, 63, 70], "pay": [1.5, 2.5, np.nan, 4.0, 5.5, 7.0], "city": list("aabbcc")}, index=list("uvwxyz")
)


def test_a_frame_stays_a_frame_with_its_index_types_and_the_mark() -> None:
    masked = sf.MaskTransformer(sf.Mdav(k=3, columns=("age", "pay")), random_state=1).fit_transform(FRAME)
    assert masked.index.equals(FRAME.index) and list(masked.columns) == list(FRAME.columns)
    assert masked["city"].tolist() == FRAME["city"].tolist() and masked["age"].dtype == np.int64
    assert masked["age"].nunique() == 2 and masked["pay"].nunique() == 2
    assert masked.attrs[MARK] == NO_RELEASE and MARK not in FRAME.attrs
    table = sf.MaskTransformer("Rounding(base=10)").fit_transform(pa.table({"x": [12, 27]}))
    assert table.column("x").to_pylist() == [10, 30] and table.schema.metadata[MARK.encode()] == NO_RELEASE.encode()
    frame = sf.MaskTransformer("Rounding(base=10)").fit_transform(pl.DataFrame({"x": [12, 27]}))
    assert isinstance(frame, pl.DataFrame) and frame["x"].to_list() == [10, 30]


def test_rows_stay_where_they_were_although_strata_are_masked_apart() -> None:
    strata = sf.Mdav(k=2, columns=("age",), strata=("city",))
    frame = pd.DataFrame({"age": [1, 100, 3, 102, 1, 100], "city": list("ababab")})
    assert sf.MaskTransformer(strata).fit_transform(frame)["age"].lt(50).tolist() == [True, False] * 3


def test_a_pipeline_learns_from_masked_columns_and_can_be_cloned() -> None:
    rows = np.arange(40.0).reshape(-1, 2)
    pipeline = make_pipeline(sf.MaskTransformer(sf.Mdav(k=3)), LinearRegression())
    assert clone(pipeline).fit(rows, rows[:, 0]).score(rows, rows[:, 0]) > 0.9
    assert clone(sf.MaskTransformer(sf.Mdav(k=3))).mask == sf.Mdav(k=3)


def test_without_a_seed_the_noise_is_fresh_and_with_one_it_is_the_same() -> None:
    rows = np.arange(40.0).reshape(-1, 2)
    fresh, seeded = sf.MaskTransformer("AdditiveNoise(ratio=0.5)"), sf.MaskTransformer("AdditiveNoise(ratio=0.5)", random_state=7)
    assert not np.array_equal(fresh.fit_transform(rows), fresh.transform(rows))
    assert np.array_equal(seeded.fit_transform(rows), seeded.transform(rows))


def test_pseudonyms_are_those_of_a_release_under_the_same_key() -> None:
    key = OwnerKey(bytes(32))
    named = sf.PseudonymTransformer(["city"], key=key).fit_transform(FRAME)
    assert named["city"].tolist() == [sf.anonymity.pseudonyms.Pseudonyms(key, scope="city").of(city) for city in FRAME["city"]]
    assert named["age"].tolist() == FRAME["age"].tolist() and named.attrs[MARK] == NO_RELEASE
    other = sf.PseudonymTransformer(["city"], key=key, scope="town").fit_transform(FRAME)
    assert not set(other["city"]) & set(named["city"])


def test_pseudonyms_depend_on_their_value_alone() -> None:
    rows = np.array([[1.0, np.nan], [2.0, 5.0], [1.0, 6.0]])
    transformer = sf.PseudonymTransformer(key=OwnerKey(bytes(32)))
    all_rows = transformer.fit_transform(rows)
    assert all_rows.shape == (3, 2) and all_rows[0, 1] is None and all_rows[0, 0] == all_rows[2, 0] != all_rows[1, 0]
    backwards = [2, 1, 0]
    for other in (
        transformer.transform(rows),
        clone(transformer).fit(rows).fit(rows).transform(rows.tolist()),
        pickle.loads(pickle.dumps(transformer)).transform(rows),
        np.vstack([transformer.transform(rows[[place]]) for place in range(3)]),
        transformer.transform(rows[backwards])[backwards],
    ):
        assert other.tolist() == all_rows.tolist()


@pytest.mark.parametrize(
    ("transformer", "error"),
    [
        (sf.MaskTransformer("Sampling(share=0.5)"), Unsupported),
        (sf.MaskTransformer("KAnonymity(k=3)"), ParameterError),
        (sf.MaskTransformer("Mondrian"), ParameterError),
        (sf.MaskTransformer("Mdav(k=3)", random_state=1.5), ParameterError),  # type: ignore[arg-type]
        (sf.PseudonymTransformer(["nobody"], key=OwnerKey(bytes(32))), MissingColumn),
    ],
)
def test_what_is_no_transformer_is_refused(transformer: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        transformer.fit_transform(FRAME)  # type: ignore[attr-defined]
