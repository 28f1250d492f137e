"""Six generated files with the faults of files that strangers bring; nobody in them exists."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Row = list[Any]
DEPARTMENTS = ("Sales", "Research", "Human Resources", "Finance")
WORDS = "Patient klagt über Schmerzen im Knie seit drei Wochen und nimmt täglich zwei Tabletten gegen hohen Blutdruck".split()


def stroke(folder: Path, rows: int = 800) -> Path:
    """Commas; `N/A` among numbers and `Unknown` among texts."""
    draw = random.Random(1)
    body = [
        [
            10_000 + 7 * number,
            draw.choice(["Male", "Female"]),
            draw.randint(1, 82),
            int(draw.random() < 0.1),
            int(draw.random() < 0.06),
            draw.choice(["Yes", "No"]),
            draw.choice(["Private", "Self-employed", "Govt_job", "children"]),
            draw.choice(["Urban", "Rural"]),
            f"{draw.uniform(55, 270):.2f}",
            "N/A" if draw.random() < 0.05 else f"{draw.uniform(14, 60):.1f}",
            draw.choice(["never smoked", "formerly smoked", "smokes", "Unknown"]),
            int(draw.random() < 0.05),
        ]
        for number in range(rows)
    ]
    names = "id gender age hypertension heart_disease ever_married work_type Residence_type avg_glucose_level bmi"
    return _write(folder / "stroke.csv", [*names.split(), "smoking_status", "stroke"], body)


def staff(folder: Path, rows: int = 500) -> Path:
    """A byte-order mark, a column twice, thirty-one columns that may identify somebody."""
    draw = random.Random(2)
    scales = (
        "Education EnvironmentSatisfaction JobInvolvement JobLevel JobSatisfaction PerformanceRating RelationshipSatisfaction"
    )
    years = "YearsAtCompany YearsInCurrentRole YearsSinceLastPromotion YearsWithCurrManager TotalWorkingYears NumCompaniesWorked"
    rates = (
        "DailyRate HourlyRate MonthlyRate PercentSalaryHike DistanceFromHome TrainingTimesLastYear StockOptionLevel Floor Team"
    )
    choices: dict[str, Sequence[str]] = {
        "BusinessTravel": ("Rarely", "Frequently", "Never"),
        "EducationField": ("Medicine", "Law", "Marketing", "Technics"),
        "Gender": ("Female", "Male"),
        "JobRole": ("Manager", "Clerk", "Scientist", "Nurse", "Director"),
        "MaritalStatus": ("Single", "Married", "Divorced"),
        "OverTime": ("Yes", "No"),
        "Site": ("North", "South", "East"),
    }
    names = [
        "EmployeeNumber",
        "Age",
        "Department",
        *choices,
        *scales.split(),
        *years.split(),
        *rates.split(),
        "MonthlyIncome",
        "Department",
    ]
    body: list[Row] = []
    for number in range(rows):
        department = draw.choice(DEPARTMENTS)
        row: Row = [number + 1, draw.randint(18, 60), department]
        row += [draw.choice(list(options)) for options in choices.values()]
        row += [draw.randint(1, 5) for _ in scales.split()]
        row += [draw.randint(0, 20) for _ in years.split()]
        row += [draw.randint(1, 40 if name == "DistanceFromHome" else 1200) for name in rates.split()]
        body.append([*row, draw.randint(1009, 19_999), department])
    return _write(folder / "staff.csv", names, body, encoding="utf-8-sig")


def cases(folder: Path, rows: int = 600) -> Path:
    """A line list of 31 columns, most of whose cells say `NA`; dates day first with points, and a column of remarks."""
    draw = random.Random(3)
    names = ["case_id", "age", "sex", "country", "province", "city", "date_onset", "date_confirmed", "outcome", "notes"]
    names += [f"symptom_{number}" for number in range(1, 15)] + [f"exposure_{number}" for number in range(1, 8)]
    body: list[Row] = []
    for number in range(rows):
        onset = datetime.date(2020, 1, 1) + datetime.timedelta(days=draw.randint(0, 200))
        sparse = [draw.choice(["yes", "no"]) if draw.random() < 0.08 else "NA" for _ in range(21)]
        body.append(
            [
                f"2020-{number:05d}",
                draw.randint(0, 95) if draw.random() < 0.7 else "NA",
                draw.choice(["male", "female", "NA"]),
                draw.choice(["Italy", "Spain", "France"]),
                draw.choice(["North", "South", "NA"]),
                draw.choice(["Milano", "Roma", "Lyon", "Madrid", "NA"]),
                f"{onset:%d.%m.%Y}" if draw.random() < 0.6 else "NA",
                f"{onset + datetime.timedelta(days=draw.randint(1, 9)):%d.%m.%Y}",
                draw.choice(["died", "recovered", "NA"]),
                " ".join(draw.sample(WORDS, 9)) if draw.random() < 0.4 else "NA",
                *sparse,
            ]
        )
    return _write(folder / "cases.csv", names, body)


def bank(folder: Path, rows: int = 1_500) -> Path:
    """Semicolons and quotes around every text; `unknown` in several columns."""
    draw = random.Random(4)
    names = "age job marital education default balance housing loan contact day month duration campaign pdays previous poutcome y"
    jobs = ["management", "technician", "blue-collar", "services", "retired", "student", "unknown"]
    body = [
        [
            draw.randint(18, 90),
            draw.choice(jobs),
            draw.choice(["married", "single", "divorced"]),
            draw.choice(["primary", "secondary", "tertiary", "unknown"]),
            draw.choice(["yes", "no"]),
            int(draw.lognormvariate(6, 1.4)) - 300,
            draw.choice(["yes", "no"]),
            draw.choice(["yes", "no"]),
            draw.choice(["cellular", "telephone", "unknown"]),
            draw.randint(1, 31),
            draw.choice(["jan", "may", "jul", "nov"]),
            draw.randint(5, 3000),
            draw.randint(1, 20),
            draw.choice([-1, -1, -1, draw.randint(1, 400)]),
            draw.randint(0, 8),
            draw.choice(["unknown", "failure", "success"]),
            draw.choice(["yes", "no"]),
        ]
        for _ in range(rows)
    ]
    return _write(folder / "bank.csv", names.split(), body, separator=";", quoted=True)


def hospital(folder: Path, rows: int = 600) -> Path:
    """Windows-1252, semicolons, decimal commas with points between thousands, dates as dd.mm.yyyy, `k.A.`, remarks."""
    draw = random.Random(5)
    names = "Fallnummer Name Geschlecht Geburtsdatum PLZ Aufnahme Größe Gewicht Kosten Diagnose Raucher Bemerkung"
    body: list[Row] = []
    for number in range(rows):
        birth = datetime.date(1930, 1, 1) + datetime.timedelta(days=draw.randint(0, 30_000))
        admitted = datetime.date(2023, 1, 1) + datetime.timedelta(days=draw.randint(0, 360))
        cost = f"{draw.uniform(300, 60_000):,.2f}".translate(str.maketrans(",.", ".,"))
        body.append(
            [
                f"F{number:06d}",
                f"{draw.choice(['Müller', 'Groß', 'Weiß', 'Schäfer'])}, {draw.choice(['Jörg', 'Anna', 'Zoë'])}",
                draw.choice(["m", "w"]),
                f"{birth:%d.%m.%Y}",
                f"{draw.choice([10, 20, 30])}{draw.randint(100, 130)}",
                f"{admitted:%d.%m.%Y}",
                f"{draw.uniform(1.45, 2.05):.2f}".replace(".", ","),
                "k.A." if draw.random() < 0.1 else f"{draw.uniform(45, 130):.1f}".replace(".", ","),
                cost,
                draw.choice(["I10", "E11", "J45", "M17"]),
                draw.choice(["ja", "nein", "unbekannt"]),
                " ".join(draw.sample(WORDS, 10)),
            ]
        )
    return _write(folder / "krankenhaus.csv", names.split(), body, separator=";", encoding="cp1252")


def students(folder: Path, rows: int = 400) -> Path:
    """Semicolons, thirty-odd columns of answers, marks of up to 20."""
    draw = random.Random(6)
    names = "school sex age address famsize Pstatus Medu Fedu Mjob Fjob reason guardian traveltime studytime failures"
    names += " schoolsup famsup paid activities nursery higher internet romantic famrel freetime goout Dalc Walc health"
    names += " absences G1 G2 G3"
    texts = {
        "school": ["GP", "MS"], "sex": ["F", "M"], "address": ["U", "R"], "famsize": ["GT3", "LE3"], "Pstatus": ["A", "T"],
        "Mjob": ["teacher", "health", "services", "other"], "Fjob": ["teacher", "health", "services", "other"],
        "reason": ["home", "course", "reputation"], "guardian": ["mother", "father", "other"],
    }  # fmt: skip
    yes = set("schoolsup famsup paid activities nursery higher internet romantic".split())
    most = {"age": 22, "absences": 40, "G1": 20, "G2": 20, "G3": 20}
    body = [
        [
            draw.choice(texts[name]) if name in texts else draw.choice(["yes", "no"]) if name in yes
            else draw.randint(15 if name == "age" else 0, most.get(name, 4))
            for name in names.split()
        ]
        for _ in range(rows)
    ]  # fmt: skip
    return _write(folder / "students.csv", names.split(), body, separator=";", quoted=True)


FILES: dict[str, Callable[[Path], Path]] = {
    "stroke": stroke,
    "staff": staff,
    "cases": cases,
    "bank": bank,
    "hospital": hospital,
    "students": students,
}


def _write(
    path: Path, names: Sequence[str], rows: Sequence[Row], *, separator: str = ",", encoding: str = "utf-8", quoted: bool = False
) -> Path:
    def cell(value: Any) -> str:
        text = str(value)
        return f'"{text}"' if (quoted and isinstance(value, str)) or separator in text else text

    lines = [separator.join(map(cell, row)) for row in [list(names), *rows]]
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))
    return path
