"""Mechanisms that answer with a statistic of records within declared bounds."""
