"""The register of privacy models: what each protects, whose privacy it is, what must be known beforehand, and where it lives.

A mechanism is data-driven when the analysis is not known (publish a table), computation-driven when it is (answer a
query, train a model together) and result-driven when the results themselves are sensitive. Respondents are the people
in the data, owners hold it, users ask questions. Torra, "Data privacy: foundations, new developments and the big data
challenge", Springer, 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Driven = Literal["data", "computation", "result"]
Whose = Literal["respondent", "owner", "user"]
Disclosure = Literal["identity", "attribute", "membership"]


@dataclass(frozen=True)
class PrivacyModel:
    """One model of privacy.

    `composes` says whether several releases together still keep a computable promise; `room` is where its methods
    live, None while there is none.
    """

    name: str
    idea: str
    driven: Driven
    whose: tuple[Whose, ...]
    against: tuple[Disclosure, ...]
    composes: bool
    room: str | None


MODELS: tuple[PrivacyModel, ...] = (
    PrivacyModel(
        "re-identification privacy",
        "linking released records with known people succeeds rarely",
        "data",
        ("respondent",),
        ("identity",),
        composes=False,
        room="sfumato.measures.risk",
    ),
    PrivacyModel(
        "k-anonymity and its refinements",
        "nobody stands out from at least k - 1 others, and a class tells little about sensitive values",
        "data",
        ("respondent",),
        ("identity", "attribute"),
        composes=False,
        room="sfumato.anonymity",
    ),
    PrivacyModel(
        "δ-presence and k-map",
        "the release tells little about who of a population is in it",
        "data",
        ("respondent",),
        ("identity", "membership"),
        composes=False,
        room="sfumato.anonymity",
    ),
    PrivacyModel(
        "differential privacy",
        "the answer hardly depends on whether one person is in the data",
        "computation",
        ("respondent",),
        ("identity", "attribute", "membership"),
        composes=True,
        room="sfumato.dp",
    ),
    PrivacyModel(
        "local differential privacy and d-privacy",
        "what leaves a device hardly depends on the value (or, for d-privacy, on nearby values)",
        "data",
        ("respondent", "user"),
        ("attribute",),
        composes=True,
        room=None,
    ),
    PrivacyModel(
        "secure multiparty computation",
        "the parties learn the result and nothing else about each other's data",
        "computation",
        ("owner", "respondent"),
        ("attribute",),
        composes=False,
        room=None,
    ),
    PrivacyModel(
        "homomorphic encryption",
        "somebody computes on data that they cannot read",
        "computation",
        ("owner", "user"),
        ("attribute",),
        composes=False,
        room=None,
    ),
    PrivacyModel(
        "result privacy",
        "results that must not be learnt are hidden, such as sensitive association rules",
        "result",
        ("owner",),
        ("attribute",),
        composes=False,
        room=None,
    ),
    PrivacyModel(
        "integral privacy",
        "a result could have come from many quite different databases",
        "computation",
        ("respondent",),
        ("membership",),
        composes=False,
        room="sfumato.measures.risk.disclosure.integral_privacy",
    ),
    PrivacyModel(
        "anonymous communication",
        "nobody can tell who sent which message",
        "computation",
        ("user",),
        ("identity",),
        composes=False,
        room="sfumato.wire.mix",
    ),
)


def models(*, driven: Driven | None = None, whose: Whose | None = None, built: bool | None = None) -> tuple[PrivacyModel, ...]:
    """The models that fit: by what they are driven, whose privacy they protect, whether a room implements them."""
    return tuple(
        model
        for model in MODELS
        if (driven is None or model.driven == driven)
        and (whose is None or whose in model.whose)
        and (built is None or (model.room is not None) == built)
    )
