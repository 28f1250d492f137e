"""The four learners of the classification measure, each with fixed settings that suit tables of a few thousand records.

Tree: CART with leaves of at least 1 % of the records. Naive Bayes: normal densities for numbers, smoothed frequencies for
categories. k-NN: 15 neighbours among standardised features. SVM: radial kernel, C = 1, width by the features' variance;
its ranking is the decision value against the rest, not a probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.records import Records

Real = NDArray[np.float64]
Int = NDArray[np.int64]

LEARNERS = ("tree", "bayes", "knn", "svm")

_NEIGHBOURS = 15


def learn(
    name: str, records: Records, points: Real, labels: Int, tests: Records, test_points: Real, seed: int
) -> tuple[Int, Real]:
    """Predicted classes of the test records, and for each class a number that ranks them."""
    if name == "bayes":
        return _naive_bayes(records, points, labels, tests, test_points)
    model: Any
    if name == "tree":
        from sklearn.tree import DecisionTreeClassifier

        model = DecisionTreeClassifier(min_samples_leaf=max(2, labels.size // 100), random_state=seed)
    elif name == "knn":
        from sklearn.neighbors import KNeighborsClassifier

        model = KNeighborsClassifier(n_neighbors=min(_NEIGHBOURS, labels.size))
    else:
        from sklearn.svm import SVC

        model = SVC(kernel="rbf", C=1.0, gamma="scale", decision_function_shape="ovr")
    model.fit(points, labels)
    if name == "svm":
        decided = np.asarray(model.decision_function(test_points), dtype=np.float64)
        ranks = np.column_stack([-decided, decided]) if decided.ndim == 1 else decided
    else:
        ranks = np.asarray(model.predict_proba(test_points), dtype=np.float64)
    return np.asarray(model.predict(test_points), dtype=np.int64), ranks


def _naive_bayes(records: Records, points: Real, labels: Int, tests: Records, test_points: Real) -> tuple[Int, Real]:
    """Columns are taken as independent within a class; a missing value says nothing."""
    classes, member = np.unique(labels, return_inverse=True)
    counts = np.bincount(member).astype(np.float64)
    evidence = np.tile(np.log(counts / counts.sum()), (tests.size, 1))
    # The numbers are the first features: standardised, so that no square of one overflows.
    for place, (column, test) in enumerate(zip(records.numbers, tests.numbers, strict=True)):
        present, standardised = column.known, points[:, place]
        overall = float(np.var(standardised[present])) if present.any() else 0.0
        if overall == 0:
            continue
        for c in range(classes.size):
            values = standardised[present & (member == c)]
            if values.size:
                variance = float(np.var(values)) + 1e-9 * overall
                density = -0.5 * ((test_points[:, place] - values.mean()) ** 2 / variance + np.log(2 * np.pi * variance))
                evidence[:, c] += np.where(test.known, density, 0.0)
    for named, tested in zip(records.categories, tests.categories, strict=True):
        table = np.ones((len(named.labels), classes.size))
        np.add.at(table, (named.codes[named.known], member[named.known]), 1.0)
        shares = np.log(table / table.sum(axis=0))
        evidence += np.where(tested.known[:, None], shares[tested.codes], 0.0)
    return classes[np.argmax(evidence, axis=1)].astype(np.int64), evidence - _log_total(evidence)


def _log_total(evidence: Real) -> Real:
    from scipy.special import logsumexp

    total: Real = logsumexp(evidence, axis=1, keepdims=True)
    return total
