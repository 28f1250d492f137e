"""What is asked for in short: `k=5`, columns by role, guarantees and methods as texts. It becomes what the long way takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sfumato.core import registry
from sfumato.core.errors import MissingColumn, ParameterError, all_at_once
from sfumato.core.guarantees.base import ClassGuarantee, Guarantee
from sfumato.core.guarantees.k_anonymity import KAnonymity
from sfumato.core.plain_data import Plain
from sfumato.core.texts import nearest
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Role
from sfumato.report.wording import counted
from sfumato.workflow import named

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.engines.sources import TableLike
    from sfumato.masking.base import Mask
    from sfumato.workflow.comparing.grid import Unplaced

#: A guarantee as somebody has it: itself, a text such as "KAnonymity(k=5)", or a mapping with its name and parameters.
GuaranteeLike: TypeAlias = ClassGuarantee | str | Plain
#: Names of columns, or one name.
Columns: TypeAlias = str | Iterable[str]


@dataclass(frozen=True)
class ColumnsByRole:
    """Columns by the role that they play."""

    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    identifier: tuple[str, ...]
    plain: tuple[str, ...]

    @classmethod
    def of(
        cls, quasi: Columns | None, sensitive: Columns | None, identifier: Columns | None, plain: Columns | None
    ) -> ColumnsByRole:
        """The columns as they were named."""
        return cls(_names(quasi), _names(sensitive), _names(identifier), _names(plain))

    @property
    def roles(self) -> dict[str, list[Role]]:
        """The roles of each column: more than one where two lists have it."""
        roles: dict[str, list[Role]] = {}
        by_role: dict[Role, tuple[str, ...]] = {
            "quasi": self.quasi,
            "sensitive": self.sensitive,
            "identifier": self.identifier,
            "plain": self.plain,
        }
        for role, columns in by_role.items():
            for name in dict.fromkeys(columns):
                roles.setdefault(name, []).append(role)
        return roles

    def described(self, data: TableLike, schema: object) -> Microdata:
        """The table with these roles; types and hierarchies are those that `inspect` suggests for such columns."""
        from sfumato.workflow.inspect import with_roles

        if schema is not None:
            raise ParameterError(
                "schema= describes the columns, and so do quasi=, sensitive=, identifier= and plain=. Write the roles into the "
                "schema, or leave schema= out"
            )
        if isinstance(data, Microdata):
            raise ParameterError(
                "a table that sf.read opened has a schema, and quasi=, sensitive=, identifier= and plain= describe its columns "
                "again. Write the roles into that schema, or pass the file or frame itself"
            )
        return with_roles(data, self.one_role_each)

    def one_role_each(self, present: Sequence[str]) -> dict[str, Role]:
        """The role of each column; names that are no columns, columns with two roles and columns without one are refused, all
        at once."""
        unknown = [f"there is no column '{name}'{nearest(name, present)}" for name in self.roles if name not in present]
        all_at_once(MissingColumn, "protect", unknown)
        faults = [
            f"column '{name}' is named in {' and '.join(f'{role}=' for role in roles)}; name it once"
            for name, roles in self.roles.items()
            if len(roles) > 1
        ]
        if others := [name for name in present if name not in self.roles]:
            listed = ", ".join(f"'{name}'" for name in others[:10]) + (" …" if len(others) > 10 else "")
            faults.append(
                f"{counted(len(others), 'column')} {'has' if len(others) == 1 else 'have'} no role: {listed}. Name those that "
                "single people out in quasi=, those to publish as they are in plain=, and those to leave out in identifier="
            )
        if not self.quasi:
            faults.append("no column is named in quasi=. Say which columns an outsider could know about a person")
        all_at_once(ParameterError, "protect", faults)
        return {name: role for name, (role,) in self.roles.items()}


def promised(guarantees: Iterable[object], k: int | None) -> tuple[ClassGuarantee, ...]:
    """The guarantees that were asked for, with k-anonymity where `k` asks for it."""
    promises = [_guarantee(each) for each in guarantees]
    if k is None:
        return tuple(promises)
    if any(type(each) is KAnonymity for each in promises):
        raise ParameterError("k= asks for k-anonymity, and so does a KAnonymity among the guarantees. Keep one of the two")
    return (KAnonymity(k), *promises)


def method_of(method: Search | Mask | str | Plain) -> Search | Mask:
    """A search or a mask alone: itself, a text such as "Lattice(suppression=0.05)", or a mapping with its name and parameters."""
    entry = named.inline(method) if isinstance(method, str) else method
    name = entry.get("name") if isinstance(entry, Mapping) else type(entry).__name__
    if registry.has("guarantee", name):
        raise ParameterError(f"{name} is a guarantee and no method: pass it in guarantees=")
    return registry.make("method", entry)  # type: ignore[no-any-return]


def method_with_guarantees(method: str | Plain) -> tuple[Unplaced, tuple[ClassGuarantee, ...]]:
    """A search or a mask from a text such as "Lattice(suppression=0.05)" or a mapping with its name and parameters, and the
    guarantees that the text names, as in "KAnonymity(k=10) by Mondrian"."""
    from sfumato.workflow.comparing.grid import method_called

    if isinstance(method, str):
        return method_called(method)
    return method_of(method), ()


def _guarantee(entry: object) -> ClassGuarantee:
    if isinstance(entry, ClassGuarantee):
        return entry
    if isinstance(entry, Guarantee):
        raise ParameterError(
            f"{entry.name} is a promise about noise: ask for it with sf.Session, or publish an artefact. protect takes promises "
            "about classes, such as sf.KAnonymity(5)"
        )
    mapping = named.inline(entry) if isinstance(entry, str) else entry
    if not isinstance(mapping, Mapping):
        raise ParameterError(
            f"{type(entry).__name__} is not a guarantee. Pass guarantees such as sf.KAnonymity(5), or texts such as "
            "'KAnonymity(k=5)'"
        )
    name = mapping.get("name")
    if registry.has("method", name):
        raise ParameterError(f"{name} is a method and no guarantee: pass it in method=")
    return named.guarantee(mapping)


def _names(columns: Columns | None) -> tuple[str, ...]:
    if not isinstance(columns, Iterable | None):
        raise ParameterError("protect: quasi, sensitive, identifier and plain are lists of names of columns")
    listed = (columns,) if isinstance(columns, str) else tuple(() if columns is None else columns)
    if not all(isinstance(name, str) for name in listed):
        raise ParameterError("protect: quasi, sensitive, identifier and plain are lists of names of columns")
    return listed
