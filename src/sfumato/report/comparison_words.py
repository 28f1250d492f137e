"""A comparison in words and pictures: lines for a terminal, reasons for a recommendation, the map and its page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import percent
from sfumato.report.markup import shorten
from sfumato.report.wording import counted

if TYPE_CHECKING:
    from sfumato.workflow.comparing.compare import Comparison
    from sfumato.workflow.comparing.measuring import Point

#: Bounds that are this many times as wide as those of many runs are said to be wide.
_WIDE = 1.25
#: A recommendation that leaves more than this share of the original's risk is given with a warning.
_MUCH = 0.5
#: How a command begins that publishes; whoever knows table and schema puts them in.
COMMAND = "sfumato protect TABLE --schema SCHEMA"
#: Letters of a refusal in the table of a terminal; the page and the JSON have all of it.
_LONGEST_REASON = 160
#: Components of a score that a tooltip names.
_MOST_COMPONENTS = 8


def reasons(comparison: Comparison) -> tuple[str, ...]:
    """Why the recommended method, and what to do when there is none."""
    measured, front, chosen = comparison.measured, comparison.front, comparison.recommended
    if not measured:
        return ("No method could be applied to these data; the table says why for each.",)
    sentences = [
        f"Of {counted(len(measured), 'choice')} of method and parameters {len(front)} {'is' if len(front) == 1 else 'are'} on "
        "the front: no other is both safer and more useful."
    ]
    apart = [point for point in measured if point.risk_measure != comparison.compared_by]
    if apart:
        sentences.append(
            f"{len(apart)} of them cannot be compared with the others: no record stands behind their rows, so their risk is "
            f"{apart[0].risk_measure.replace('_', ' ')} and not {comparison.compared_by.replace('_', ' ')}."
        )
    limits = _limits(comparison)
    if chosen is None:
        safest = min(front, key=lambda point: (point.gain, point.loss))
        sentences.append(
            f"None of them keeps within the limits ({limits}). The safest is {safest.label}: {_both(safest)}. "
            "Try stronger parameters, or another method, or raise a limit."
        )
        return tuple(sentences)
    within = f" within the limits ({limits})" if limits else ""
    promise = "which keeps its guarantee on these data" if chosen.guaranteed else "which promises no guarantee"
    sentences.append(
        f"Take {chosen.label}, {promise}: it has the best balance of gain over chance ({percent(chosen.gain)}) and loss "
        f"({percent(chosen.loss)}) on the front{within}. Its risk is {percent(chosen.risk)}, of which chance gives "
        f"{percent(chosen.floor)}; the original has a risk of {percent(comparison.original.risk)}."
    )
    sentences += _uncertainty(comparison, chosen)
    if not chosen.guaranteed:
        sentences += _with_a_guarantee(comparison)
    if comparison.typed is not None:
        options, arguments = comparison.typed
        sentences.append(f"To publish by {chosen.label}, type: {COMMAND} {options}")
        sentences.append(f"or in Python: sf.protect(data, {arguments})")
        sentences.append(
            "That draws a new mask and measures it; the masks of this comparison were never written."
            if chosen.drawn
            else "The tables of this comparison were never written."
        )
    position = front.index(chosen)
    if position:
        safer = front[position - 1]
        sentences.append(f"If that risk is too high, the next safer choice is {safer.label}: {_both(safer)}.")
    if position + 1 < len(front):
        useful = front[position + 1]
        sentences.append(f"If that loss is too high, the next more useful choice is {useful.label}: {_both(useful)}.")
    if chosen.method.get("name") == "Recoded":
        sentences.append(
            "It keeps the guarantee in its name, on these data and against anyone who knows the quasi-identifiers. Its cells "
            "were measured as an analyst reads them: numbers as the middle of what a cell covers, categories as one of those "
            "covered."
        )
    if chosen.left:
        sentences.append(f"It leaves {_left(chosen)}; mask that too (Combined) for a lower risk.")
    if chosen.gain > _MUCH * comparison.original.gain:
        sentences.append("Much of the original's risk remains: try stronger parameters or another method before you publish.")
    sentences.append("A measured risk is not a guarantee: it holds for the attacks that were measured, on these data.")
    return tuple(sentences)


def _uncertainty(comparison: Comparison, chosen: Point) -> list[str]:
    """Where a new draw lies, and which methods cannot be told apart from the chosen one."""
    if chosen.margins is None:
        return ["Each method was drawn once, so that nobody can say how much another draw would differ: use several runs."]
    sentences = []
    within = chosen.measured_within or chosen.margins
    if max(within) > 0:
        another, times = ("A new draw has", "draws")
        if not chosen.drawn:
            another, times = ("The method draws nothing, but measuring its cells does: another measurement has", "measurements")
        sentences.append(
            f"{another} a gain within ±{percent(within[0])} and a loss within ±{percent(within[1])} of "
            f"these means with 95 %, by {chosen.runs} {times}."
        )
        if (wide := chosen.widened) > _WIDE:
            sentences.append(
                f"So few {times} make these bounds {wide:.1f} times as wide as many would: --runs 20 (runs=20) narrows them."
            )
    if comparison.alike:
        names = _listed([point.label for point in comparison.alike])
        sentences.append(
            f"{chosen.label} and {names} cannot be told apart: their balances differ by less than their draws vary (Welch's test "
            f"at 5 % each)."
        )
    return sentences


def _with_a_guarantee(comparison: Comparison) -> list[str]:
    """The best of the methods that keep a guarantee."""
    promising = [point for point in comparison.measured if point.guaranteed and point.risk_measure == comparison.compared_by]
    if not promising:
        return []
    best = min(promising, key=lambda point: point.balance)
    return [f"Of the methods that keep a guarantee {best.label} has the best balance: {_both(best)}."]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def lines(comparison: Comparison) -> list[str]:
    """A table for a terminal, best balance first."""
    front, chosen = comparison.front, comparison.recommended
    rows = [("", "method", "risk", "chance", "gain", "loss", "balance", "note")]
    for point in balanced_order(comparison):
        if point.refused is not None:
            why = shorten(_first_line(point.refused), _LONGEST_REASON)
            rows.append(("x", point.label, "", "", "", "", "", f"refused: {why}"))
            continue
        mark = "*" if point is chosen else "=" if point in comparison.alike else "+" if point in front else " "
        gain, loss = with_margins(point)
        numbers = (percent(point.risk), percent(point.floor), gain, loss, percent(point.balance))
        rows.append((mark, point.label, *numbers, note(comparison, point)))
    widths = [max(len(row[i]) for row in rows) for i in range(7)]
    return [
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        )
        + (f"  {row[7]}" if row[7] else "")
        for row in rows
    ]


def with_margins(point: Point) -> tuple[str, str]:
    """Gain and loss, each with how far a new draw may lie from it."""
    if point.margins is None:
        return percent(point.gain), percent(point.loss)
    gain, loss = (
        f"{percent(mean)} ± {percent(margin)}" if margin else percent(mean)
        for mean, margin in zip((point.gain, point.loss), point.margins, strict=True)
    )
    return gain, loss


def note(comparison: Comparison, point: Point) -> str:
    """What a reader must know about a point."""
    remarks = []
    if point.guaranteed:
        remarks.append("keeps its guarantee")
    if point.left:
        remarks.append(f"leaves {_left(point)}")
    if point.risk_measure and point.risk_measure != comparison.risk_measure:
        remarks.append(f"no record stands behind its rows: risk is {point.risk_measure}")
    return "; ".join(remarks)


def figure(comparison: Comparison) -> str:
    """The map as SVG."""
    from sfumato.report.figures.risk_utility import Mark, RiskUtility, risk_utility

    front, chosen = comparison.front, comparison.recommended
    points = comparison.measured
    marks = [
        Mark(
            family=_family(point),
            label=point.label.replace(", whole=false", ""),
            risk=point.gain,
            loss=point.loss,
            margins=point.margins,
            tooltip=_tooltip(comparison, point),
            best=point in front,
        )
        for point in points
    ]
    return risk_utility(
        RiskUtility(
            marks,
            (comparison.original.gain, comparison.original.loss),
            None if chosen is None else points.index(chosen),
            f"{comparison.risk_measure.replace('_', ' ')}, gain over chance",
            comparison.loss_measure.replace("_", " "),
            comparison.most_risk,
            comparison.most_loss,
        )
    )


def page(comparison: Comparison) -> str:
    """The self-contained HTML page."""
    from sfumato.report.comparison_page import ComparisonContent, ComparisonRow, comparison_page

    front, chosen = comparison.front, comparison.recommended
    rows = []
    for point in balanced_order(comparison):
        if point.refused is not None:
            rows.append(ComparisonRow(point.label, "refused", note=_first_line(point.refused)))
            continue
        state = "recommended" if point is chosen else "front" if point in front else "other"
        if point.risk_measure != comparison.compared_by:
            state = "another risk"
        others = {
            name: value for name, value in point.scores.items() if name not in (comparison.risk_measure, comparison.loss_measure)
        }
        others.pop(point.risk_measure, None)
        gain, loss = with_margins(point)
        shares = point.people_found
        rows.append(
            ComparisonRow(
                point.label,
                state,
                point.risk,
                point.floor,
                gain,
                loss,
                point.balance,
                "" if shares is None else _people(shares, comparison.records),
                others,
                "; ".join(each for each in (note(comparison, point), point.unproven and f"optimum {point.unproven}") if each),
                {**point.parts.get(point.risk_measure, {}), **point.parts.get(comparison.loss_measure, {})},
            )
        )
    return comparison_page(
        ComparisonContent(
            title=f"Risk and utility of {comparison.dataset}",
            records=comparison.records,
            figure=figure(comparison) if comparison.measured else None,
            reasons=comparison.reasons,
            rows=rows,
            roles=comparison.roles,
            guessed=comparison.guessed,
            meanings=((comparison.risk_measure, comparison.risk_meaning), (comparison.loss_measure, comparison.loss_meaning)),
        )
    )


def as_mapping(comparison: Comparison) -> PlainDict:
    """Plain data, ready for JSON."""
    from sfumato.core.certificate import plain

    front, chosen = comparison.front, comparison.recommended
    points = [
        {
            "label": point.label,
            "method": dict(point.method),
            "risk": point.risk,
            "floor": point.floor,
            "gain": None if point.refused is not None else point.gain,
            "loss": point.loss,
            "margins": None if point.margins is None else list(point.margins),
            "draws": [list(draw) for draw in point.draws],
            "guaranteed": point.guaranteed,
            "alike": point in comparison.alike,
            "balance": point.balance,
            "front": point in front,
            "recommended": point is chosen,
            "scores": dict(point.scores),
            "parts": {name: dict(parts) for name, parts in point.parts.items()},
            "spread": list(point.spread),
            "runs": point.runs,
            "left": list(point.left),
            "risk_measure": point.risk_measure,
            "refused": point.refused,
            "unproven": point.unproven,
            "seconds": point.seconds,
        }
        for point in balanced_order(comparison)
    ]
    mapping: dict[str, Any] = plain(
        {
            "dataset": comparison.dataset,
            "records": comparison.records,
            "risk": {"measure": comparison.risk_measure, "meaning": comparison.risk_meaning},
            "loss": {"measure": comparison.loss_measure, "meaning": comparison.loss_meaning},
            "original": {
                "risk": comparison.original.risk,
                "floor": comparison.original.floor,
                "gain": comparison.original.gain,
                "loss": comparison.original.loss,
            },
            "roles": dict(comparison.roles),
            "guessed": list(comparison.guessed),
            "points": points,
            "recommended": None if chosen is None else chosen.label,
            "reasons": list(comparison.reasons),
        }
    )
    return mapping


def balanced_order(comparison: Comparison) -> list[Point]:
    measured = sorted(comparison.measured, key=lambda point: (point.balance, point.label))
    return [*measured, *(point for point in comparison.points if point.refused is not None)]


def _tooltip(comparison: Comparison, point: Point) -> str:
    """Name, risk and loss with what each is made of, further scores, and what a reader must know."""
    made_of = [
        f"{what} of {_components(parts)}"
        for what, measure in (("risk", point.risk_measure), ("loss", comparison.loss_measure))
        if (parts := point.parts.get(measure))
    ]
    main = (point.risk_measure, comparison.risk_measure, comparison.loss_measure)
    extra = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in point.scores.items() if name not in main]
    said = [*made_of, *([", ".join(extra)] if extra else []), *([words] if (words := note(comparison, point)) else [])]
    return "; ".join([f"{point.label}: {_both(point)}", *said])


def _components(parts: Mapping[str, float]) -> str:
    """The components of a score, the first of many."""
    named = [f"{name.replace('_', ' ')} {value:.3g}" for name, value in parts.items()]
    more = [f"{len(named) - _MOST_COMPONENTS} more"] if len(named) > _MOST_COMPONENTS else []
    return ", ".join([*named[:_MOST_COMPONENTS], *more])


def _family(point: Point) -> str:
    """The names of the methods without their parameters; parameters may hold parentheses themselves."""
    plain = point.label
    while plain != (shorter := re.sub(r"\([^()]*\)", "", plain)):
        plain = shorter
    return plain


def _both(point: Point) -> str:
    gain, loss = with_margins(point)
    return f"risk {percent(point.risk)}, by chance {percent(point.floor)}, gain {gain}, loss {loss}"


def _people(share: tuple[float, float], records: int) -> str:
    """How many records a linkage finds, beside chance."""
    linked, blind = (rate * records for rate in share)
    return f"{linked:,.0f} of {records:,} (by chance {blind:,.1f})"


def _limits(comparison: Comparison) -> str:
    limits = []
    if comparison.most_risk is not None:
        limits.append(f"gain at most {percent(comparison.most_risk)}")
    if comparison.most_loss is not None:
        limits.append(f"loss at most {percent(comparison.most_loss)}")
    return ", ".join(limits)


def _left(point: Point) -> str:
    names = ", ".join(f"'{name}'" for name in point.left)
    return f"{names} as {'it is' if len(point.left) == 1 else 'they are'}"


def _first_line(text: str) -> str:
    first, *rest = text.split("\n")
    return first + (f" {rest[0].strip()}" if rest else "") + (" …" if len(rest) > 1 else "")
