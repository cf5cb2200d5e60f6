"""Situations of the public record and the fix that each names, and headlines that must never come.

`fixes/situations.yaml` says what each is and where it is from; a new one is a dump beside it and a line in the table.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler_core.cli.manifests import scenario_of_dump
from scheduler_core.objects.documents import load_documents
from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.schema.tables import table_of
from scheduler_core.whatif.fix import fix
from tests.changes import one_in

FOLDER: Final = Path(__file__).parent / "fixes"
SITUATIONS: Final = {item["file"]: item for item in table_of((FOLDER / "situations.yaml").read_text())}
NEVER: Final = table_of((FOLDER / "never.yaml").read_text())
LATER: Final[frozenset[str]] = frozenset()
"""Situations whose fix is among the first three, and not the first."""
MOST_LATER: Final = 5

Fix = Mapping[str, Any]


def answer_of(file: str) -> dict[str, Any]:
    """The answer about the situation's pod that waits, the first by name."""
    documents = [loaded.value for loaded in load_documents((FOLDER / file).read_bytes())]
    run = run_scenario(load_scenario(scenario_of_dump(documents)), full_traces=False)
    pods = [stored.typed for stored in run.simulation.world.all("Pod")]
    waiting = sorted(pod.key for pod in pods if not pod.node_name)
    # One that names its node itself waits where its claim does.
    waiting = waiting or sorted(pod.key for pod in pods)
    return fix(run.simulation, {"pod": waiting[0]}).document()


def words_of(found: Fix) -> str:
    """What a fix says it changes."""
    return "\n".join([found["title"], found["note"], *found["removed"], *found["added"], found["patch"]])


def is_wanted(found: Fix, wanted: list[dict[str, Any]]) -> bool:
    return any(
        re.fullmatch(one["what"], found["what"])
        and all(re.search(says, words_of(found)) for says in one["says"])
        for one in wanted
    )


def fails(never: Mapping[str, Any], best: Fix, answer: Fix) -> bool:
    """Whether a headline is one that must never come."""
    if "rule" in never:
        return RULES[never["rule"]](best, answer)
    return bool(
        re.fullmatch(never["what"], best["what"]) and re.search(never.get("says", ""), words_of(best))
    )


@pytest.mark.parametrize("file", one_in(3, SITUATIONS, "scheduler_core/whatif/", "tests/cases/fixes/"))
def test_the_named_fix_comes_first_and_no_headline_that_must_never_come(file: str) -> None:
    found, wanted = answer_of(file), SITUATIONS[file]["fix"]
    titles = [f"{one['what']}: {one['title']}" for one in found["fixes"][:4]]
    first = [one for one in found["fixes"] if one["headline"]][:1]
    if file not in LATER:
        assert first and is_wanted(first[0], wanted), titles
    assert any(is_wanted(one, wanted) for one in found["fixes"][:3]), titles
    if best := found["best"]:
        asked = [one for one in NEVER if file not in one.get("unless", ())]
        assert [one["headline"] for one in asked if fails(one, best, found)] == [], best["title"]


def test_few_come_later_and_fifteen_headlines_never() -> None:
    assert len(SITUATIONS) >= 40 and len(LATER) <= MOST_LATER and set(LATER) <= set(SITUATIONS)
    assert len(NEVER) == 15


# ---- headlines that must never come


def lowered_by_more_than_a_fifth(found: Fix, answer: Fix) -> bool:
    return found["what"] == "lower-request" and found["size"] > 0.2


def lowered_below_use(found: Fix, answer: Fix) -> bool:
    return found["what"] == "lower-request" and "below what it used" in words_of(found)


def harms_others(found: Fix, answer: Fix) -> bool:
    return found["kind"] == "harms" or (found["lost"] > 0 and found["what"] != "raise-priority")


def unnamed_victims(found: Fix, answer: Fix) -> bool:
    return found["restarts"] + found["lost"] != len(found["displaced"])


def edits_what_a_controller_owns(found: Fix, answer: Fix) -> bool:
    of_daemon = "metadata.name" in str(found["change"]) and found["what"].startswith("drop-")
    of_pod = "kubectl patch pod " in found["patch"] and found["what"] != "take-back-resize"
    return of_daemon or (bool(answer["workload"]) and of_pod)


def buys_while_idle_nodes_fit(found: Fix, answer: Fix) -> bool:
    return found["what"] == "add-node" and any(
        one["reason"] == "fits" and one["idle"] for one in answer["groups"]
    )


def differ_by_host_alone(found: Fix, answer: Fix) -> bool:
    """Of all that is listed."""
    names = sorted({name for one in answer["groups"] for name in one["names"]}, key=len, reverse=True)
    bare = []
    for one in answer["fixes"]:
        title = one["title"]
        for name in names:
            title = title.replace(name, "NODE")
        bare.append((one["what"], title))
    return any("NODE" in title and bare.count((what, title)) > 3 for what, title in bare)


RULES: Final[Mapping[str, Callable[[Fix, Fix], bool]]] = {
    rule.__name__: rule
    for rule in (
        lowered_by_more_than_a_fifth,
        lowered_below_use,
        harms_others,
        unnamed_victims,
        edits_what_a_controller_owns,
        buys_while_idle_nodes_fit,
        differ_by_host_alone,
    )
}
