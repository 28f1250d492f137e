"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.dp.sensitivity.base import Sensitivity as Sensitivity
from sfumato.dp.sensitivity.baskets import units_sold as units_sold
from sfumato.dp.sensitivity.brute_force import global_sensitivity as global_sensitivity
from sfumato.dp.sensitivity.brute_force import local_sensitivity as local_sensitivity
from sfumato.dp.sensitivity.counts import bar_chart as bar_chart
from sfumato.dp.sensitivity.counts import count as count
from sfumato.dp.sensitivity.counts import histogram as histogram
from sfumato.dp.sensitivity.counts import several_counts as several_counts
from sfumato.dp.sensitivity.graphs import degree_at_least as degree_at_least
from sfumato.dp.sensitivity.graphs import edge_count as edge_count
from sfumato.dp.sensitivity.numbers import maximum as maximum
from sfumato.dp.sensitivity.numbers import mean as mean
from sfumato.dp.sensitivity.numbers import median as median
from sfumato.dp.sensitivity.numbers import minimum as minimum
from sfumato.dp.sensitivity.numbers import sum_of_squares as sum_of_squares
from sfumato.dp.sensitivity.numbers import total as total
from sfumato.dp.sensitivity.numbers import truncated_mean as truncated_mean
from sfumato.dp.sensitivity.trees import matching_vertices as matching_vertices

NAMES: dict[str, str]
