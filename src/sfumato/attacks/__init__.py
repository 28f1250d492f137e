"""What an adversary would do: one attack per file, each reports success beside blind guessing.

The names below load on first use; recipes and commands look attacks up in this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "AnswerIntersection": "sfumato.attacks.answer_intersection",
    "BackgroundKnowledge": "sfumato.attacks.background",
    "Facts": "sfumato.attacks.background",
    "Homogeneity": "sfumato.attacks.homogeneity",
    "Intersection": "sfumato.attacks.intersection",
    "Linkage": "sfumato.attacks.linkage",
    "OtherReleases": "sfumato.attacks.intersection",
    "ProbabilisticInference": "sfumato.attacks.inference",
    "PseudonymTracking": "sfumato.attacks.pseudonym_tracking",
    "Register": "sfumato.attacks.linkage",
    "Similarity": "sfumato.attacks.similarity",
    "Skewness": "sfumato.attacks.skewness",
}

#: Attacks that need nothing but the release; a recipe may name them under `checks.attacks`.
ON_THE_RELEASE_ALONE = (
    "BackgroundKnowledge",
    "Homogeneity",
    "ProbabilisticInference",
    "Similarity",
    "Skewness",
)

if TYPE_CHECKING:
    from sfumato.attacks.answer_intersection import AnswerIntersection as AnswerIntersection
    from sfumato.attacks.background import BackgroundKnowledge as BackgroundKnowledge
    from sfumato.attacks.background import Facts as Facts
    from sfumato.attacks.homogeneity import Homogeneity as Homogeneity
    from sfumato.attacks.inference import ProbabilisticInference as ProbabilisticInference
    from sfumato.attacks.intersection import Intersection as Intersection
    from sfumato.attacks.intersection import OtherReleases as OtherReleases
    from sfumato.attacks.linkage import Linkage as Linkage
    from sfumato.attacks.linkage import Register as Register
    from sfumato.attacks.pseudonym_tracking import PseudonymTracking as PseudonymTracking
    from sfumato.attacks.similarity import Similarity as Similarity
    from sfumato.attacks.skewness import Skewness as Skewness

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "ON_THE_RELEASE_ALONE"])
