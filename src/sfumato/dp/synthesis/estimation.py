"""From noisy marginals to a model: the distribution of largest entropy that agrees with them as far as the noise allows.

Maximising entropy minus the squared misfit in units of noise has a smooth dual, the likelihood of a log-linear model with
a quadratic penalty on its potentials; it is solved by the limited-memory quasi-Newton method.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.synthesis.graphical_model import Beliefs, GraphicalModel, Table
from sfumato.dp.synthesis.junction_tree import Columns


@dataclass(frozen=True, eq=False)
class Measurement:
    columns: Columns
    counts: Table
    variance: float


@dataclass(frozen=True, eq=False)
class Fitted:
    model: GraphicalModel
    potentials: Mapping[Columns, Table]
    beliefs: Beliefs
    total: float
    passes: int


def fit(measured, sizes, total, start, shrink=1.0, passes=60, weights=None, tol=1e-4):
    sets = list(measured)
    model = GraphicalModel(sizes, sets)
    shapes = [measured[s].counts.shape for s in sets]
    y = np.concatenate([measured[s].counts.ravel() for s in sets]) / total
    pen = np.concatenate([(shrink * measured[s].variance / total * (weights[s] if weights else np.ones(measured[s].counts.shape))).ravel() for s in sets])
    x = np.concatenate([(start[s] if s in start else np.zeros(measured[s].counts.shape)).ravel() for s in sets])

    def split(v):
        out, at = {}, 0
        for s, sh in zip(sets, shapes):
            n = int(np.prod(sh)); out[s] = v[at:at+n].reshape(sh); at += n
        return out
    last = {}

    def fg(v):
        b = model.beliefs(split(v))
        m = model.marginals(b)
        mu = np.concatenate([m[s].ravel() for s in sets])
        last['b'] = b
        last['n'] = last.get('n', 0) + 1
        return b.log_normaliser - v @ y + 0.5 * v @ (pen * v), mu - y + pen * v
    x, b = lbfgs(fg, x, 1.0 / np.maximum(pen + 0, 1e-12) if False else None, passes, tol, last)
    return Fitted(model, split(x), b, total, last['n'])


def lbfgs(fg, x, h0, passes, tol, last, memory=8):
    f, g = fg(x); b = last['b']
    S, Y, R = [], [], []
    for it in range(passes):
        q = g.copy(); al = []
        for s, yy, r in zip(reversed(S), reversed(Y), reversed(R)):
            a = r * (s @ q); al.append(a); q -= a * yy
        if S:
            q *= (S[-1] @ Y[-1]) / (Y[-1] @ Y[-1])
        for (s, yy, r), a in zip(zip(S, Y, R), reversed(al)):
            q += s * (a - r * (yy @ q))
        d = -q
        slope = d @ g
        if slope >= 0:
            d = -g; slope = -(g @ g); S, Y, R = [], [], []
        t = 1.0
        while True:
            xn = x + t * d
            fn, gn = fg(xn)
            if fn <= f + 1e-4 * t * slope or t < 1e-6:
                break
            t *= 0.5 if not S else 0.3
        s = xn - x; yy = gn - g
        sy = s @ yy
        x, g, b = xn, gn, last['b']
        done = f - fn < 1e-7 and it > 3
        f = fn
        if sy > 1e-14:
            S.append(s); Y.append(yy); R.append(1 / sy)
            if len(S) > memory: S.pop(0); Y.pop(0); R.pop(0)
        if np.abs(g).sum() < tol or done:
            break
    return x, b
