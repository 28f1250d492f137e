"""Boxes of a page as a browser lays them out: what is clipped, what overlaps, which bars stand out from the page."""

from __future__ import annotations

from typing import Any

#: Names of figures that run out of their drawing, run into each other, or stand on a mark.
_FIGURES = """
() => {
  const found = [], slack = 1.5;
  for (const svg of document.querySelectorAll('figure svg')) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
    const boxes = texts.map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
    for (const [text, box] of boxes)
      if (box.left < frame.left - slack || box.right > frame.right + slack || box.top < frame.top - slack
          || box.bottom > frame.bottom + slack) found.push(['clipped', text]);
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const [one, a] = boxes[i], [other, b] = boxes[j];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > slack && high > 0.3 * Math.min(a.height, b.height)) found.push(['overlap', one, other]);
    }
    const marks = [...svg.querySelectorAll('use')].filter(u => u.querySelector('title')).map(u => u.getBoundingClientRect());
    for (const [text, box] of boxes) for (const mark of marks) {
      const x = (mark.left + mark.right) / 2, y = (mark.top + mark.bottom) / 2;
      if (x > box.left && x < box.right && y > box.top && y < box.bottom) found.push(['over a mark', text]);
    }
  }
  return found;
}
"""
#: The page wider than the screen; words outside of scrolling regions that are cut, and cells whose words may be broken.
_PAGE = """
() => {
  const found = [], page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) found.push(['the page scrolls sideways', page.scrollWidth]);
  for (const each of document.querySelectorAll('p, li, h1, h2, h3, dt, dd, strong, .state')) {
    const box = each.getBoundingClientRect();
    if (!each.closest('.scroll') && !each.closest('.skip') && (box.right > page.clientWidth + 1 || box.left < -1))
      found.push(['beyond the screen', each.textContent.slice(0, 60)]);
    if (each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline')
      found.push(['cut', each.textContent.slice(0, 60)]);
  }
  for (const cell of document.querySelectorAll('th, td')) {
    if (getComputedStyle(cell).overflowWrap === 'anywhere') found.push(['words may be broken', cell.textContent.slice(0, 60)]);
    if (cell.scrollWidth > cell.clientWidth + 1) found.push(['runs out of its cell', cell.textContent.slice(0, 60)]);
  }
  // on a wide screen numbers to be compared stay under each other, and a table may scroll within its region
  for (const table of innerWidth < 740 ? document.querySelectorAll('.scroll:not(.drawing)') : [])
    if (table.scrollWidth > table.clientWidth) found.push(['a table scrolls sideways', table.getAttribute('aria-label')]);
  for (const cell of document.querySelectorAll('.scroll td')) {  // where rows are lists, no number stands without its name
    const label = getComputedStyle(cell, '::before').content, stacked = getComputedStyle(cell).display === 'block';
    if (stacked && !label.includes(cell.dataset.label)) found.push(['no label', cell.textContent]);
  }
  for (const region of document.querySelectorAll('.scroll'))
    if (region.getBoundingClientRect().right > page.clientWidth + 1) found.push(['a region beyond the screen']);
  return found;
}
"""
#: The least contrast of a bar with the page behind it.
_BARS = """
() => {
  const light = colour => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const bars = [...document.querySelectorAll('g[id*="-bar-"] path, g[id*="-mean-"] path')];
  return bars.map(bar => light(getComputedStyle(bar).fill))
    .map(ink => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));
}
"""


def faults(page: Any) -> list[list[str]]:
    """Everything that is clipped, cut, broken or over something else."""
    return [*page.evaluate(_PAGE), *page.evaluate(_FIGURES)]


def bar_contrasts(page: Any) -> list[float]:
    """The contrast of every bar with the page."""
    return list(page.evaluate(_BARS))
