"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.measures.guarantees.classes import Classes as Classes
from sfumato.measures.guarantees.examined import ExaminedTable as ExaminedTable
from sfumato.measures.guarantees.examined import Measurement as Measurement
from sfumato.measures.guarantees.grouped import GroupedTable as GroupedTable
from sfumato.measures.guarantees.grouped import UnitsOfClasses as UnitsOfClasses
from sfumato.measures.guarantees.reference import ReferenceDistribution as ReferenceDistribution
from sfumato.measures.guarantees.overview import TableMeasures as TableMeasures
from sfumato.measures.guarantees.measure import measure as measure
from sfumato.measures.guarantees.overview import measure_all as measure_all
from sfumato.measures.guarantees.measure import measure_each as measure_each
from sfumato.measures.guarantees.measure import measure_grouped as measure_grouped

NAMES: dict[str, str]
