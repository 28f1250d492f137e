"""What a certificate says about earlier releases: numbers that agree with each other, in the form that comparing gives.

Whoever has one folder cannot repeat the comparison: that takes the other releases. What is said in words rests on the maker, and
the page says so; but a comparison that was not made cannot have found anything.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sfumato.core.errors import VerificationFailed
from sfumato.workflow.earlier.comparing import ADDS_UP, NONE_COUNTS, NOTHING_EARLIER, SAME_ROWS

_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Entry = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Words = Annotated[str, StringConstraints(max_length=20_000)]
_Key = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,60}$")]
_Number = int | float | None


class _Comparison(BaseModel):
    """What `compare_with_earlier` says; earlier versions called estimated people people."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    earlier_releases: _Count | Literal["not known"]
    finding: _Words
    compared: _Count = 0
    not_available: list[_Entry] = []
    not_compared: dict[_Entry, _Words] = {}
    made_with_noise: _Count = 0
    repeated_masks: dict[_Words, _Words] = {}
    attack: Literal["Intersection"] | None = None
    success: _Share | None = None
    baseline: _Share | None = None
    people: _Count | None = None
    records: _Count | None = None
    people_estimated: _Count | None = None
    records_estimated: _Count | None = None
    details: dict[_Key, _Number | Literal["estimated", "counted"] | dict[_Words, _Number]] = {}

    def agrees(self, *, withdrawn: bool) -> bool:
        """Whether every release is accounted for, and what is found stands beside a comparison."""
        of_an_attack = {"success", "baseline", "details", "people", "records", "people_estimated", "records_estimated"}
        if self.attack is None and (self.compared or of_an_attack & self.model_fields_set):
            return False
        if self.earlier_releases == "not known":
            return self.attack is None and ADDS_UP in self.finding
        if self.compared + len(self.not_available) + len(self.not_compared) != self.earlier_releases:
            return False
        if self.attack is not None:
            return self.compared > 0
        if self.earlier_releases:
            return ADDS_UP in self.finding
        nothing = NONE_COUNTS if withdrawn else NOTHING_EARLIER
        return bool(self.made_with_noise) or self.finding in (nothing, SAME_ROWS)


def refuse_other_comparison(composition: object, *, withdrawn: bool = False) -> None:
    """Raise where a certificate says about earlier releases what no comparison says; `withdrawn` says whether some were."""
    if not composition:
        return
    try:
        sound = _Comparison.model_validate(composition).agrees(withdrawn=withdrawn)
    except ValidationError:
        sound = False
    if not sound:
        raise VerificationFailed("the certificate says about earlier releases what no comparison with them says")
