"""The look of a card: one style sheet, light and dark, on screen and on paper. Nothing in it is fetched."""

from __future__ import annotations

_LIGHT = """
  --ink: #1f2933; --muted: #4d5863; --paper: #ffffff; --raised: #f4f6f8; --line: #d3dae1; --accent: #1f5f85;
  --good: #1c6b3c; --good-back: #e3f3e8; --warn: #8a4b00; --warn-back: #fdf0dc;
  --bad: #a3241f; --bad-back: #fbe6e4;
  --figure-ink: #1f2933; --figure-muted: #4d5863; --figure-grid: #d3dae1; --figure-accent: #154a6b;
  --figure-pale: #6b96b0; --figure-second: #b8472f; --figure-paper: #ffffff;
"""

_DARK = """
  --ink: #e8edf2; --muted: #b3bec8; --paper: #14191e; --raised: #1d242b; --line: #3a444e; --accent: #86c1e4;
  --good: #8fd6a8; --good-back: #16301f; --warn: #f2c078; --warn-back: #35260f;
  --bad: #f4a39e; --bad-back: #3a1a18;
  --figure-ink: #e8edf2; --figure-muted: #b3bec8; --figure-grid: #3a444e; --figure-accent: #9bd3f2;
  --figure-pale: #56788f; --figure-second: #f08a70; --figure-paper: #14191e;
"""

_PAGE = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font-size: 1rem; line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 52rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
footer { color: var(--muted); margin-top: 3rem; padding-bottom: 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .1rem 0 .6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 44rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
ul { padding-left: 1.3rem; }
li { margin: .25rem 0; }
code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .88em;
  overflow-wrap: anywhere; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: 1rem; padding: .5rem 1rem; background: var(--paper); color: var(--accent);
  outline: 2px solid; z-index: 1; }
.kind { color: var(--muted); margin: 0; letter-spacing: .04em; }
.owner { border: 2px dashed var(--warn); color: var(--warn); padding: .5rem .9rem; font-weight: 600;
  max-width: none; }
"""

_PARTS = """
.verdict { font-size: 1.2rem; line-height: 1.45; padding: 1rem 1.2rem; border-left: .35rem solid;
  border-radius: .2rem; max-width: none; }
.state { display: inline-block; padding: 0 .5em; border-radius: .9em; font-weight: 600; white-space: nowrap; }
.good { color: var(--good); background: var(--good-back); }
.warn { color: var(--warn); background: var(--warn-back); }
.bad { color: var(--bad); background: var(--bad-back); }
.plain { color: var(--muted); background: var(--raised); }
.verdict.good, .verdict.warn, .verdict.bad { border-color: currentColor; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.2rem, 1fr)); gap: .8rem;
  margin: 1.2rem 0; padding: 0; list-style: none; }
.numbers li { background: var(--raised); border-radius: .5rem; padding: .7rem .9rem; margin: 0; }
.numbers strong { display: block; font-size: 1.45rem; line-height: 1.25; overflow-wrap: anywhere; }
.numbers span { color: var(--muted); font-size: .92rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
.scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .35rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0; overflow-wrap: break-word;
  border-bottom: 1px solid var(--line); }
thead th { color: var(--muted); }
td:last-child, th:last-child { padding-right: 0; }
.notes { color: var(--muted); }
td ul { padding-left: 1.1rem; margin: 0; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
.note { display: block; font-weight: 400; color: var(--muted); font-size: .9rem; }
dl { margin: .8rem 0; }
dl div { display: grid; grid-template-columns: minmax(8rem, 13rem) 1fr; gap: 1rem; padding: .3rem 0;
  border-bottom: 1px solid var(--line); }
dt { font-weight: 600; overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; }
figure svg { display: block; width: 100%; height: auto; max-width: 46rem; overflow: visible; }
figcaption { color: var(--muted); font-size: .95rem; margin-top: .3rem; }
"""

#: A table whose columns do not fit side by side is a list: of each row its name, and below it label and value of each cell.
#: Headings stay for those who listen; words break where lines end, and within only where one is longer than a line.
_STACKED = """
@ table, @ caption, @ tbody, @ tbody th, @ td { display: block; width: 100%; min-width: 0; }
@ thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@ tbody tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); column-gap: 1.5rem;
  padding: .5rem 0; border-bottom: 1px solid var(--line); }
@ tbody th, @ td { padding: .12rem 0; border-bottom: 0; }
@ tbody th { grid-column: 1 / -1; }
@ td:empty { display: none; }
@ td[data-label]::before { content: attr(data-label) ": "; color: var(--muted); font-weight: 600; }
@ .state { white-space: normal; }
"""

#: On a narrow screen a figure keeps the width that its words need, and scrolls inside its region.
_NARROW = """
dl div { grid-template-columns: 1fr; gap: 0; }
.drawing svg { min-width: 34rem; }
.drawing figcaption { position: sticky; left: 0; max-width: 84vw; }
.drawing figcaption::before { content: "Move the figure sideways to see all of it. "; }
"""

_PAPER = """
body { font-size: 10.5pt; }
.skip { display: none; }
header, main, footer { max-width: none; padding: 0; }
h2 { break-after: avoid; }
figure, tr, .verdict { break-inside: avoid; }
.scroll { overflow: visible; }
"""

# Paper is white, whatever the screen was: the dark colours are for screens alone.
STYLE = (
    f":root {{ color-scheme: light dark; {_LIGHT} }}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}\n"
    f"{_PAGE}{_PARTS}"
    f"@media screen and (max-width: 46rem) {{ {_STACKED.replace('@', '.scroll')} }}\n"
    f"@media screen and (max-width: 34rem) {{ {_NARROW} }}\n"
    f"@media print {{ :root {{ color-scheme: light; }} {_PAPER} }}\n"
)
