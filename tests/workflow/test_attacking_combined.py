"""A release of several masks is attacked by everybody who can exploit one of them, in the columns of that mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, MissingColumn, Unsupported
from sfumato.masking.base import Mask
from tests.conformance.masks import people
from tests.workflow.attacked import attack_folder

PEOPLE = people(300)
SOURCE = PEOPLE.table()
SWAPPED = sf.RankSwapping(10, columns=("height", "weight"))
NOISY = sf.AdditiveNoise(0.2, columns=("wage",))
CHANGED = sf.Pram(stay=0.8, columns=("town",))
AVERAGED = sf.Mdav(4, columns=("wage", "age"))


def saved(place: Path, *masks: Mask) -> Path:
    method = sf.Combined(masks=masks) if len(masks) > 1 else masks[0]
    return sf.mask(PEOPLE, method, utility=(), risk=(), seed=1).save(place / "out")


def attacked(folder: Path, **more: Any) -> dict[str, dict[str, Any]]:
    return {each["attack"]: each for each in attack_folder(folder, **{"register": SOURCE, "aligned": True, **more})}


@pytest.mark.parametrize(
    ("masks", "fitting"),
    [
        ((SWAPPED, CHANGED), {"RankWindow", "PramPosterior"}),
        ((NOISY, SWAPPED), {"RankWindow", "NoiseLikelihood"}),
        ((AVERAGED, CHANGED), {"MicroaggregationIntersection", "PramPosterior"}),
        ((sf.Combined(masks=(SWAPPED, NOISY)), CHANGED), {"RankWindow", "NoiseLikelihood", "PramPosterior"}),
        ((sf.BucketRankSwapping(10, columns=("height",)), NOISY), {"NoiseLikelihood"}),
        ((sf.Rounding(5, columns=("height",)), sf.Shuffling(columns=("wage",), predictors=("age",))), set()),
    ],
    ids=lambda each: " ".join(sorted(each)) if isinstance(each, set) else "",
)
def test_whoever_exploits_one_of_the_masks_is_run_unasked(tmp_path: Path, masks: tuple[Mask, ...], fitting: set[str]) -> None:
    folder = saved(tmp_path, *masks)
    found = attacked(folder)
    assert set(found) == {"RegisterLinkage", *fitting}
    for name in fitting:
        assert found[name]["success"] >= attacked(folder, only=[name])[name]["success"] > found[name]["baseline"]


def test_the_window_of_one_part_finds_more_than_the_distance(tmp_path: Path) -> None:
    found = attacked(saved(tmp_path, SWAPPED, NOISY))
    assert found["RankWindow"]["success"] > found["RegisterLinkage"]["success"]
    assert found["RankWindow"]["details"]["window_ranks"].keys() == {"height", "weight"}
    assert found["RankWindow"]["details"]["own_record_outside"] == 0


def test_nobody_is_certain_by_a_column_that_two_masks_have_changed(tmp_path: Path) -> None:
    """Noise on top of rank swapping leads values out of their window: the columns that were only swapped are left."""
    found = attacked(saved(tmp_path, SWAPPED, sf.AdditiveNoise(0.2, columns=("weight", "wage"))))["RankWindow"]["details"]
    assert found["window_ranks"].keys() == {"height"}
    assert found["own_record_outside"] == 0 < found["certain"]


@pytest.mark.parametrize(
    "masks",
    [
        (sf.RankSwapping(10, columns=("height",)), sf.AdditiveNoise(0.2, columns=("height", "wage"))),
        (sf.AdditiveNoise(0.2, columns=("height", "wage")), sf.RankSwapping(10, columns=("height",))),
        (sf.RankSwapping(20, columns=("height",), strata=("town",)), CHANGED),
    ],
    ids=["noise after it", "noise before it", "its strata were changed"],
)
def test_a_mask_that_is_true_of_no_column_any_more_is_not_exploited(tmp_path: Path, masks: tuple[Mask, ...]) -> None:
    folder = saved(tmp_path, *masks)
    assert "RankWindow" not in attacked(folder)
    with pytest.raises(Unsupported, match="changed by another mask too"):
        attacked(folder, only=["RankWindow"])


def test_a_sample_of_swapped_records_still_has_its_window(tmp_path: Path) -> None:
    """Choosing records changes no value: those that were not swapped agree, too."""
    found = attacked(saved(tmp_path, sf.Sampling(0.5), SWAPPED))["RankWindow"]
    assert found["details"]["own_record_outside"] == 0 and found["details"]["certain"] == 150


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("RankWindow", SWAPPED, sf.RankSwapping(15, columns=("wage", "age"))),
        ("MicroaggregationIntersection", sf.Mdav(4, columns=("height", "weight")), AVERAGED),
        ("PramPosterior", CHANGED, sf.Pram(stay=0.7, columns=("school",))),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_two_masks_of_a_kind_tell_is_put_together(tmp_path: Path, name: str, first: Mask, second: Mask) -> None:
    folder = saved(tmp_path, first, second)
    parts = [list(each.columns or ()) for each in (first, second)]
    alone = [attacked(folder, only=[name], register=SOURCE.select(columns))[name]["success"] for columns in parts]
    assert attacked(folder, only=[name], register=SOURCE.select([*parts[0], *parts[1]]))[name]["success"] > max(alone)


def test_a_register_without_the_columns_of_one_mask_serves_for_the_others(tmp_path: Path) -> None:
    folder = saved(tmp_path, SWAPPED, CHANGED)
    known = SOURCE.select(["height", "weight", "age"])
    assert [each["attack"] for each in attack_folder(folder, register=known, aligned=True)] == ["RegisterLinkage", "RankWindow"]
    with pytest.raises(MissingColumn, match="none of the columns"):  # asked for, or the only one: then it is said
        attack_folder(folder, register=known, aligned=True, only=["PramPosterior"])
    with pytest.raises(MissingColumn, match="none of the columns"):
        attack_folder(saved(tmp_path / "swapped", SWAPPED), register=SOURCE.select(["age"]), aligned=True)


def test_other_releases_that_cannot_be_compared_are_said(tmp_path: Path) -> None:
    folder = saved(tmp_path, SWAPPED, CHANGED)
    with pytest.raises(Unsupported, match="were changed"):
        attack_folder(folder, earlier=[folder])


def test_a_view_is_attacked_as_its_folder_is(tmp_path: Path) -> None:
    rows = SOURCE.append_column("number", pa.array([f"n{i}" for i in range(300)]))
    schema = PEOPLE.schema.replace(columns={**PEOPLE.schema.columns, "number": sf.Column(role="plain", type="string")})
    release = sf.mask(sf.read(rows, schema), SWAPPED, utility=(), risk=(), seed=1)
    folder = release.save(tmp_path / "out")
    assert attack_folder(release.view(), register=rows, key="number") == attack_folder(folder, register=rows, key="number")
    with pytest.raises(InputError, match="pass the folder"):
        attack_folder(release.view(), register=rows, aligned=True)
    assert attack_folder(release, register=rows, aligned=True) == attack_folder(folder, register=rows, aligned=True)
    assert [each.attack for each in release.attack(register=rows, key="number")]


def test_the_owner_attacks_a_combined_mask_by_name_while_it_is_made() -> None:
    release = sf.mask(PEOPLE, sf.Combined(masks=(SWAPPED, CHANGED)), attacks=["RankWindow", "PramPosterior"], seed=1)
    assert [each.attack for each in release.owner.attacks] == ["RankWindow", "PramPosterior"]
    assert all(each.success > each.baseline for each in release.owner.attacks)
    assert np.all([each["attack"] in ("RankWindow", "PramPosterior") for each in release.certificate.attacks])
