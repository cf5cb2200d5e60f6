"""Whatever custom resources hold, a cluster that has some is shared, opened and shared again with the same bytes."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from playground.clusters.models import Cluster
from playground.clusters.objects.apply import apply_documents
from playground.engine import scenario_process
from playground.scenarios.services import errands
from playground.scenarios.services.forking import fork, make_text
from playground.scenarios.services.shares import share
from scheduler_core.scenario import load_scenario, run_scenario
from tests.clusters.builders import make_cluster, make_node, make_pod
from tests.clusters.test_kept_objects import objects

pytestmark = pytest.mark.any_database

GROUP: Final = "travel.example"
NUMBERS: Final = count(1)
TEXTS = st.one_of(
    st.sampled_from(
        ["", "null", "1", "1e3", "yes", "~", "2026-01-01", "- a", "a: b", "#", "é\u2028", "\t", "\\n"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
FIELDS = st.dictionaries(st.sampled_from(["size", "mode", "free", "list"]), VALUES, max_size=4)


def definition(kind: str, versions: list[str], namespaced: bool) -> dict[str, Any]:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {**free, "properties": {"made": {"type": "integer", "default": 3}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": free}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": f"{kind.lower()}s", "kind": kind},
            "versions": [
                {"name": name, "served": True, "storage": name == versions[-1],
                 "schema": {"openAPIV3Schema": schema}}
                for name in versions
            ],
        },
    }  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some definitions of one or two versions, and objects of them in any of these, finalizers and owners included."""
    made = []
    for kind in draw(st.lists(st.sampled_from(["Gadget", "Widget"]), min_size=1, max_size=2, unique=True)):
        versions = draw(st.sampled_from([["v1"], ["v1beta1", "v1"], ["v1", "v2"]]))
        namespaced = draw(st.booleans())
        made.append(definition(kind, versions, namespaced))
        for name in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
            meta: dict[str, Any] = {"name": name}
            if namespaced:
                meta["namespace"] = draw(st.sampled_from(["default", "other"]))
            if draw(st.booleans()):
                meta["finalizers"] = [f"{GROUP}/hold"]
            if draw(st.booleans()):
                meta["annotations"] = {"note": draw(TEXTS)}
            manifest = {
                "apiVersion": f"{GROUP}/{draw(st.sampled_from(versions))}",
                "kind": kind,
                "metadata": meta,
            }
            made.append(
                {**manifest, "spec": draw(FIELDS), **draw(st.sampled_from([{}, {"status": {"n": 1}}]))}
            )
    return made


def custom(cluster: Cluster) -> dict[tuple[str, str, str], Any]:
    return {key: said for key, said in objects(cluster).items() if key[0].endswith(GROUP)}


@pytest.mark.django_db
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.reuse, Phase.generate, Phase.shrink],
)
@given(world=worlds())
def test_custom_resources_come_through_a_share_and_out_of_it_again(world: list[dict[str, Any]]) -> None:
    name = f"cluster-{next(NUMBERS)}"
    cluster = make_cluster(make_node("n1"), make_node("n2"), make_pod("p1"), name=name)
    apply_documents(cluster=cluster, objects=world)
    text = make_text(cluster=cluster).text
    with pytest.MonkeyPatch.context() as patch:
        # A process for each of these would take a second.
        patch.setattr(errands, "ask_process", lambda request, limit_s: _ran(request))
        opened = fork(scenario=share(document=text).scenario)
    assert custom(opened) == custom(cluster)
    assert len(custom(cluster)) == sum(item["kind"] in ("Gadget", "Widget") for item in world)
    again = make_text(cluster=opened, title=name).text
    assert kept(again) == kept(text)
    one, other = (run_scenario(replace(load_scenario(each), steps=())) for each in (text, again))
    assert [trace.pod for trace in one.cycles] == ["default/p1"]
    assert one.digest == other.digest


def kept(text: str) -> str:
    """The bytes of what shapes no placement."""
    return text[text.index("\nkept:") :]


def _ran(request: Mapping[str, Any]) -> Any:
    assert request["do"] == "run"
    how = {name: value for name, value in request.items() if name != "do"}
    return msgspec.to_builtins(scenario_process.decided(**how))
