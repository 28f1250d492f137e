"""Accounting: how losses add up, convert and are chosen.

Pure functions of frozen losses. `composition` and `disjoint` add losses up, `conversion`, `zcdp` and `renyi` state one kind in
another, `gaussian` and `advanced` are exact where a formula is, `numeric` where only numbers are; `policies`,
`lee_clifton` and `bayes` help to choose. Everything that needs an exponential or a logarithm is enclosed (`enclosure`)
and rounded to the safe side.
"""
