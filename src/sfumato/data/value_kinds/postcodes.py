"""Postcodes: characters masked from the right, as many as codes of the country have.

Forms of national codes follow the addressing systems that the Universal Postal Union lists. British codes have a first half of
two to four characters, so that masking would cut each at another place: unit, sector, district and area are listed instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.errors import ParameterError, as_name
from sfumato.data.schema import HierarchySpec
from sfumato.data.value_kinds.base import Groups, ValueKind

_BRITISH = re.compile(r"(([A-Z]{1,2})[0-9][A-Z0-9]?) ?([0-9])[A-Z]{2}")


@dataclass(frozen=True)
class Form:
    """How codes are written: a pattern, the longest way to write one, and countries that do."""

    pattern: str
    width: int
    countries: str

    def fits(self, value: str) -> bool:
        """Whether a text is written so."""
        return re.fullmatch(self.pattern, value) is not None


FORMS = (
    Form("[0-9]{4}", 4, "AT AU BE BG CH CY DK HU LI LU NO NZ PH SI TN ZA"),
    Form("[0-9]{5}", 5, "DE DZ EE EG ES FI FR HR ID IT KR KW MA MX MY PE SA TH TR UA VN"),
    Form("[0-9]{6}", 6, "BY CN CO EC IN KZ RO RS RU SG"),
    Form("[0-9]{7}", 7, "CL IL"),
    Form("[0-9]{3} ?[0-9]{2}", 6, "CZ GR SE SK"),
    Form("[0-9]{2}-[0-9]{3}", 6, "PL"),
    Form("[0-9]{5}(?:-[0-9]{4})?", 10, "US"),
    Form("[0-9]{4}-[0-9]{3}", 8, "PT"),
    Form("[0-9]{3}-[0-9]{4}", 8, "JP"),
    Form("[0-9]{5}-[0-9]{3}", 9, "BR"),
    Form("[0-9]{4} ?[A-Z]{2}", 7, "NL"),
    Form("[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]", 7, "CA"),
    Form("[A-Z][0-9][0-9W] ?[0-9A-Z]{4}", 8, "IE"),
    Form("LV-[0-9]{4}", 7, "LV"),
    Form("(?:LT-)?[0-9]{5}", 8, "LT"),
    Form(_BRITISH.pattern, 8, "GB"),
)
_OF_COUNTRY = {country: form for form in FORMS for country in form.countries.split()}


def of_country(country: str) -> ValueKind:
    """The postcodes of one country, by its two letters."""
    form = _OF_COUNTRY.get(country.strip().upper())
    if form is None:
        raise ParameterError(
            f"no form of postcodes is stored for {as_name(country)}; countries are written as two letters: "
            f'{", ".join(sorted(_OF_COUNTRY))}. For others write the mask yourself: hierarchy = {{ mask = "right", width = 5 }}'
        )
    return _of_form(form)


def of_values(values: Sequence[str], counts: Sequence[int]) -> ValueKind:
    """The postcodes written in the form that most records have; of forms that fit as many, the narrowest."""
    fits: Counter[Form] = Counter()
    for value, count in zip(values, counts, strict=True):
        fits.update({form: count for form in FORMS if form.fits(_tidy(value))})
    return _of_form(min(FORMS, key=lambda form: (-fits[form], form.width)))


def _tidy(value: str) -> str:
    return value.strip().upper()


def _of_form(form: Form) -> ValueKind:
    british = form.countries == "GB"

    def groups(value: str) -> Groups:
        if not form.fits(_tidy(value)):
            return None
        return _british(value) if british else ()

    def mask(values: Sequence[str]) -> HierarchySpec | None:
        lengths = {len(value) for value in values}
        # one length is that of the form, with or without its blank; several have to reach the widest
        return None if british else HierarchySpec(mask="right", width=lengths.pop() if len(lengths) == 1 else form.width)

    levels = ("sector", "district", "area") if british else ()
    title = f"postcodes of {form.width} characters ({form.countries.replace(' ', ', ')})"
    return ValueKind("postcodes", title, levels, _WORDS, groups, parameters=mask)


def _british(value: str) -> Groups:
    code = _BRITISH.fullmatch(_tidy(value))
    return None if code is None else (f"{code[1]} {code[3]}", code[1], code[2])


_WORDS = (
    "zip", "zipcode", "zip code", "postcode", "postal", "postal code", "plz", "postleitzahl", "code postal", "codigo postal",
    "cap", "cep", "postnummer",
)  # fmt: skip
