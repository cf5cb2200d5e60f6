"""A client generated from the document does every action of the pages against a running site."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from playground.api.documentation import document
from playground.clusters.models import Cluster, Cycle, Pod
from playground.scenarios.services import shares
from tests.api import told
from tests.api.test_pages_as_operations import PAGES
from tests.clusters.builders import make_node, make_pod
from tests.manifests import scheduler_config
from tests.scenarios.documents import small, text_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "kube_playground_client"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.any_database,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]


by_night = pytest.mark.nightly("playground/api/")


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder the whole client was generated in."""
    return generate(tmp_path_factory.mktemp("client"), document())


def only(operations: set[str]) -> dict[str, Any]:
    """The document with some of its operations, and the components that these name."""
    whole: dict[str, Any] = json.loads(json.dumps(document()))
    paths = {
        path: {method: one for method, one in item.items() if one["operationId"] in operations}
        for path, item in whole["paths"].items()
    }
    named, found = set(), components_in(paths)
    while found:
        named |= found
        found = set().union(*(components_in(whole["components"][kind][name]) for kind, name in found)) - named
    components = {
        kind: {name: one for name, one in every.items() if kind == "securitySchemes" or (kind, name) in named}
        for kind, every in whole["components"].items()
    }
    return {**whole, "paths": {path: item for path, item in paths.items() if item}, "components": components}


def components_in(value: Any) -> set[tuple[str, str]]:
    return set(re.findall(r'"#/components/(\w+)/([\w.-]+)"', json.dumps(value)))


def generate(folder: Path, document: dict[str, Any]) -> Path:
    (folder / "openapi.json").write_text(json.dumps(document))
    config = ROOT / "playground" / "api" / "client.yaml"
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(folder / "openapi.json"),
         "--meta", "none", "--output-path", str(folder / PACKAGE), "--config", str(config)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    # Whatever the generator cannot read it warns of, and leaves out.
    assert "WARNING" not in made.stdout + made.stderr and "Unable" not in made.stdout + made.stderr, (
        made.stdout
    )
    return folder


class Caller:
    """Calls operations by their id, and remembers which."""

    def __init__(self, address: str) -> None:
        client = importlib.import_module(f"{PACKAGE}.client")
        self.models = importlib.import_module(f"{PACKAGE}.models")
        self.called: set[str] = set()
        self.client = client.Client(
            base_url=address,
            timeout=httpx.Timeout(120),
            httpx_args={"event_hooks": {"request": [self._noted]}},
        )
        operations = [operation for item in document()["paths"].values() for operation in item.values()]
        self.tags = {operation["operationId"]: operation["tags"][0] for operation in operations}
        self.bodies = {
            operation["operationId"]: content["schema"]["$ref"].rpartition("/")[2]
            for operation in operations
            for content in operation.get("requestBody", {}).get("content", {}).values()
            if "$ref" in content["schema"]
        }

    def _noted(self, request: httpx.Request) -> None:
        operation = told.operation_of(request.method, request.url.path)
        assert operation is not None, request.url
        self.called.add(operation["operationId"])

    def close(self) -> None:
        self.client.get_httpx_client().close()

    def __call__(
        self, operation: str, /, *path: Any, body: dict[str, Any] | None = None, status: int = 0, **how: Any
    ) -> Any:
        if body is not None:
            how["body"] = getattr(self.models, self.bodies[operation]).from_dict(body)
        module = importlib.import_module(f"{PACKAGE}.api.{self.tags[operation]}.{operation}")
        answer = module.sync_detailed(*path, client=self.client, **how)
        good = answer.status_code == status if status else answer.status_code < 300
        assert good, (operation, answer.status_code, answer.content[:600])
        if answer.status_code != 204:
            assert answer.parsed is not None, operation
        if status >= 400:
            assert isinstance(answer.parsed, self.models.Problem)
        return answer.parsed


@pytest.fixture
def do(
    generated: Path, asgi_server: str, wakes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Caller]:
    """The client; work that is done in many pieces is written down like any other."""
    monkeypatch.syspath_prepend(str(generated))
    # The production-sized scenario takes minutes to make.
    monkeypatch.setattr(
        "playground.scenarios.services.gallery.share_lookalike",
        lambda: shares.share(document=text_of(small(seed=8)).encode()).scenario,
    )
    caller = Caller(asgi_server)
    yield caller
    caller.close()


@by_night
def test_the_generated_client_does_every_action_of_the_pages(do: Caller, work: Callable[[], None]) -> None:
    c = scheduled(do, work)
    asked(do, work, c)
    searched(do, work, c)
    written(do, c)
    ended(do, c)
    shared(do, work)
    imported(do, work)
    refused_without_a_login(do)
    wanted = {name for names in PAGES.values() if not isinstance(names, str) for name in names}
    assert wanted - do.called == set()


def scheduled(do: Caller, work: Callable[[], None]) -> str:
    """A cluster that was made, changed and run."""
    made = do("clusters_create", body={"name": "typed", "seed": 1})
    c = made.id
    for manifest in (make_node("n1", cpu="2"), make_node("n2", cpu="2"), make_pod("small", cpu="1")):
        do("clusters_apply", c, body=manifest)
    do("pods_create", c, body=make_pod("large", cpu="99"))
    do("clusters_add_nodes", c, body={"name": "more-{n}", "count": 1})
    run = do("runs_start", c, body={"until": "idle"})
    do("runs_cancel", c, run.id)
    run = do("runs_start", c, body={"until": "idle"})
    work()
    assert do("runs_read", c, run.id).state == "done"
    assert do("cycles_read", c, bound_cycle(c)).node
    for _ in range(2):
        do("clock_write", c, body={"mode": "paused"})
    do("nodes_patch", c, "n2", body={"spec": {"unschedulable": True}})
    do("permits_decide", c, "default", "small", body={"decision": "allow"}, status=409)
    do("actions_do", c, body={"action": "uncordon", "nodes": ["n2"]})
    do("changes_undo", c)
    return str(c)


def bound_cycle(c: str) -> int:
    return Cycle.objects.filter(cluster__public_id=c, outcome="bound").values_list("number", flat=True)[0]


def asked(do: Caller, work: Callable[[], None], c: str) -> None:
    """Questions and plans."""
    cycle = bound_cycle(c)
    edits = do("clusters_fix", c, body={"pod": "default/large"})
    asked = [
        do("pods_why_not", c, "default", "large", node="n1"),
        do("cycles_why_not", c, cycle, node="n2"),
        do("cycles_weights", c, cycle),
        do("clusters_try", c, body=make_pod("tried")),
        do("clusters_try_rule", c, body={"filter": "true"}),
        do("clusters_seeds", c, seeds=2),
    ]
    work()
    # What is shared is of the present.
    plan = do("clusters_plan", c, body={"ask": "drain", "nodes": ["n1"]})
    work()
    edits = do("questions_read", c, edits.id)
    assert isinstance(edits.answer, do.models.FixAnswer), edits
    for question in asked:
        assert do("questions_read", c, question.id).state in ("done", "failed")
    plan = do("questions_read", c, plan.id)
    assert isinstance(plan.answer, do.models.PlanAnswer) and plan.answer.verdict
    do("questions_branch", c, edits.id, body={"rank": 1})
    verdict = do("plan_share", c, plan.id)
    do("verdicts_delete", verdict.id)
    do("questions_cancel", c, do("pods_why_not", c, "default", "large", node="n2").id)
    do("groups_ask", c, "default", "train", status=404)


def searched(do: Caller, work: Callable[[], None], c: str) -> None:
    """What is asked for once and looked at later; shares and branches of what was found."""
    do("clusters_optimum_find", c, body={"timeLimitS": 5})
    assert do("clusters_optimum_cancel", c).state == "cancelled"
    do("clusters_model_check", c)
    assert do("clusters_model_cancel", c).state == "cancelled"
    do("clusters_upgrade_preview", c, body={"kubernetesRelease": "1.34"})
    assert do("clusters_upgrade_cancel", c).state == "cancelled"
    do("clusters_optimum_find", c, body={"timeLimitS": 5})
    do("clusters_model_check", c)
    do("clusters_upgrade_preview", c, body={"kubernetesRelease": "1.34"})
    work()
    assert isinstance(do("clusters_optimum_read", c).result, do.models.OptimumResult)
    assert isinstance(do("clusters_model_read", c).result, do.models.ModelResult)
    assert isinstance(do("clusters_upgrade_read", c).result, do.models.UpgradeResult)
    do("clusters_upgrade_share", c)
    assert do("clusters_upgrade_branch", c).kubernetes_release == "1.34"
    then = do("clusters_branch", c, body={"cycle": 1, "name": "then"})
    assert do("clusters_read", then.id).name == "then"
    made = do("clusters_scenario_share", c, body={"title": "Of a client"})
    assert made.title == "Of a client" and made.created


def written(do: Caller, c: str) -> None:
    """Objects and settings."""
    web = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}}
    do("clusters_apply", c, body=web)
    do("objects_replace", c, "ConfigMap", "default", "web", body={**web, "data": {"a": "b"}})
    do("objects_patch", c, "ConfigMap", "default", "web", body={"metadata": {"labels": {"a": "b"}}})
    do("objects_delete", c, "ConfigMap", "default", "web")
    gold = {"metadata": {"name": "gold"}, "value": 9}
    do("priorityclasses_create", c, body=gold)
    do("priorityclasses_patch", c, "gold", body={"metadata": {"labels": {"a": "b"}}})
    budget = {"metadata": {"name": "keep", "namespace": "default"}, "spec": {"minAvailable": 1}}
    do("poddisruptionbudgets_create", c, body=budget)
    do("poddisruptionbudgets_patch", c, "default", "keep", body={"spec": {"minAvailable": 0}})
    do("rules_write", c, "ssd", body={"filter": "true"})
    do("rules_delete", c, "ssd")
    mock = do("mock_extenders_create", c, body={"rules": []})
    do("mock_extenders_write", c, mock.id, body={"rules": [{"deny": {"nodes": ["n1"]}}]})
    do("mock_extenders_delete", c, mock.id)
    config = scheduler_config(extenders=[{"urlPrefix": "http://127.0.0.1:8888", "filterVerb": "filter"}])
    do("config_convert", c, body=config)
    do("config_write", c, body=config)
    do("extender_hosts_allow", c, "127.0.0.1:8888")
    do("extender_hosts_forbid", c, "127.0.0.1:8888")
    do("config_default", c)
    do("release_write", c, body={"kubernetesRelease": "1.35"})
    do("assumed_pods_write", c, body={"durationToExpireAssumedPodSeconds": 30})
    do("job_duration_write", c, body={"duration": "5m"})


def ended(do: Caller, c: str) -> None:
    """A cluster's own."""
    do("clusters_rename", c, body={"name": "renamed"})
    branch = do("clusters_clone", c, body={})
    do("pods_create", branch.id, body=make_pod("tried"))
    assert do("branches_apply", branch.id).edits == 1
    live = do("clusters_create", body={"name": "live", "live": True})
    do("following_begin", live.id, body={"source": "prod", "program": "client"})
    do("following_pause", live.id, body={"paused": True})
    do("following_stop", live.id)
    do("clusters_reset", c)
    do("clusters_unpark", c)
    do("clusters_delete", c)


def shared(do: Caller, work: Callable[[], None]) -> None:
    """Shares, what is found of them, comparisons, lessons."""
    body = small()
    s = do("scenarios_share", body=body, visibility="unlisted").id
    do("scenarios_verify", s)
    work()
    assert do("scenarios_read", s).proof.state == "done"
    do("scenarios_whole_cycle", s, 1)
    for kind, verb, about in (
        ("optimum", "find", {"timeLimitS": 5}),
        ("model", "check", None),
        ("luck", "run", {"seeds": 2}),
        ("upgrade", "preview", {"kubernetesRelease": "1.36"}),
    ):
        how = {} if about is None else {"body": about}
        do(f"scenarios_{kind}_{verb}", s, **how)
        assert do(f"scenarios_{kind}_cancel", s).state == "cancelled"
        do(f"scenarios_{kind}_{verb}", s, **how)
    compared = do(
        "comparisons_create",
        body={
            "a": {"kind": "scenario", "id": s},
            "b": {"kind": "scenario", "id": s, "cycle": 1},
            "more": [{"kind": "scenario", "id": s, "cycle": cycle} for cycle in (2, 3, 4, 4)],
        },
    )
    work()
    assert do("scenarios_cycle", s, 1).full
    for kind, answer in (
        ("optimum", "OptimumResult"),
        ("model", "ModelResult"),
        ("luck", "EndStates"),
        ("upgrade", "UpgradeResult"),
    ):
        assert isinstance(do(f"scenarios_{kind}_read", s).result, getattr(do.models, answer)), kind
    # Of six sides, the most there may be: once their letters were names of fields, and one was the reader's own.
    found = do("comparisons_read", compared.id)
    assert found.state == "done" and isinstance(found.result, do.models.ComparisonResult)
    assert [side.name for side in found.result.divergence.sides] == list("abcdef")
    assert [side.decision is None for side in found.result.divergence.sides][:2] == [False, True]
    assert all(len(item.sides) == 6 for item in found.result.moved) and found.result.moved
    do("comparisons_delete", compared.id)
    do("scenarios_upgrade_share", s)
    do("scenarios_upgrade_branch", s)
    do("scenarios_branch", s, body={"cycle": 1})
    fork = do("scenarios_fork", s, body={"name": "mine"})
    assert do("steps_next", fork.id).next_step == 1
    lesson = do("gallery_open", "ties-spread")
    assert lesson.nodes
    assert do("gallery_make_large").id != s
    do("scenarios_delete", s)


def imported(do: Caller, work: Callable[[], None]) -> None:
    """A dump, looked at first."""
    body = make_node("n1")
    draft = do("drafts_create", body=body, kubernetes_release="1.35")
    assert do("drafts_commit", draft.id, body={"name": "of a dump"}).action == "import"
    work()
    draft = do("drafts_read", draft.id)
    assert isinstance(draft.preview, do.models.DraftPreview) and draft.preview.facts.nodes == 1
    assert do("clusters_read", draft.cluster).kubernetes_release == "1.35"
    do("drafts_discard", draft.id)


def refused_without_a_login(do: Caller) -> None:
    """Of team mode: typed refusals."""
    do("tokens_create", body={"name": "x"}, status=409)
    do("tokens_delete", 1, status=404)
    do("teams_create", body={"name": "platform"}, status=409)
    do("teams_invite", "platform", body={}, status=404)
    do("teams_set_member", "platform", "grace", body={"role": "editor"}, status=404)
    do("teams_remove_member", "platform", "grace", status=404)
    do("teams_invitations_withdraw", "platform", 1, status=404)
    do("people_invite", body={}, status=404)
    do("people_invitations_withdraw", 1, status=404)
    do("people_set_active", 1, body={"active": False}, status=404)


@by_night
def test_every_operation_is_in_the_client(generated: Path) -> None:
    for item in document()["paths"].values():
        for operation in item.values():
            place = generated / PACKAGE / "api" / operation["tags"][0] / f"{operation['operationId']}.py"
            assert place.is_file(), operation["operationId"]


def test_the_example_of_the_readme_waits_for_its_run_and_prints_the_true_number(
    tmp_path: Path, asgi_server: str, work: Callable[[], None]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    (example,) = [block for block in blocks if PACKAGE in block]
    program = example.replace("http://127.0.0.1:8000", asgi_server)
    assert program != example
    generate(tmp_path, only(set(re.findall(r"\w+", program))))
    command = [sys.executable, "-W", "error", "-c", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as ran:
        while True:
            try:
                out, problem = ran.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                work()
    assert ran.returncode == 0, problem
    made = Cluster.objects.get()
    waiting = Pod.objects.filter(cluster=made, lane=Pod.Lane.UNSCHEDULABLE).count()
    found = re.fullmatch(r"from Python: \d+ pods, run done, (\d+) unschedulable\n", out)
    assert found and int(found[1]) == waiting > 0
