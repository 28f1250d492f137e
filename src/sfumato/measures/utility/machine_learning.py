"""Machine-learning loss: train on the release, test on original records, compare with training on the
original.

A cell is described to the learner by the values it may stand for: a number by their mean, a category by
equal weights on its leaves, so that released and original records live in the same space whatever the
recoding was. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002; LeFevre, DeWitt,
Ramakrishnan, "Workload-aware anonymization", KDD 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core import randomness
from sfumato.core.errors import Unsupported
from sfumato.core.ranges import ColumnName, Probability
from sfumato.core.view import Measure, Score
from sfumato.data.microdata import ReleasedTable
from sfumato.data.texts.values import as_numbers
from sfumato.measures.guarantees.classes import CodedColumn, require_columns
from sfumato.measures.parameters import DrawSeed
from sfumato.measures.utility.shown import (
    OriginalColumn,
    Rows,
    ShownColumn,
    require_leaves,
    require_release,
    rows_of,
    shown_columns,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MachineLearningLoss(Measure[Rows, ReleasedTable]):
    """Accuracy that a model of `target` loses when it is trained on the release instead of the original.

    `learner` is "logistic" or "forest"; features are the quasi-identifiers. A share `held_out` of the original records is kept
    for testing; where the released rows stand in the original order those records are kept out of training too, otherwise a
    sample of the released rows of the same size is used. Another `seed`, another split.
    """

    target: Annotated[ColumnName, "the column that is learnt"]
    learner: Annotated[Literal["logistic", "forest"], "the model that is trained"] = "logistic"
    held_out: Annotated[Probability, "the share of the records kept for testing"] = 0.3
    seed: DrawSeed = "machine learning"
    key: ClassVar[str] = "machine_learning"

    def score(self, original: Rows, released: ReleasedTable) -> Score:
        """Accuracy lost; accuracies, areas under the curve and the accuracy of always guessing the
        majority as parts.
        """
        require_release(released)
        rows = rows_of(original)
        require_columns(rows, [self.target])
        require_columns(released.table, [self.target])
        columns = tuple(column for column in shown_columns(original, released) if column.name != self.target)
        require_leaves(columns)
        if not columns or min(rows.num_rows, released.table.num_rows) < 10:
            raise Unsupported("the machine-learning loss needs a feature besides the target and at least 10 records")
        raw = np.hstack([_describe_original(column, rows) for column in columns])
        shown = np.hstack([_describe_released(column) for column in columns])
        labels, shown_labels = _labels(rows, self.target), _labels(released.table, self.target)

        source = randomness.default(self.seed)
        order = randomness.permutation(source, rows.num_rows)
        cut = min(max(1, round(self.held_out * rows.num_rows)), rows.num_rows - 1)  # something is left to learn from
        test, train = order[:cut], order[cut:]
        same_rows = released.table.num_rows == rows.num_rows and bool(np.all(labels == shown_labels))
        sample = train if same_rows else randomness.permutation(source, released.table.num_rows)[: train.size]
        before = self._fit(raw[train], labels[train], raw[test], labels[test])
        after = self._fit(shown[sample], shown_labels[sample], raw[test], labels[test])
        _, counts = np.unique(labels[test], return_counts=True)
        parts = {
            "accuracy original": before[0],
            "accuracy released": after[0],
            "accuracy majority": float(counts.max() / counts.sum()),
            "area original": before[1],
            "area released": after[1],
        }
        meaning = f"accuracy lost when predicting '{self.target}' with a model trained on the release"
        return Score(self.key, before[0] - after[0], "lower", meaning, MappingProxyType(parts))

    def _fit(self, features: Floats, labels: NDArray[Any], tests: Floats, truth: NDArray[Any]) -> tuple[float, float]:
        """Accuracy, and area under the curve (averaged over the values against the rest; 0.5 where it is
        not defined).
        """
        from sklearn.metrics import roc_auc_score

        if np.unique(labels).size < 2:
            return float(np.mean(truth == labels[0])), 0.5
        model = self._model().fit(features, labels)
        accuracy = float(np.mean(model.predict(tests) == truth))
        chances = model.predict_proba(tests)
        areas = []
        for i, label in enumerate(model.classes_):
            is_label = truth == label
            if 0 < is_label.sum() < truth.size:
                areas.append(float(roc_auc_score(is_label, chances[:, i])))
        return accuracy, float(np.mean(areas)) if areas else 0.5

    def _model(self) -> Any:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        if self.learner == "forest":
            return RandomForestClassifier(n_estimators=50, min_samples_leaf=5, random_state=0)
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))


def _labels(table: pa.Table, target: str) -> NDArray[Any]:
    coded = CodedColumn.of(table.column(target))
    return np.array(["" if value is None else f"={value}" for value in coded.values])[coded.codes]


def _describe_original(column: ShownColumn, rows: pa.Table) -> Floats:
    source = OriginalColumn.of(rows, column.name)
    numbers = as_numbers(column.tree.leaves)
    listed = [frozenset([value]) for value in source.coded.values]
    return _describe(listed, column, numbers)[source.coded.codes]


def _describe_released(column: ShownColumn) -> Floats:
    numbers = as_numbers(column.tree.leaves)
    return _describe([meaning.leaves for meaning in column.meanings], column, numbers)[column.coded.codes]


def _describe(below: list[frozenset[str | None]], column: ShownColumn, numbers: list[float] | None) -> Floats:
    """One row per set of leaves: their mean where they are numbers, otherwise equal weights on each."""
    index = column.tree.index
    weights = np.zeros((len(below), len(column.tree.leaves)))
    for row, leaves in enumerate(below):
        places = [index[leaf] for leaf in leaves if leaf in index]
        if places:
            weights[row, places] = 1.0 / len(places)
    if numbers is None:
        return weights
    values = np.array(numbers)
    values = np.where(np.isnan(values), np.nanmean(values) if not np.all(np.isnan(values)) else 0.0, values)
    return np.asarray(weights @ values, dtype=np.float64)[:, None]
