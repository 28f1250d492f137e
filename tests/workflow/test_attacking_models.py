"""A model is attacked through a table of its answers that a file names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sfumato.attacks import Answers, Labelled, MembershipInModels, ModelKnowledge
from sfumato.attacks.outputs.answer_table import written
from sfumato.attacks.outputs.membership_models import losses
from sfumato.cli.main import run
from sfumato.core.errors import SfumatoError
from sfumato.core.view import View
from sfumato.data.writers import write_file
from sfumato.workflow.attacking.outputs import attack_outputs

KINDS: dict[str, Any] = {"words": np.array(["no", "yes"]), "numbers": np.array([0, 1]), "truth": np.array([False, True])}


def people(seed: int, count: int = 120, kind: str = "words") -> Labelled:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 4))
    which = (features[:, 0] > 0) ^ (rng.random(count) < 0.25)
    return Labelled(features, KINDS[kind][which.astype(int)])


def game(folder: Path, published: Any, knowledge: Any, **attack: Any) -> Path:
    path = folder / "game.json"
    path.write_text(
        json.dumps({"attack": {"name": "MembershipInModels", **attack}, "published": published, "knowledge": knowledge})
    )
    return path


def shadow_table(seeds: range, kind: str = "words") -> pa.Table:
    """Three trees trained on other people, each asked about those and about as many more."""
    parts = []
    for seed in seeds:
        inside, outside = people(seed, kind=kind), people(seed + 1000, kind=kind)
        tree = DecisionTreeClassifier(max_depth=6, random_state=seed).fit(inside.features, inside.labels)
        parts.append(Answers.of(tree, inside, outside).table())
    return pa.concat_tables(parts)


def told(result: Any) -> dict[str, Any]:
    return {name: getattr(result, name) for name in ("success", "baseline", "targets", "finding")} | {
        "details": dict(result.details)
    }


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=6, random_state=0), LogisticRegression()])
def test_a_table_of_answers_gives_what_the_model_gives(tmp_path: Path, kind: str, ending: str, model: Any) -> None:
    members, others = people(1, kind=kind), people(2, kind=kind)
    target = model.fit(members.features, members.labels)
    write_file(Answers.of(target, members, others).table(), tmp_path / f"answers.{ending}")
    loss = float(losses(target, members).mean())
    found = attack_outputs(game(tmp_path, {"answers": f"answers.{ending}"}, {"training_loss": loss}))
    real = MembershipInModels().run(View(target, None), ModelKnowledge(members, others, training_loss=loss))
    assert {name: found[name] for name in told(real)} == told(real)
    assert found["attack"] == "MembershipInModels" and found["interval"] == list(real.interval)


@pytest.mark.parametrize("method", ["loss", "shadow"])
def test_shadows_asked_elsewhere_give_what_their_models_give(tmp_path: Path, method: Literal["loss", "shadow"]) -> None:
    members, others = people(1), people(2)
    target = DecisionTreeClassifier(max_depth=6, random_state=0).fit(members.features, members.labels)
    shadows = shadow_table(range(10, 13))
    write_file(Answers.of(target, members, others).table(), tmp_path / "answers.csv")
    write_file(shadows, tmp_path / "shadows.csv")
    path = game(tmp_path, {"answers": "answers.csv"}, {"shadow_answers": "shadows.csv"}, method=method, seed=5)
    found = attack_outputs(path)
    confidences = np.column_stack([shadows.column(name).to_numpy() for name in ("no", "yes")])
    asked = Answers(["no", "yes"], confidences, shadows.column("label").to_pylist(), shadows.column("member").to_pylist())
    real = MembershipInModels(method, seed=5).run(View(target, None), ModelKnowledge(members, others, shadow_answers=asked))
    assert {name: found[name] for name in told(real)} == told(real)
    assert found["success"] > 0.55 > found["baseline"]


def test_columns_may_have_other_names_and_others_may_stand_beside_them(tmp_path: Path) -> None:
    rows = {"id": [7, 8, 9], "truth": ["1.0", "0.0", "1.0"], "trained": ["yes", "no", "no"], "p0": [0, 0.5, 1], "p1": [1, 0.5, 0]}
    write_file(pa.table(rows), tmp_path / "answers.csv")
    named = {"answers": "answers.csv", "label": "truth", "member": "trained", "confidences": {"0": "p0", "1": "p1"}}
    found = attack_outputs(game(tmp_path, named, {"training_loss": 0.1}))
    assert (found["success"], found["targets"]) == (1.0, 3)
    shadow = {"answers": "answers.csv", "label": "truth"}
    assert attack_outputs(game(tmp_path, named, {"shadow_answers": shadow}))["success"] == 1.0
    (tmp_path / "plain.tsv").write_text("label\tmember\tid\t0\t1\n1\t1\t7\t0\t1\n0\t0\t8\t0.5\t0.5\n")
    listed = {"answers": "plain.tsv", "confidences": ["0", "1"]}
    assert attack_outputs(game(tmp_path, listed, {"training_loss": 0.1}))["success"] == 1.0


def test_names_of_classes_have_one_form() -> None:
    same = [("1", "1.0"), ("True", "true"), ("-3", "-3.0"), ("0.5", "0.50")]
    assert all(written(one) == written(other) for one, other in same)
    apart = ["1", "01", "1e0", "10", "one", " 1", "-1", "0.1"]
    assert len({written(name) for name in apart}) == len(apart)


ROWS: dict[str, list[Any]] = {
    "label": ["no", "yes", "no"],
    "member": [True, False, True],
    "no": [0.9, 0.4, 1.0],
    "yes": [0.1, 0.6, 0.0],
}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ({"label": ["no", "canary-31", "no"]}, "1 record has a label"),
        ({"label": ["no", None, "no"]}, "misses a label"),
        ({"member": ["in", "out", "canary-31"]}, "whether the model was trained"),
        ({"member": [True, None, False]}, "whether the model was trained"),
        ({"member": [True, True, True]}, "both records"),
        ({"no": [0.9, None, 1.0]}, "'no' does not hold a confidence"),
        ({"no": ["canary-31", "x", "y"]}, "'no' does not hold a confidence"),
        ({"no": [31.0, 0.4, 1.0]}, "1 records differ"),
        ({"no": [0.9, float("nan"), 1.0]}, "confidence"),
        ({"id": [0.31, 0.32, 0.33]}, "no other columns"),
        ({"name": ["canary-31", "b", "c"]}, "'name' does not hold a confidence"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_that_holds_no_answers_is_refused_without_a_value(
    tmp_path: Path, rows: dict[str, list[Any]], why: str, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({**ROWS, **rows})
    pq.write_table(table, tmp_path / "answers.parquet") if ending == "parquet" else write_file(table, tmp_path / "answers.csv")
    path = game(tmp_path, {"answers": f"answers.{ending}"}, {"training_loss": 0.3})
    with pytest.raises(SfumatoError, match=why):
        attack_outputs(path)
    assert run(["attack", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ") and "31" not in shown.err.replace(str(tmp_path), "") and shown.out == ""


@pytest.mark.parametrize(
    ("published", "knowledge", "why"),
    [
        ("answers.csv", {"training_loss": 0.3}, "names a table of answers"),
        ({}, {"training_loss": 0.3}, "'answers' is missing"),
        ({"answers": 3}, {"training_loss": 0.3}, "must be a text"),
        ({"answers": "answers.csv", "model": "x.pkl"}, {"training_loss": 0.3}, "unknown parameter 'model'"),
        ({"answers": "model.pkl"}, {"training_loss": 0.3}, "A model is not loaded"),
        ({"answers": "answers.csv.gz"}, {"training_loss": 0.3}, "must end with"),
        ({"answers": "postgresql://x/y.csv"}, {"training_loss": 0.3}, "there is no file"),
        ({"answers": "none.csv"}, {"training_loss": 0.3}, "there is no file"),
        ({"answers": "damaged.parquet"}, {"training_loss": 0.3}, "not a complete Parquet"),
        ({"answers": "answers.csv", "label": "who"}, {"training_loss": 0.3}, "no column 'who'"),
        ({"answers": "answers.csv", "confidences": {"no": "who"}}, {"training_loss": 0.3}, "no column 'who'"),
        ({"answers": "answers.csv", "confidences": 3}, {"training_loss": 0.3}, "confidences names columns"),
        ({"answers": "answers.csv", "confidences": {"no": 3}}, {"training_loss": 0.3}, "confidences names columns"),
        ({"answers": "answers.csv", "confidences": []}, {"training_loss": 0.3}, "two at least"),
        ({"answers": "answers.csv", "confidences": ["no"]}, {"training_loss": 0.3}, "two at least"),
        ({"answers": "answers.csv"}, {}, "training_loss"),
        ({"answers": "answers.csv"}, {"training_loss": "small"}, "must be a number"),
        ({"answers": "answers.csv"}, {"training_loss": True}, "must be a number"),
        ({"answers": "answers.csv"}, {"training_loss": 0.3, "shadow": "x"}, "neither training_loss nor"),
        ({"answers": "answers.csv"}, {"shadow_answers": 7}, "must name a table"),
        ({"answers": "answers.csv"}, {"shadow_answers": "none.csv"}, "there is no file"),
    ],
)
def test_a_game_that_makes_no_sense_is_one_clear_error(tmp_path: Path, published: Any, knowledge: Any, why: str) -> None:
    write_file(pa.table(ROWS), tmp_path / "answers.csv")
    (tmp_path / "answers.csv.gz").write_bytes(b"x")
    (tmp_path / "model.pkl").write_bytes(b"x")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(SfumatoError, match=why):
        attack_outputs(game(tmp_path, published, knowledge))


def test_the_shadow_method_needs_answers_of_shadows(tmp_path: Path) -> None:
    write_file(pa.table(ROWS), tmp_path / "answers.csv")
    with pytest.raises(SfumatoError, match="shadow_answers"):
        attack_outputs(game(tmp_path, {"answers": "answers.csv"}, {"training_loss": 0.3}, method="shadow"))


def test_large_tables_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "answers.parquet")
    path = game(tmp_path, {"answers": "answers.parquet"}, {"training_loss": 0.3})
    monkeypatch.setattr("sfumato.attacks.outputs.answered_model.MOST_CONFIDENCES", 11)
    with pytest.raises(SfumatoError, match="more than 11 cells"):
        attack_outputs(path)
    monkeypatch.setattr("sfumato.workflow.attacking.tables.MOST_BYTES", 10)
    with pytest.raises(SfumatoError, match="larger than 10 bytes"):
        attack_outputs(path)
