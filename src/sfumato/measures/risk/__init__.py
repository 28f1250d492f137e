"""How safe is the release? Measures of re-identification risk.

`KEYS` gives, for the name recipes use, the class and its module; both load on first use.
"""

from __future__ import annotations

from sfumato.core.lazy import face

_ROOM = "sfumato.measures.risk"

KEYS: dict[str, tuple[str, str]] = {
    "assignment_linkage": ("AssignmentLinkage", f"{_ROOM}.linkage.assignment_linkage"),
    "attribute_disclosure": ("AttributeDisclosure", f"{_ROOM}.disclosure.attribute_disclosure"),
    "disclosure_risk": ("DisclosureRisk", f"{_ROOM}.disclosure.disclosure_risk"),
    "distance_linkage": ("DistanceLinkage", f"{_ROOM}.linkage.distance_linkage"),
    "distinction": ("AttributeDistinction", f"{_ROOM}.uniques.distinction"),
    "household_risk": ("HouseholdRisk", f"{_ROOM}.uniques.household_risk"),
    "individual_risk": ("IndividualRisk", f"{_ROOM}.uniques.individual_risk"),
    "interval_disclosure": ("IntervalDisclosure", f"{_ROOM}.disclosure.interval_disclosure"),
    "journalist_risk": ("JournalistRisk", f"{_ROOM}.uniques.reidentification"),
    "log_linear_risk": ("LogLinearRisk", f"{_ROOM}.uniques.log_linear_risk"),
    "marketer_risk": ("MarketerRisk", f"{_ROOM}.uniques.reidentification"),
    "nearest_record": ("NearestRecord", f"{_ROOM}.linkage.nearest_record"),
    "population_uniqueness": ("PopulationUniqueness", f"{_ROOM}.uniques.population_uniqueness"),
    "probabilistic_linkage": ("ProbabilisticLinkage", f"{_ROOM}.linkage.probabilistic_linkage"),
    "prosecutor_risk": ("ProsecutorRisk", f"{_ROOM}.uniques.reidentification"),
    "sampling_risk": ("SamplingRisk", f"{_ROOM}.uniques.sampling_risk"),
    "special_uniques": ("SpecialUniques", f"{_ROOM}.uniques.suda"),
    "uniques": ("SampleUniques", f"{_ROOM}.uniques.reidentification"),
    "wildcard_risk": ("WildcardRisk", f"{_ROOM}.uniques.wildcard_risk"),
    "worst_case": ("WorstCase", f"{_ROOM}.linkage.worst_case"),
    "worst_case_linkage": ("LearnedLinkage", f"{_ROOM}.linkage.learned_linkage"),
}

NAMES = {
    **dict(KEYS.values()),
    "AnonymitySet": f"{_ROOM}.uniques.anonymity_set",
    "IntegralPrivacy": f"{_ROOM}.disclosure.integral_privacy",
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
