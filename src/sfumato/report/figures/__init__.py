"""Figures as SVG text: drawn by matplotlib, a tooltip on each mark, no script, the same bytes for the same
numbers."""
