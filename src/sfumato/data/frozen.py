"""What files of an owner say, field by field: frozen, and every key that nobody knows is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from sfumato.core.errors import ParameterError
from sfumato.data.texts.reading import Reading


class Frozen(BaseModel):
    """What an owner's file says, as it stands there: no other key, and nothing changes afterwards."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, serialize_by_alias=True, arbitrary_types_allowed=True
    )


def _reading(stated: Any) -> Any:
    """A reading as plain data says it, every fault at the key that it is about."""
    if not isinstance(stated, Mapping):
        return stated
    keys = Reading.names()
    faults = [
        InitErrorDetails(type=PydanticCustomError("extra_forbidden", "unknown key"), loc=(str(name),), input=None)
        for name in stated
        if name not in keys
    ]
    kept = {name: value for name, value in stated.items() if name in keys}
    for name, value in kept.items():
        faults += _fault({name: value}, (name,)) if name not in ("decimal", "thousands") else []
    faults += _fault({name: kept[name] for name in ("decimal", "thousands") if name in kept}, ())
    if faults:
        raise ValidationError.from_exception_data("read", faults, hide_input=True)
    return Reading(**kept)


def _fault(values: Mapping[str, Any], place: tuple[str, ...]) -> list[InitErrorDetails]:
    try:
        Reading(**values)
    except ParameterError as error:
        text = str(error).removeprefix("Reading: ").removeprefix(f"{place[0]} " if place else "")
        return [InitErrorDetails(type=PydanticCustomError("reading", "{text}", {"text": text}), loc=place, input=None)]
    return []


#: The field of a file that says how texts are read.
ReadingField = Annotated[Reading, BeforeValidator(_reading), PlainSerializer(Reading.to_mapping, return_type=dict[str, Any])]
