"""Using what a transparent release says about its method: undoing the known effect of noise on a variance.

Noise proportional to the data, x' = x + e with Var(e) = k · Var(x), inflates the variance by 1 + k; who
knows k divides it out. Transparency: Torra, "Data privacy: foundations, new developments and the big
data challenge", Springer 2017.
"""

from __future__ import annotations

from sfumato.core.params import require


def recover_variance(published_variance: float, k: float) -> float:
    """The variance before noise of relative variance `k` was added.

    >>> recover_variance(3.0, 0.5)
    2.0
    """
    require(published_variance >= 0, "a variance is not negative")
    require(k >= 0, "the noise parameter k is not negative")
    return published_variance / (1.0 + k)


def recover_correlation(published_correlation: float, k_first: float, k_second: float) -> float:
    """The correlation before independent noise of these relative variances was added to both variables."""
    require(-1 <= published_correlation <= 1, "a correlation lies between -1 and 1")
    require(k_first >= 0 and k_second >= 0, "the noise parameters are not negative")
    recovered = published_correlation * float(((1.0 + k_first) * (1.0 + k_second)) ** 0.5)
    return max(-1.0, min(1.0, recovered))
