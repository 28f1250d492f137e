"""DIS-SUDA as the R package sdcMicro computes it: the file's chance that a match is right, shared out by SUDA scores.

A record's score adds a weight for each minimal unique it has, of every size from 1 to all M columns. With the file's chance
DIS = πU/(πU + (1 − π)P), U unique records, P records in pairs and sampling fraction π, a record with score s > 0 has the odds

    s^Q · Σ 1/s^Q / (U (1/DIS − 1)),   Q = 1 + (8 − M)/20,

the sum over all records with a score. Two kinds of weights are in use for a minimal unique of k columns: (M − k)! as published,
and (2^(M − k) − 1) k! (M − k)!/M! of the earlier program, which the package keeps as `original_scores = FALSE`. Templ, Kowarik,
Meindl, "Statistical disclosure control for micro-data using the R package sdcMicro", Journal of Statistical Software 67(4), 2015;
Elliot, Manning, Mayes, Gurd, Bane, "SUDA: a program for detecting special uniques", UNECE/Eurostat work session 2005.
"""

from __future__ import annotations

from math import comb, factorial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.measures.risk.uniques.population_uniqueness import intrusion_simulation

Real = NDArray[np.float64]

#: How a minimal unique of k of M columns weighs: as published, or as in the earlier program.
Weights: TypeAlias = Literal["published", "earlier"]


def suda_weights(columns: int, weights: Weights = "published") -> Real:
    """The weight of a minimal unique of 1, 2, … `columns` columns."""
    sizes = range(1, columns + 1)
    if weights == "published":
        return np.array([float(factorial(columns - size)) for size in sizes])
    return np.array([(2.0 ** (columns - size) - 1.0) / comb(columns, size) for size in sizes])


def dis_suda(
    counts: NDArray[np.int64], class_sizes: NDArray[np.int64], sampling_fraction: float, weights: Weights = "published"
) -> Real:
    """The DIS-SUDA score of each record from its minimal uniques of every size (records × columns) and the sizes of all classes.

    All unique records count in U; the package misses those that share a place in its hash table with other records.
    """
    columns = int(counts.shape[1])
    scores = counts @ suda_weights(columns, weights)
    special = scores > 0.0
    risks = np.zeros(scores.size)
    level, uniques = intrusion_simulation(class_sizes, sampling_fraction), int((class_sizes == 1).sum())
    if not special.any() or level <= 0.0 or not uniques:
        return risks
    power = scores[special] ** (1.0 + (8.0 - columns) / 20.0)
    against = uniques * (1.0 / level - 1.0)
    risks[special] = 1.0 / (1.0 + against / (power * float((1.0 / power).sum())))
    return risks
