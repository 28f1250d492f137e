"""Parameters that are declared once: settled, refused all at once, listed with their words."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.declared import Declared, declarations
from sfumato.core.errors import ParameterError
from sfumato.core.ranges import Because, ByName, ColumnNames, Count, Each, Either, Instance, Made, Number, Share, Text, Whole


@dataclass(frozen=True, kw_only=True)
class _Frame(Declared):
    columns: Annotated[ColumnNames | None, "the columns that change"] = None
    whole: bool = True


@dataclass(frozen=True)
class _Method(_Frame):
    k: Annotated[int, Whole(at_least=2), "records in a cluster"]
    lost: Annotated[Share, "records left out"] = 0.0
    mode: Literal["near", "far"] = "near"
    bins: Count | None = None
    epsilon: Annotated[Any, Number(above=0, exact=True)] = 1
    sizes: Annotated[tuple[int, ...], Each(Whole(at_least=1), at_least=1)] = (1, 2)
    weights: Annotated[Any, ByName(Number(above=0))] = field(default_factory=dict)

    def coherent(self) -> Iterable[str]:
        if self.bins is not None and self.bins > self.k:
            yield "there are more bins than records in a cluster"


def test_values_are_stored_as_their_range_has_them() -> None:
    made = _Method(3, epsilon=0.1, sizes=[3, 4], columns=["age", "zip"], weights={"age": 2})
    assert made.epsilon == Fraction(1, 10)
    assert made.sizes == (3, 4)
    assert made.columns == ("age", "zip")
    assert isinstance(made.weights, Mapping) and made.weights == {"age": 2}


def test_all_faults_come_at_once() -> None:
    with pytest.raises(ParameterError) as refusal:
        _Method(1, lost=2, mode="there", bins=0, epsilon=0, sizes=(), columns="age", whole=1)  # type: ignore[arg-type]
    text = str(refusal.value)
    assert text.startswith("_Method: 8 faults")
    for name in ("k", "lost", "mode", "bins", "epsilon", "sizes", "columns", "whole"):
        assert f" {name} must be " in text


def test_what_does_not_fit_together_is_refused_after_the_single_values() -> None:
    with pytest.raises(ParameterError, match="more bins than records"):
        _Method(3, bins=4)
    with pytest.raises(ParameterError, match="k must be a whole number of at least 2, not 1$"):
        _Method(1, bins=4)


@pytest.mark.parametrize("value", [True, 2.0, "2", None, float("nan"), 10**400 * -1])
def test_a_whole_number_is_no_truth_value_and_no_text(value: object) -> None:
    with pytest.raises(ParameterError, match="k must be a whole number of at least 2"):
        _Method(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [True, "0.1", float("inf"), float("nan"), -0.1, 1.1, 10**400])
def test_a_share_is_finite_and_from_0_to_1(value: object) -> None:
    with pytest.raises(ParameterError, match="lost must be a number from 0 to 1"):
        _Method(2, lost=value)  # type: ignore[arg-type]


def test_texts_of_a_value_are_not_repeated() -> None:
    with pytest.raises(ParameterError) as refusal:
        _Method("Miller 1956")  # type: ignore[arg-type]
    assert "Miller" not in str(refusal.value)


def test_declarations_have_ranges_meanings_and_defaults() -> None:
    listed = {each.name: each for each in declarations(_Method)}
    assert list(listed) == ["columns", "whole", "k", "lost", "mode", "bins", "epsilon", "sizes", "weights"]
    assert listed["k"].required and listed["k"].meaning == "records in a cluster"
    assert listed["k"].words == "a whole number of at least 2"
    assert listed["bins"].words == "a whole number of at least 1, or left out"
    assert listed["mode"].words == "'near' or 'far'"
    assert listed["lost"].words == "a number from 0 to 1" and listed["lost"].default == 0.0
    assert listed["columns"].optional and listed["columns"].meaning == "the columns that change"


@dataclass(frozen=True)
class _Others(Declared):
    either: Annotated[Any, Either((Whole(at_least=1), Text("a name")))] = 1
    made: Annotated[Any, Made(lambda value: (_ for _ in ()).throw(ParameterError("no")), "what nobody can make")] | None = None
    kind: Annotated[Any, Instance(Fraction)] = Fraction(1)


def test_either_instance_and_made() -> None:
    assert (_Others(2).either, _Others("x").either) == (2, "x")
    for arguments in ({"either": ""}, {"either": 0}, {"kind": 1}, {"made": 3}):
        with pytest.raises(ParameterError, match=f"{next(iter(arguments))} must be "):
            _Others(**arguments)


@dataclass(frozen=True)
class _Reasoned(Declared):
    k: Annotated[float, Because(Number(above=0), "0 would add no noise")]
    cells: Annotated[int, Whole(at_least=1, at_most=4_194_304)] = 1


def test_a_reason_is_told_with_the_refusal_and_large_ends_are_written_out() -> None:
    with pytest.raises(ParameterError, match="k must be a number above 0, not 0; 0 would add no noise$"):
        _Reasoned(0)
    with pytest.raises(ParameterError, match="cells must be a whole number from 1 to 4,194,304, not 0$"):
        _Reasoned(1, cells=0)


@pytest.mark.parametrize(
    ("value", "stored"),
    [(Fraction(1, 2), 0.5), (Decimal("0.1"), 0.1), (np.float32(0.5), 0.5), (np.float64(0.1), 0.1), (np.int64(2), 2), (2, 2)],
)
def test_a_number_is_stored_as_one_that_can_be_written(value: Any, stored: object) -> None:
    kept = _Reasoned(value).k
    assert kept == stored and type(kept) is type(stored)


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("sNaN"), Decimal("1e400"), Fraction(10**400), Fraction(1, 10**400)])
def test_what_no_floating_point_number_comes_near_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="k must be a number above 0"):
        _Reasoned(value)


def test_a_release_keeps_its_word_whoever_made_the_numbers(tmp_path: Path) -> None:
    table = pa.table({"age": [20, 30] * 20, "ill": ["flu", "flu", "cold", "none"] * 10})
    people = sf.read(table, sf.Schema.of(quasi=["age"], sensitive=["ill"]))
    search = sf.Lattice(suppression=Fraction(1, 20), max_nodes=np.int64(300))
    asked = [sf.KAnonymity(np.int64(3)), sf.EntropyLDiversity(Fraction(3, 2), "ill")]
    sf.protect(people, asked, search, utility=()).save(tmp_path / "searched", "csv")
    assert sf.verify(tmp_path / "searched").verdict == "keeps"
    sf.protect(people, (), sf.AdditiveNoise(Fraction(3, 2)), utility=(), risk=()).save(tmp_path / "masked", "csv")
    assert sf.verify(tmp_path / "masked").verdict == "promises nothing"


def test_a_number_of_thousands_of_digits_is_refused_in_words() -> None:
    for make in (
        lambda: sf.Lattice(suppression=10**5000),
        lambda: sf.Mdav(k=-(10**5000)),
        lambda: sf.Lattice(max_nodes=10**5000),
    ):
        with pytest.raises(ParameterError, match="must be"):
            make()
    with pytest.raises(ParameterError, match="k must be a whole number of at least 2, and at most 2,147,483,647"):
        sf.Mdav(k=10**5000)


def test_what_was_sent_is_checked_like_what_is_made() -> None:
    sent = pickle.dumps(sf.Mdav(k=7, columns=("age",)))
    changed = sent.replace(b"K\x07", b"K\x01")  # the byte of k
    assert changed != sent and pickle.loads(sent).k == 7
    with pytest.raises(ParameterError, match="k must be a whole number of at least 2, not 1"):
        pickle.loads(changed)


def test_a_table_of_names_is_a_value() -> None:
    made = sf.Rounding(base={"age": 5})
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made == sf.Rounding(base={"age": 5})
    assert made.base == {"age": 5} and hash(made) == hash(copy.deepcopy(made)) and asdict(made)["base"] == {"age": 5}
    with pytest.raises(TypeError):
        made.base["age"] = 6  # type: ignore[index]


def test_numbers_and_truth_values_of_numpy_are_taken() -> None:
    assert sf.PureDP(np.float64(0.1)) == sf.PureDP("0.1") == sf.PureDP(Decimal("0.1"))
    assert sf.PureDP(np.int64(1)) == sf.PureDP(1) and sf.PureDP(np.float32(0.5)) == sf.PureDP("0.5")
    assert sf.RankSwapping(p=np.float64(5)) == sf.RankSwapping(p=5)
    assert sf.Mondrian(relaxed=np.True_).relaxed is True
    assert sf.TCloseness(0.2, "ill", np.str_("equal")).distance == "equal"


def test_no_limit_is_infinite() -> None:
    assert sf.Lattice(max_nodes=math.inf).max_nodes == math.inf and sf.KMember(max_records=1e6).max_records == 10**6
    for wrong in (0, 1.5, -math.inf, math.nan, True, "9"):
        with pytest.raises(ParameterError, match="max_nodes must be a whole number of at least 1, or infinite"):
            sf.Lattice(max_nodes=wrong)


def test_an_annotation_that_cannot_be_read_is_an_error() -> None:
    """Its range would be lost, and whatever is given taken."""

    @dataclass(frozen=True)
    class Mistyped(_Frame):
        share: Annotated[float, Numbr(above=0)] = 1.0  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match=r"annotation of Mistyped\.share cannot be read .* 'Numbr'"):
        Mistyped()


@pytest.mark.parametrize("value", [np.array(3), 3, "age", {"age": 1}])
def test_what_cannot_be_listed_is_no_list_of_columns(value: object) -> None:
    with pytest.raises(ParameterError, match="columns must be"):
        _Method(3, columns=value)  # type: ignore[arg-type]


_LIST_OF_LISTS = [[0, 1], [0, 1]]


@pytest.mark.parametrize("wrong", [_LIST_OF_LISTS, np.array(_LIST_OF_LISTS), [{}, {1: 2}]])
@pytest.mark.parametrize(
    ("kind", "name", "given", "parameter"),
    [
        ("mechanism", "Exponential", {"sensitivity": 1, "epsilon": 1}, "candidates"),
        ("mechanism", "PermuteAndFlip", {"sensitivity": 1, "epsilon": 1}, "candidates"),
        ("mechanism", "ReportNoisyMax", {"sensitivity": 1, "epsilon": 1}, "candidates"),
        ("mechanism", "Histogram", {"epsilon": 1}, "categories"),
        ("mechanism", "RandomisedResponse", {"epsilon": 1}, "categories"),
        ("mechanism", "TruncatedGeometric", {"epsilon": 1}, "domain"),
        ("algorithm", "TopK", {"column": "c", "k": 1, "epsilon": 1}, "candidates"),
        ("algorithm", "SearchLog", {"column": "c", "limit": 1, "epsilon": 1}, "domain"),
    ],
)
def test_entries_that_nobody_can_tell_apart_are_refused(
    kind: str, name: str, given: dict[str, Any], parameter: str, wrong: Any
) -> None:
    with pytest.raises(ParameterError, match=f"{parameter} must be "):
        registry.find(kind, name)(**given, **{parameter: wrong})


@pytest.mark.parametrize("wrong", [np.array([1, 2]), np.array(["replace", "replace"]), np.array("replace"), [1], ""])
@pytest.mark.parametrize("parameter", ["neighbours", "unit"])
def test_whose_data_count_is_a_word(parameter: str, wrong: Any) -> None:
    for made in (partial(sf.dp.Laplace, 1, 1), partial(sf.PureDP, 1), sf.PureDP(1).about):
        with pytest.raises(ParameterError, match=f"{parameter} must be "):
            made(**{parameter: wrong})


@pytest.mark.parametrize("wrong", [np.array(2), 2, "HIV", [["HIV"]], np.array([["HIV"]]), [None]])
def test_protected_values_are_a_list_of_values(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="protected_values must be a list of values"):
        sf.DistinctLDiversity(2, "ill", protected_values=wrong)


@pytest.mark.parametrize("wrong", [10**400, 2**31, 2.5, 1, True, "2", math.inf, math.nan])
def test_the_p_of_cbfs_is_whole(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="p must be a whole number of at least 2"):
        sf.Cbfs(3, p=wrong)
    assert sf.Cbfs(3, p=2.0) == sf.Cbfs(3, p=2)


@pytest.mark.parametrize("wrong", [math.inf, math.nan, "nan", "1e-99999", "0." + "0" * 99 + "1"])
def test_a_reason_is_told_only_where_it_is_one(wrong: Any) -> None:
    for made in (lambda: sf.dp.KMeans(("age",), 2, epsilon=wrong), lambda: sf.dp.PrivateHistogram(("age",), epsilon=wrong)):
        with pytest.raises(ParameterError) as refused:
            made()
        assert "millionth" not in str(refused.value)
    with pytest.raises(ParameterError, match="below a millionth nothing but noise"):
        sf.dp.KMeans(("age",), 2, epsilon=1e-9)
    with pytest.raises(ParameterError, match="at most 2,147,483,647$"):
        sf.SequentialTrees(min_leaf=2**31)


@pytest.mark.parametrize("wrong", ["0.95", None, Decimal("0.95"), True, 0, 1, math.nan, [0.9]])
def test_a_confidence_is_a_number_between_0_and_1(wrong: Any) -> None:
    for error in (sf.dp.Laplace(1, 1).error(), sf.dp.Gaussian(1, rho=1).error(), sf.dp.PrivateHistogram(("a",), rho=1).error()):
        with pytest.raises(ParameterError, match="confidence lies between 0 and 1"):
            error.margin(wrong)
