"""A release attacked by somebody who knows more than it shows, as a file about an attack says what.

`{"attack": {"name": "PartialKnowledge"}, "published": {"release": "out"}, "knowledge": {"items": ["beer", "tea"]}}`. The
folder of the release is looked for beside the file. An empty knowledge attacks everybody with what the attack supposes by
itself, as `sfumato attack out` does. What is known about a person goes into no message and no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato import attacks
from sfumato.core.errors import HierarchyGap, InputError, ParameterError, all_at_once
from sfumato.core.params import require
from sfumato.core.texts import text_of
from sfumato.core.view import View
from sfumato.workflow.attacking import view_of

#: Shares that somebody wrote down may add up to a little more than 1.
_ROUNDING = 1e-6
#: Quasi-identifiers of one person, in their text form.
Target = Mapping[str, str | None]


def known_set(published: Any, known: Mapping[str, Any], folder: Path) -> tuple[View, Any]:
    """Some items of one person's set, and quasi-identifiers where they are known."""
    _only(known, "items", "target")
    target = _target(known.get("target", {}))
    items = known.get("items", [])
    listed = isinstance(items, list) and None not in items
    require(listed, "knowledge: items must be a list of items as they are published")
    wanted = frozenset(str(_text(item, "items")) for item in items)
    return _release(published, folder, target), attacks.KnownSet(wanted, target) if known else None


def known_facts(published: Any, known: Mapping[str, Any], folder: Path) -> tuple[View, Any]:
    """Quasi-identifiers of one person, values the person cannot have, and how many others of the class have which."""
    _only(known, "target", "excluded", "others")
    target = _target(known.get("target", {}))
    require(bool(target) or not known, "knowledge: target must say who is attacked, by a quasi-identifier at least")
    excluded = known.get("excluded", [])
    require(isinstance(excluded, list), "knowledge: excluded must be a list of values that the target cannot have")
    others = _object(known.get("others", {}), "others", "values to numbers of people")
    counted = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 53 for n in others.values())
    require(counted, "knowledge: others must say of how many people each value is known: whole numbers")
    ruled_out = tuple(_text(value, "excluded") for value in excluded)
    facts = attacks.Facts(target, ruled_out, {value: int(number) for value, number in others.items()}) if known else None
    return _release(published, folder, target), facts


def known_shares(published: Any, known: Mapping[str, Any], folder: Path) -> tuple[View, Any]:
    """How frequent values are, known from elsewhere."""
    _only(known, "prior")
    prior = _object(known.get("prior", {}), "prior", "values to their shares")
    shares = all(isinstance(n, (int, float)) and not isinstance(n, bool) and 0 <= n <= 1 for n in prior.values())
    require(shares, "knowledge: the shares in prior must be numbers from 0 to 1")
    require(sum(prior.values()) <= 1 + _ROUNDING, "knowledge: the shares in prior sum to more than 1")
    return _release(published, folder, {}), {value: float(n) for value, n in prior.items()} if known else None


def known_groups(published: Any, known: Mapping[str, Any], folder: Path) -> tuple[View, Any]:
    """Which values are alike."""
    _only(known, "groups")
    groups = _object(known.get("groups", {}), "groups", "values to the name of their group")
    require(all(isinstance(name, str) for name in groups.values()), "knowledge: the names of groups must be texts")
    return _release(published, folder, {}), dict(groups) if known else None


def nothing_more(published: Any, known: Mapping[str, Any], folder: Path) -> tuple[View, Any]:
    """The release alone; what an adversary knows are the parameters of the attack."""
    if known:
        raise ParameterError("knowledge must be empty here: what this adversary knows are the parameters of the attack")
    return _release(published, folder, {}), None


def _release(published: Any, folder: Path, target: Target) -> View:
    """The release with its texts read over the target's values."""
    place = published.get("release") if isinstance(published, Mapping) and len(published) == 1 else None
    if not isinstance(place, str) or not _writable(place) or "\0" in place:
        raise InputError('published must name the folder of a release, and that alone: {"release": "out"}')
    person = pa.table({name: pa.array([value], pa.string()) for name, value in target.items()}) if target else None
    try:
        return view_of(folder / place, person)
    except HierarchyGap:
        raise InputError("a value of the target, or of the release, is missing from the hierarchy of its column") from None


def _target(value: Any) -> Target:
    return {name: _text(entry, "target") for name, entry in _object(value, "target", "quasi-identifiers to values").items()}


def _text(value: Any, what: str) -> str | None:
    single = value is None or isinstance(value, (str, int, float))
    require(single and _writable(str(value)), f"knowledge: {what} holds single values: texts or numbers")
    return text_of(value)


def _writable(text: str) -> bool:
    """JSON can spell halves of characters, which no table holds and no file is called."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _object(value: Any, what: str, form: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ParameterError(f"knowledge: {what} must be an object from {form}")
    require(all(_writable(name) for name in value), f"knowledge: {what} names something in characters that do not exist")
    return value


def _only(known: Mapping[str, Any], *names: str) -> None:
    unknown = [name[:60] for name in known if name not in names][:10]
    all_at_once(ParameterError, "knowledge", [f"'{name}' is not among {', '.join(names)}" for name in unknown])


#: How what is known about a release is read, by attack.
FORMS: dict[str, Callable[[Any, Mapping[str, Any], Path], tuple[View, Any]]] = {
    "BackgroundKnowledge": known_facts,
    "Homogeneity": nothing_more,
    "PartialKnowledge": known_set,
    "ProbabilisticInference": nothing_more,
    "PseudonymTracking": nothing_more,
    "Similarity": known_groups,
    "Skewness": known_shares,
}
