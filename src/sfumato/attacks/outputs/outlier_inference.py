"""Outliers seen in outputs: one extreme record moves a mean or a line so far that its presence shows.

The published output is compared with what it would be without the person: how many standard deviations it lies away (z),
and how far the person's record would move it. Once Ms Rich moves to the village, its mean income tells that she did.
Torra, "Data privacy: foundations, new developments and the big data challenge", Springer 2017; the shifts of regression
coefficients: Belsley, Kuh, Welsch, "Regression diagnostics", Wiley 1980.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import OutputAttack
from sfumato.attacks.outputs.numeric_input import Numbers, Real, are_numbers, matrix, vector
from sfumato.core.declared import Declared, require
from sfumato.core.errors import InputError
from sfumato.core.ranges import Whole
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True, eq=False)
class TypicalPeople(Declared):
    """Records like those behind the output (`typical`, a row per person), the records of the `targets`, and how many
    people are behind the output (`count`, the target included if present). For a regression the last column is what is
    predicted. `present`, true or false per target, is not the adversary's: it scores the attack."""

    typical: Annotated[Any, "records like those behind the output"] = field(repr=False)
    targets: Annotated[Any, "the records of the targets"] = field(repr=False)
    count: Annotated[int, Whole(at_least=2), "people behind the output"]
    present: Annotated[Any, "true or false per target, to score the attack"] = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class InferredPresence:
    """How visible each target is: `z`, by how many standard deviations the output is shifted in the direction of the
    target's record; `expected`, the mean of z if the target is present (0 if not); `posterior` of presence from a prior of
    1/2; `p_value`, how often chance alone shifts as much without the target."""

    z: Real = field(repr=False)
    expected: Real = field(repr=False)
    posterior: Real = field(repr=False)
    p_value: Real = field(repr=False)


@dataclass(frozen=True)
class OutlierInference(OutputAttack[Numbers, TypicalPeople]):
    """The adversary knows a target's record, and people like the others behind a published mean or regression.

    The view's result holds the means, or with `output="regression"` the intercept and the coefficients of least squares;
    `knowledge` is `TypicalPeople`. Success: how often the better of "present" and "absent" is right (with `present`, of the
    given targets; otherwise the probability by the normal law, for targets who are there half the time). Blind guessing: 1/2.

    >>> village = [[1000.0], [2000], [3000], [2000], [1000], [6000], [2000], [10000], [2000], [4000]]
    >>> income = View([12090.909], None)
    >>> OutlierInference().run(income, TypicalPeople(village, [[100_000.0]], count=11)).success > 0.999
    True
    """

    output: Annotated[Literal["mean", "regression"], "what was published"] = "mean"

    needs: ClassVar[tuple[str, ...]] = ("typical", "targets", "count")
    knows: ClassVar[type[Any]] = TypicalPeople

    def fits(self, view: View[object, object]) -> bool:
        """Means, or the coefficients of a regression."""
        return are_numbers(view.result)

    def run(self, view: View[Numbers, object], knowledge: TypicalPeople | None = None) -> AttackResult:
        """Decide for every target whether the output shows it."""
        presence = self.presence(view.result, knowledge)
        targets = presence.z.size
        called = presence.z > presence.expected / 2
        by_law = _normal(presence.expected / 2)
        if knowledge is None or knowledge.present is None:
            right = float(by_law.sum())
        else:
            right = float((called == _flags(knowledge.present, targets)).sum())
        visible = int((presence.p_value < 0.01).sum())
        return AttackResult(
            attack="OutlierInference",
            success=share(right, targets),
            baseline=0.5,
            interval=wilson(right, targets),
            targets=targets,
            finding=(
                f"Whether a target is behind the published {self.output} is guessed correctly in "
                f"{percent(share(right, targets))} of cases, by a coin in 50 %; the most visible record would move it by "
                f"{float(presence.expected.max()):.3g} standard deviations."
            ),
            details={
                "output": self.output,
                "called_present": int(called.sum()),
                "visible_at_1_percent": visible,
                "largest_expected_shift": float(presence.expected.max()),
                "largest_shift_seen": float(presence.z.max()),
                "expected_success": share(float(by_law.sum()), targets),
            },
        )

    def presence(self, output: object, knowledge: TypicalPeople | None) -> InferredPresence:
        """How visible each target is in a published output."""
        if not isinstance(knowledge, TypicalPeople):
            raise InputError("outlier inference needs TypicalPeople as knowledge")
        typical = matrix(knowledge.typical, "the typical people")
        targets = matrix(knowledge.targets, "the targets", typical.shape[1])
        published = vector(output, "the published output", typical.shape[1])
        without, shifts, spread = (_mean_shifts if self.output == "mean" else _regression_shifts)(
            typical, targets, knowledge.count
        )
        try:
            root = np.linalg.cholesky(spread)
        except np.linalg.LinAlgError:
            raise InputError(
                "the typical people: an attribute is constant or follows from the others; leave it out or give more people"
            ) from None
        directions = np.linalg.solve(root, shifts.T)
        expected = np.sqrt((directions**2).sum(axis=0))
        along = np.linalg.solve(root, published - without) @ directions
        z = np.divide(along, expected, out=np.zeros_like(expected), where=expected > 0)
        ratio = np.clip(expected * (z - expected / 2), -700.0, 700.0)  # logarithm of the likelihood ratio
        return InferredPresence(z, expected, 1 / (1 + np.exp(-ratio)), _normal(-z))


def value_behind_jump(before: float, after: float, count: int) -> float:
    """What the person who joined must have: the mean of `count` people was `before`, with one more it is `after`."""
    require(count >= 1, "value_behind_jump: count must be at least 1")
    return after + count * (after - before)


def _mean_shifts(typical: Real, targets: Real, count: int) -> tuple[Real, Real, Real]:
    """The mean without the target, its shift by each target, and its covariance."""
    if len(typical) < 2:
        raise InputError("the typical people: at least two are needed")
    centre: Real = typical.mean(axis=0)
    # The published mean varies, and so does the mean of the typical people it is compared with.
    spread: Real = np.atleast_2d(np.cov(typical, rowvar=False)) * (1 / count + 1 / len(typical))
    return centre, (targets - centre) / count, spread


def _regression_shifts(typical: Real, targets: Real, count: int) -> tuple[Real, Real, Real]:
    """The coefficients without the target, their shift by each target's record, and their covariance."""
    people, columns = typical.shape
    if people <= columns:
        raise InputError("the typical people: a regression needs more people than coefficients")
    design, outcome = np.column_stack([np.ones(people), typical[:, :-1]]), typical[:, -1]
    fitted, _, rank, _ = np.linalg.lstsq(design, outcome, rcond=None)
    if rank < columns:
        raise InputError("the typical people: an attribute is constant or follows from the others; leave it out")
    residual = outcome - design @ fitted
    # As if everybody but the target were like the typical people, that many of them.
    gram = design.T @ design * ((count - 1) / people)
    inverse = np.linalg.inv(gram)
    variance = float(residual @ residual) / (people - columns)
    if variance <= 0:
        raise InputError("the typical people: the regression fits them without any residual, so nothing varies")
    rows = np.column_stack([np.ones(len(targets)), targets[:, :-1]])
    pull = rows @ inverse
    leverage = (pull * rows).sum(axis=1)
    shifts = pull * ((targets[:, -1] - rows @ fitted) / (1 + leverage))[:, None]
    # Both regressions vary: the published one and the one it is compared with.
    spread: Real = inverse * variance * (1 + (count - 1) / people)
    return np.asarray(fitted, dtype=np.float64), shifts, spread


def _normal(z: Real) -> Real:
    from scipy.special import ndtr

    below: Real = ndtr(z)
    return below


def _flags(entries: Any, targets: int) -> NDArray[np.bool_]:
    flags = np.asarray(entries)
    if flags.shape != (targets,) or not np.isin(flags, (0, 1)).all():
        raise InputError(f"present: true or false is needed for each of the {targets} targets")
    return flags.astype(np.bool_)
