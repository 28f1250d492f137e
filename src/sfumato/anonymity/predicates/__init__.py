"""Guarantees as fast checks on class totals: what the searches ask; the plain verifier in `measures.guarantees`
asks again.
"""
