"""Every measure takes whatever was released, in each form in which somebody may hold it, or refuses it in words."""

from __future__ import annotations

import pytest

from sfumato.core.errors import SfumatoError
from sfumato.core.view import AnyMeasure, Score
from sfumato.data.masked import Compared
from tests.conformance import masks
from tests.conformance.examples import examples

MEASURES = examples("measure")
#: About what only a search knows: which values a text stands for, or how many records were left out.
OF_RECODINGS = (
    *("ambiguity", "detail_kept", "discernibility", "distortion", "entropy", "granularity", "loss", "machine_learning"),
    *("precision", "query_error", "range_shown", "squared_error", "suppressed"),
)
#: Without weights nor a population there is nobody to compare with.
OF_A_POPULATION = ("journalist_risk",)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_a_measure_takes_a_table_in_every_form_or_refuses_it_in_words(name: str) -> None:
    measure: AnyMeasure = MEASURES[name]
    people = masks.people(60)
    forms: list[Compared] = [people, people.table(), masks.example("AdditiveNoise").apply(people, seed=1).result]
    for released in forms:
        if name in OF_RECODINGS:
            with pytest.raises(SfumatoError, match="reads the released table of a recoding method"):
                measure.score(people, released)
        elif name in OF_A_POPULATION:
            with pytest.raises(SfumatoError, match="needs a population"):
                measure.score(people, released)
        else:
            assert isinstance(measure.score(people, released), Score)
