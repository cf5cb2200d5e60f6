"""Measures the boxes of a page: what is wider than its place, cut with no way to see it, or over its neighbour."""

from pathlib import Path

SCROLL_ON_A_PHONE = ("Heat map", "Scores")
"""What is read across: a map, and points of several sides. All else is read line by line on a phone."""

OUT_OF_BOUNDS = Path(__file__).with_name("boxes.js").read_text()


def out_of_bounds(page) -> list[str]:
    """What is wrong with the boxes of the page as it is now, in words."""
    return page.evaluate(OUT_OF_BOUNDS)


def sideways(page) -> list[str]:
    """Tables and other parts that are wider than their place and scroll in it, by what they are called."""
    return page.locator("main .scroll").evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1)"
        ".map(e => e.ariaLabel || `what has no aria-label (${e.outerHTML.slice(0, 80)})`)"
    )


def read_across(page) -> list[str]:
    """What scrolls sideways though it is read line by line."""
    return [name for name in sideways(page) if not name.startswith(SCROLL_ON_A_PHONE)]
