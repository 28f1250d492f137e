"""The words and rough proportions behind the generated table about people."""

from __future__ import annotations

from typing import Any

FIRST_NAMES = (
    "Ada Alba Amir Anders Anna Ayse Bea Björn Carla Chen Clara Dario Elif Emma Erik Eva Farid Femke "
    "Finn Gita Greta Hana Hugo Ines Ingrid Ivan Jana Jens João Kaan Karin Lars Leila Lena Liv Luca Maja "
    "Marek Maria Mateo Mei Mila Nadia Nils Noa Olga Omar Paula Pavel Priya Rosa Sami Sofia Sven Tarik "
    "Tomas Uma Vera Viktor Yara Zoë"
).split()
FAMILY_NAMES = (
    "Müller Hansen García Rossi Nowak Kaya Silva Dubois Smith Ivanova Andersen Weber Lindqvist Moreau "
    "Costa Kowalski Demir Schneider Johansen Fischer Romano Novák Patel Haddad Nguyen Okafor Berg "
    "Larsen Wagner Lopes Martin Yılmaz Virtanen Jansen Peeters Horvat Popescu O'Brien Kim Sato Rahman "
    "Mendes Keller Vogel Zimmermann Bakker Dijkstra Eriksen Strand Lund"
).split()

SEXES = ("female", "male", "other")

EDUCATION = ("primary", "lower secondary", "upper secondary", "vocational", "bachelor", "master", "doctorate")
EDUCATION_TREE: dict[str, Any] = {
    "school": ["primary", "lower secondary", "upper secondary"],
    "training": ["vocational"],
    "university": ["bachelor", "master", "doctorate"],
}

MARITAL_STATUS = ("never married", "married", "divorced", "separated", "widowed")
MARITAL_STATUS_TREE: dict[str, Any] = {
    "single": ["never married", "divorced", "widowed"],
    "not single": ["married", "separated"],
}

#: Country of citizenship, most frequent first.
COUNTRIES = tuple("NO SE DK PL DE LT SY GB UA SO FI IN IQ TR US FR NL ES IT RO PK VN PH BR CN NG MA JP CA AU".split())
COUNTRY_TREE: dict[str, Any] = {
    "Europe": {
        "Northern Europe": ["NO", "SE", "DK", "FI", "LT", "GB"],
        "Western Europe": ["DE", "FR", "NL"],
        "Southern Europe": ["ES", "IT"],
        "Eastern Europe": ["PL", "UA", "RO"],
    },
    "Asia": {
        "Western Asia": ["SY", "IQ", "TR"],
        "Southern Asia": ["IN", "PK"],
        "Eastern Asia": ["VN", "PH", "CN", "JP"],
    },
    "Africa": ["SO", "NG", "MA"],
    "America and Oceania": ["US", "BR", "CA", "AU"],
}

#: First two digits of the postcodes, most populous first.
AREAS = (1, 50, 70, 40, 3, 90, 15, 46, 80, 60, 30, 5, 23, 37, 84, 77, 9, 55, 65, 98)

# occupation: education it asks for, share, leaning towards women (1 = even), income at the start
_WORK: dict[str, tuple[float, float, float, float]] = {
    "cleaner": (0, 5, 1.5, 26_000),
    "warehouse worker": (0, 5, 0.5, 30_000),
    "driver": (1, 5, 0.3, 33_000),
    "cook": (1, 4, 0.9, 28_000),
    "sales assistant": (2, 9, 1.3, 28_000),
    "office clerk": (2, 10, 1.4, 34_000),
    "construction worker": (1, 6, 0.1, 36_000),
    "electrician": (3, 5, 0.15, 40_000),
    "mechanic": (3, 5, 0.15, 38_000),
    "nurse": (4, 7, 1.75, 41_000),
    "care assistant": (2, 7, 1.7, 29_000),
    "teacher": (5, 7, 1.4, 46_000),
    "engineer": (5, 7, 0.5, 58_000),
    "software developer": (4, 5, 0.5, 60_000),
    "accountant": (4, 4, 1.1, 50_000),
    "lawyer": (5, 2.5, 1.0, 68_000),
    "physician": (5, 2.5, 1.1, 82_000),
    "researcher": (6, 2, 1.0, 54_000),
    "manager": (4, 5, 0.7, 72_000),
    "artist": (4, 2, 1.1, 27_000),
    "student": (2, 1, 1.0, 9_000),
    "retired": (2, 1, 1.0, 24_000),
}
OCCUPATIONS = tuple(_WORK)
OCCUPATION_LEVEL = tuple(entry[0] for entry in _WORK.values())
OCCUPATION_SHARE = tuple(entry[1] for entry in _WORK.values())
OCCUPATION_WOMEN = tuple(entry[2] for entry in _WORK.values())
OCCUPATION_INCOME = tuple(entry[3] for entry in _WORK.values())
OCCUPATION_TREE: dict[str, Any] = {
    "working": {
        "manual": ["cleaner", "warehouse worker", "driver", "construction worker", "electrician", "mechanic"],
        "service": ["cook", "sales assistant", "office clerk", "accountant", "manager"],
        "health and care": ["nurse", "care assistant", "physician"],
        "professional": ["teacher", "engineer", "software developer", "lawyer", "researcher", "artist"],
    },
    "not working": ["student", "retired"],
}

# diagnosis: share, growth with age, leaning towards women (1 = even)
_ILLNESS: dict[str, tuple[float, float, float]] = {
    "none": (30, -0.25, 1.0),
    "allergy": (9, -0.2, 1.05),
    "asthma": (6, -0.1, 1.1),
    "back pain": (12, 0.3, 1.0),
    "migraine": (6, -0.2, 1.5),
    "depression": (7, 0.0, 1.3),
    "anxiety disorder": (5, -0.15, 1.3),
    "diabetes": (4, 1.6, 0.9),
    "hypertension": (6, 2.2, 1.0),
    "heart disease": (1.6, 3.5, 0.75),
    "stroke": (0.5, 4.0, 0.9),
    "cancer": (1.0, 3.2, 1.05),
    "arthritis": (2.0, 2.8, 1.3),
    "hepatitis": (0.8, 0.1, 0.8),
    "HIV": (0.4, 0.0, 0.5),
    "epilepsy": (0.9, 0.0, 0.95),
}
DIAGNOSES = tuple(_ILLNESS)
DIAGNOSIS_SHARE = tuple(entry[0] for entry in _ILLNESS.values())
DIAGNOSIS_WITH_AGE = tuple(entry[1] for entry in _ILLNESS.values())
DIAGNOSIS_WOMEN = tuple(entry[2] for entry in _ILLNESS.values())
DIAGNOSIS_TREE: dict[str, Any] = {
    "no illness": ["none"],
    "respiratory": ["allergy", "asthma"],
    "pain": ["back pain", "migraine", "arthritis"],
    "mental": ["depression", "anxiety disorder"],
    "circulation and metabolism": ["diabetes", "hypertension", "heart disease", "stroke"],
    "infection": ["hepatitis", "HIV"],
    "other illness": ["cancer", "epilepsy"],
}
