"""Commands about itemsets and rules: mine them from baskets, hide some and publish the baskets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli.help import PUBLISH, add, group
from sfumato.cli.keys import propose
from sfumato.cli.output import Json, Quiet, StrictlyMade, answer, conclude, shown_progress, table_lines
from sfumato.cli.query import Overwrite, Seed, Sign, check_output
from sfumato.cli.usage import Misuse
from sfumato.core.texts import percent

if TYPE_CHECKING:
    from sfumato.data.transactions import Transactions

_MOST_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the commands."""
    rules = group(
        "Itemsets and rules: mine them from baskets, hide some of them and publish the baskets.",
        "sfumato rules mine baskets.dat --support 0.01 --confidence 0.5",
        "sfumato rules hide baskets.dat --list secret.txt --support 0.01",
    )
    add(
        rules,
        mine,
        "sfumato rules mine baskets.dat --support 0.01",
        "sfumato rules mine sales.csv --basket order --item product --support 50 --confidence 0.6",
        "sfumato rules mine baskets.dat --support 0.01 --kind maximal --json",
    )
    add(
        rules,
        hide,
        "sfumato rules hide baskets.dat --list secret.txt --support 0.01 --output out",
        "sfumato rules hide baskets.dat --list secret.txt --support 0.01 --confidence 0.6 --method ConfidenceReduction",
        "sfumato rules hide baskets.dat --list secret.txt --support 0.01 --method 'BorderBased(rounds=64)'",
    )
    app.add_typer(rules, name="rules", rich_help_panel=PUBLISH)


Source = Annotated[str, typer.Argument(help="Lines of items (.dat, .txt), or a table (.csv, .parquet) with --item.")]
Basket = Annotated[str | None, typer.Option("--basket", help="The column of a table that names the basket of a record.")]
Item = Annotated[str | None, typer.Option("--item", help="The column of a table with the item, or with a list of items.")]
Separator = Annotated[str | None, typer.Option("--separator", help="What stands between the items of a line, if not blanks.")]
Support = Annotated[
    str, typer.Option("--support", "-s", help="From which support on an itemset is frequent: 0.01 of the baskets, or 50 baskets.")
]
Confidence = Annotated[
    float | None, typer.Option("--confidence", "-c", min=0, max=1, help="From which confidence on a rule is strong.")
]


def mine(
    source: Source,
    support: Support,
    confidence: Confidence = None,
    kind: Annotated[
        Literal["frequent", "closed", "maximal"], typer.Option("--kind", help="Frequent, closed or maximal itemsets.")
    ] = "frequent",
    longest: Annotated[int | None, typer.Option("--longest", min=1, help="The items of an itemset, at the most.")] = None,
    basket: Basket = None,
    item: Item = None,
    separator: Separator = None,
    most: Annotated[int, typer.Option("--most", min=1, help="How many are printed in words; JSON has all.")] = _MOST_SHOWN,
    json: Json = False,
) -> None:
    """Mine frequent itemsets, and with --confidence rules; for the owner of the baskets."""
    from sfumato.report.wording import counted
    from sfumato.rules.mining import mine as run

    if confidence is not None and kind != "frequent":
        raise Misuse(f"rules take the frequent itemsets; leave --kind {kind} or --confidence out")
    baskets = _read(source, basket, item, separator)
    mined = run(baskets, _support(support), kind=kind, longest=longest)
    facts: dict[str, Any] = {"baskets": len(baskets), "minimum": mined.minimum}
    lines = [f"baskets   {len(baskets):,}, of {counted(len(baskets.items), 'item')}; frequent in {mined.minimum:,} or more"]
    if confidence is None:
        ordered = sorted(mined, key=lambda each: (-each[1], each[0]))
        facts["itemsets"] = [{"items": list(items), "baskets": count} for items, count in ordered]
        lines += [f"found     {counted(len(ordered), f'{kind} itemset')}", ""]
        rows = [(", ".join(items), f"{count:,}", percent(count / len(baskets))) for items, count in ordered[:most]]
        lines += table_lines(("itemset", "baskets", "share"), rows)
        left = len(ordered) - most
    else:
        strong = mined.rules(confidence)
        facts["rules"] = [
            {
                "if": list(rule.antecedent),
                "then": list(rule.consequent),
                "baskets": rule.support,
                "confidence": rule.confidence,
                "lift": rule.lift,
            }
            for rule in strong
        ]
        lines += [f"found     {counted(len(strong), 'rule')} of a confidence of {confidence:g} or more", ""]
        shown = [
            (f"{', '.join(rule.antecedent)} -> {', '.join(rule.consequent)}", f"{rule.support:,}", f"{rule.confidence:.3f}")
            + (f"{rule.lift:.2f}",)
            for rule in strong[:most]
        ]
        lines += table_lines(("rule", "baskets", "confidence", "lift"), shown)
        left = len(strong) - most
    lines += [f"… and {left:,} more; print them with --most or --json"] if left > 0 else []
    answer(facts, lines, json)


def hide(
    source: Source,
    support: Support,
    listed: Annotated[str, typer.Option("--list", "-l", help="The list: an itemset in each line (a, b), or a rule (a, b -> c).")],
    confidence: Confidence = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="GreedyHiding, SupportReduction, ConfidenceReduction, BorderBased or ExactHiding, with parameters as in "
            "'BorderBased(rounds=64)'.",
        ),
    ] = None,
    basket: Basket = None,
    item: Item = None,
    separator: Separator = None,
    dataset: Annotated[str, typer.Option("--dataset", help="The name of the data set in the ledger.")] = "baskets",
    ledger: Annotated[str | None, typer.Option("--ledger", help="The ledger that the release is entered in.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder of the release.")] = "out",
    sign: Sign = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    strict: StrictlyMade = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hide itemsets and rules of a list, measure what that costs, and publish the baskets."""
    import dataclasses

    from sfumato.core import registry
    from sfumato.data.transactions_lists import ItemsetList
    from sfumato.rules.hiding.hide import hide as run
    from sfumato.workflow import named
    from sfumato.workflow.contents.baskets import Baskets
    from sfumato.workflow.publishing.publish import publish

    chosen = None if method is None else registry.make("hiding", named.inline(method))
    check_output(output, "csv", sign, overwrite)
    baskets = _read(source, basket, item, separator)
    hidden = ItemsetList.read(listed).promise(_support(support), confidence)
    with shown_progress(json, quiet) as progress:
        outcome = run(baskets, hidden, method=chosen, seed=seed, progress=progress)
        submission = Baskets.submitted(outcome, dataset=dataset, ledger=None, ledger_entry=None)
        assert submission is not None  # noqa: S101  (for the type checker: the outcome claims what is hidden)
        release = publish(dataclasses.replace(submission, strict=strict), ledger, progress=progress)
        release.save(output, overwrite=overwrite, sign=sign)
    _print_release(release, hidden, outcome.details["side_effects"].to_mapping(), output, sign, json, strict)


def _print_release(
    release: Any, hidden: object, effects: dict[str, float], output: str, sign: str | None, json: bool, strict: bool
) -> None:
    from sfumato.attacks.outputs.guess_hidden import GuessHidden
    from sfumato.workflow.verdicts import release_verdict

    certificate, attack = release.certificate, GuessHidden()
    guess = attack.run(release.view(), attack.knowledge_from({"itemsets": hidden}))
    facts = {
        "dataset": certificate.dataset,
        "method": dict(certificate.method),
        "claims": certificate.to_mapping()["claims"],
        "side_effects": effects,
        "guessed": {"success": guess.success, "baseline": guess.baseline, "targets": guess.targets},
        "ledger": certificate.ledger,
        "private": certificate.private,
        "notices": list(certificate.notices),
        "folder": output,
    }
    lost = f"{effects['lost_itemsets']:,} of {effects['itemsets']:,} other frequent itemsets ({percent(effects['lost_share'])})"
    if effects["rules"]:
        lost += f", {effects['lost_rules']:,} of {effects['rules']:,} other strong rules ({percent(effects['lost_rules_share'])})"
    lines = [
        f"made      {len(release.data):,} baskets about '{certificate.dataset}' with {certificate.method['name']}",
        *(f"promised  {claim.promised}" for claim in certificate.claims),
        f"hidden    {effects['listed']:,} of {effects['listed']:,} itemsets and rules on the list",
        f"lost      {lost}",
        f"new       {effects['ghost_itemsets']:,} itemsets and {effects['ghost_rules']:,} rules that were not there before",
        f"changed   {effects['items_removed']:,} items removed, {effects['items_added']:,} added, in "
        f"{effects['baskets_changed']:,} baskets",
        f"guessed   {percent(guess.success)} of the list by somebody who knows threshold and method, blind guessing "
        f"{percent(guess.baseline)}",
    ]
    verdict = release_verdict(release)
    lines += [f"notice    {notice}" for notice in certificate.notices if notice not in verdict.warnings]
    lines += [f"saved     {output}/public to give away, {output}/owner to keep (itemsets.json is the list with its key)"]
    propose(facts, lines, sign)
    conclude(facts, lines, verdict, json, strict=strict)


def _read(source: str, basket: str | None, item: str | None, separator: str | None) -> Transactions:
    from sfumato.data.transactions import Transactions as Baskets

    return Baskets.read(source, basket=basket, item=item, separator=separator)


def _support(text: str) -> float:
    """A number of baskets, or a share of them; what is neither is refused by the range of the parameter."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise Misuse("--support is a share of the baskets below 1 (0.01), or a number of baskets (50)") from None
