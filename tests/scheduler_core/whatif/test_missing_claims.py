"""A pod that names a claim which is not there is offered one, and the offer, made, places it."""

from typing import Any

import pytest

from scheduler_core.scenario import load_scenario, run_scenario
from scheduler_core.whatif.fix import fix
from tests.scheduler_core.scenario.builders import document, make_node, make_pod
from tests.tables import table


def needing(*claims: str) -> dict[str, Any]:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return make_pod("p", volumes=volumes)


@pytest.mark.parametrize(
    ("objects", "title"),
    table(__file__, "the_claim_that_is_offered_places_the_pod"),
    ids=["no class", "waits for a consumer", "binds at once", "the default class", "without a provisioner"],
)
def test_the_claim_that_is_offered_places_the_pod(objects: list[dict[str, Any]], title: str) -> None:
    written = document(make_node("n"), *objects, needing("data"))
    simulation = run_scenario(load_scenario(written)).simulation
    found = fix(simulation, {"pod": "default/p"}).document()
    [edit] = found["fixes"]
    assert (edit["what"], edit["title"], edit["lands"]) == ("create-claim", title, {"default/p": "n"})
    made = {**written, "steps": [{"run": "idle"}, {"apply": edit["change"]["write"]}, {"run": "idle"}]}
    assert run_scenario(load_scenario(made)).placement() == {"default/p": "n"}
    # The copy is as it was: asked again it says the same.
    assert fix(simulation, {"pod": "default/p"}).document() == found
    default = [one["metadata"]["name"] for one in objects if "annotations" in one["metadata"]]
    if default:
        assert edit["change"]["write"][0]["spec"]["storageClassName"] == default[0]


def test_all_missing_claims_are_one_edit_and_a_pod_that_lacks_none_is_offered_none() -> None:
    simulation = run_scenario(load_scenario(document(make_node("n"), needing("data", "logs")))).simulation
    [edit] = fix(simulation, {"pod": "default/p"}).document()["fixes"]
    assert edit["title"] == "Create PersistentVolumeClaims default/data and default/logs, with a volume"
    large = run_scenario(load_scenario(document(make_node("n"), make_pod("p", "64")))).simulation
    found = fix(large, {"pod": "default/p"}).document()
    assert "create-claim" not in {one["what"] for one in found["fixes"]}


def test_a_claim_that_would_not_help_is_not_offered() -> None:
    pod = needing("data")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    simulation = run_scenario(load_scenario(document(make_node("n"), pod))).simulation
    found = fix(simulation, {"pod": "default/p"}).document()
    assert "create-claim" not in {one["what"] for one in found["fixes"]}
