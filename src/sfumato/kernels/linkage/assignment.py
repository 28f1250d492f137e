"""Assignment on sparse candidates by shortest augmenting paths, with prices that prove what may be left out.

Every row gets one column; a column takes as many rows as its capacity. Prices v of columns (never positive) are lowered where
columns are sought after; a row pays c − v for a column. In the end every row has a column at its lowest price u, so that any
pair that was no candidate and costs at least u + v cannot improve the total. Jonker, Volgenant, "A shortest augmenting path
algorithm for dense and sparse linear assignment problems", Computing 38, 1987.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Real = NDArray[np.float64]
Int = NDArray[np.int64]


def _assign_plainly(starts: Int, columns: Int, costs: Real, capacity: Int, prices: Real, held: Int) -> tuple[Real, Int]:
    # one path depends on the one before, so there is nothing to do for many rows at once: the same steps, not compiled
    return assign.plain(starts, columns, costs, capacity, prices, held)


@kernel(
    "Tuple((float64[::1], int64[::1]))(int64[::1], int64[::1], float64[::1], int64[::1], float64[::1], int64[::1])",
    twin=_assign_plainly,
)
def assign(starts: Int, columns: Int, costs: Real, capacity: Int, prices: Real, held: Int) -> tuple[Real, Int]:
    """Prices and the column of every row at the least total cost among the candidates.

    Row i may have the columns `columns[starts[i]:starts[i + 1]]` at `costs`. `prices` and `held` (-1: none) are what an
    earlier round with fewer candidates found; a row that a new candidate suits better gives its column back. The column is -1
    where none is left.
    """
    rows = starts.size - 1
    places = capacity.size
    v = prices.copy()
    taken = np.full(rows, -1, dtype=np.int64)
    used = np.zeros(places, dtype=np.int64)
    head = np.full(places, -1, dtype=np.int64)  # the rows of a column are a linked list
    following = np.full(rows, -1, dtype=np.int64)
    leading = np.full(rows, -1, dtype=np.int64)
    pays = np.zeros(rows)  # what a row pays for the column it has, without the price
    free = np.empty(rows, dtype=np.int64)
    waiting = 0
    for row in range(rows):
        best, at = np.inf, -1
        own = np.inf
        for edge in range(starts[row], starts[row + 1]):
            paid = costs[edge] - v[columns[edge]]
            if columns[edge] == held[row]:
                own = min(own, paid)
            if paid < best:
                best, at = paid, edge
        if own <= best and held[row] >= 0:
            column = held[row]
            cost = own + v[column]
        elif at >= 0 and used[columns[at]] < capacity[columns[at]] and prices[columns[at]] == 0.0:
            column = columns[at]
            cost = costs[at]
        else:
            column = -1
            cost = 0.0
        if column >= 0 and used[column] < capacity[column]:
            taken[row], pays[row] = column, cost
            used[column] += 1
            following[row], leading[row] = head[column], -1
            if head[column] >= 0:
                leading[head[column]] = row
            head[column] = row
        else:
            free[waiting] = row
            waiting += 1
    # bidding: a row takes its best column of capacity 1 and lowers the price to the second best; whoever had it is free again
    rounds = 4 * rows if waiting else 0
    left = 0
    kept = np.empty(rows, dtype=np.int64)
    while waiting and rounds:
        rounds -= 1
        waiting -= 1
        row = free[waiting]
        best, second, at = np.inf, np.inf, -1
        for edge in range(starts[row], starts[row + 1]):
            paid = costs[edge] - v[columns[edge]]
            if paid < best:
                best, second, at = paid, best, edge
            elif paid < second:
                second = paid
        column = columns[at] if at >= 0 else -1
        if column < 0 or capacity[column] != 1 or second == np.inf or (used[column] and not second > best):
            kept[left] = row
            left += 1
            continue
        if used[column]:
            other = head[column]
            taken[other] = -1
            free[waiting] = other
            waiting += 1
            v[column] -= second - best
        used[column] = 1
        head[column], following[row], leading[row] = row, -1, -1
        taken[row], pays[row] = column, costs[at]
    for i in range(waiting):
        kept[left] = free[i]
        left += 1
    # shortest augmenting paths for the rest
    reach = np.full(places, np.inf)
    via = np.full(places, -1, dtype=np.int64)
    spent = np.zeros(places)
    heap = np.empty(places + 1, dtype=np.int64)
    spot = np.full(places, -1, dtype=np.int64)
    done = np.zeros(places, dtype=np.uint8)
    touched = np.empty(places, dtype=np.int64)
    finished = np.empty(places, dtype=np.int64)
    for turn in range(left):
        start = kept[turn]
        size, touches, closed = 0, 0, 0
        end = -1
        base = 0.0
        row, column = start, -1
        while True:
            # the edges of a row, or of all rows that hold the column just reached
            lowest = base
            if column >= 0:
                lowest = base - (pays[row] - v[column])
            for edge in range(starts[row], starts[row + 1]):
                to = columns[edge]
                if done[to]:
                    continue
                length = lowest + (costs[edge] - v[to])
                if length < reach[to]:
                    if reach[to] == np.inf:
                        touched[touches] = to
                        touches += 1
                        spot[to] = size
                        heap[size] = to
                        size += 1
                    reach[to] = length
                    via[to] = row
                    spent[to] = costs[edge]
                    place = spot[to]
                    while place > 0:
                        above = (place - 1) // 2
                        if reach[heap[above]] <= reach[to]:
                            break
                        heap[place] = heap[above]
                        spot[heap[place]] = place
                        place = above
                    heap[place] = to
                    spot[to] = place
            if column >= 0 and following[row] >= 0:
                row = following[row]
                continue
            if size == 0:
                break
            column = heap[0]
            size -= 1
            if size:
                last = heap[size]
                place = 0
                while True:
                    below = 2 * place + 1
                    if below >= size:
                        break
                    if below + 1 < size and reach[heap[below + 1]] < reach[heap[below]]:
                        below += 1
                    if reach[heap[below]] >= reach[last]:
                        break
                    heap[place] = heap[below]
                    spot[heap[place]] = place
                    place = below
                heap[place] = last
                spot[last] = place
            base = reach[column]
            done[column] = 1
            finished[closed] = column
            closed += 1
            if used[column] < capacity[column]:
                end = column
                break
            row = head[column]
        if end >= 0:
            for i in range(closed):
                v[finished[i]] += reach[finished[i]] - base
            column = end
            used[end] += 1
            while True:
                row = via[column]
                before = taken[row]
                if before >= 0:  # leave the list of the old column
                    if leading[row] >= 0:
                        following[leading[row]] = following[row]
                    else:
                        head[before] = following[row]
                    if following[row] >= 0:
                        leading[following[row]] = leading[row]
                taken[row], pays[row] = column, spent[column]
                following[row], leading[row] = head[column], -1
                if head[column] >= 0:
                    leading[head[column]] = row
                head[column] = row
                if before < 0:
                    break
                column = before
        for i in range(touches):
            reach[touched[i]] = np.inf
            done[touched[i]] = 0
    return v, taken
