"""What the fills and letters of a board's pods stand for."""

from playground.web.looks import PriorityScale


def test_the_legend_tells_every_fill_that_was_drawn() -> None:
    scale = PriorityScale([])
    assert [(mark.css, mark.title) for mark in scale.legend()] == [
        ("sys", "system"),
        ("std", "no priority class"),
    ]
    drawn = [scale.mark(priority, "").css for priority in (1000, 0, -5)]
    assert drawn == ["crit", "std", "batch"]
    assert [(mark.css, mark.title) for mark in scale.legend()] == [
        ("sys", "system"),
        ("crit", "higher, no class"),
        ("std", "no priority class"),
        ("batch", "lower, no class"),
    ]


def test_a_class_of_the_ordinary_value_stands_for_pods_without_one() -> None:
    scale = PriorityScale([("standard", 1000, True), ("urgent", 2000, False)])
    scale.mark(1000, "")
    assert [mark.title for mark in scale.legend()] == ["system", "urgent", "standard"]
