"""Scheduler configurations as people have them: each door refuses with the way, converts, and opens ConfigMaps."""

import html
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from playground.clusters.drive.config import set_config
from playground.clusters.errors import InvalidManifest
from playground.clusters.models import Cycle
from scheduler_core.cli.main import main
from scheduler_core.scenario import ScenarioError, load_scenario
from tests.clusters.builders import make_cluster, make_node, make_pod, run
from tests.engine.extender_server import serving
from tests.manifests import make_object
from tests.tables import table

pytestmark = pytest.mark.django_db(transaction=True)

DATA = Path(__file__).parent / "data"
SCENARIO = {"apiVersion": "scheduling.playground/v1", "kind": "Scenario", "name": "s"}


def text_of(name: str) -> str:
    return (DATA / name).read_text()


class Doors:
    """One configuration's text through page, REST, scenario and command line."""

    def __init__(self, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.client, self.capsys = client, capsys
        self.cluster = make_cluster(make_node("n1"))
        self.page = f"/c/{self.cluster.public_id}/config/"
        self.rest = f"/api/v1/clusters/{self.cluster.public_id}/config"
        self.dump = tmp_path / "dump.yaml"
        self.dump.write_text(yaml.safe_dump(make_node("n1")))
        self.file = tmp_path / "config.yaml"

    def simulate(self, text: str, *options: str) -> tuple[int, str]:
        self.file.write_text(text)
        status = main(["simulate", str(self.dump), "--config", str(self.file), *options])
        return status, self.capsys.readouterr().err

    def put(self, text: str) -> Any:
        return self.client.put(self.rest, text, content_type="application/yaml")

    def convert(self, text: str) -> dict[str, Any]:
        answer = self.client.post(f"{self.rest}/convert", text, content_type="application/yaml")
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found

    def refused_everywhere(self, text: str, *words: str) -> None:
        """The same words at every door, and nothing is kept."""
        answer = self.put(text)
        assert answer.status_code == 400
        causes = json.dumps(answer.json(), ensure_ascii=False)
        shown = self.client.post(self.page, {"text": text})
        assert shown.status_code == 400
        status, said = self.simulate(text)
        assert status == 2
        with pytest.raises(ScenarioError) as refused:
            load_scenario(SCENARIO | {"scheduler": yaml.safe_load(text)})
        in_scenario = str([problem.reason for problem in refused.value.problems])
        for word in words:
            assert word in causes, word
            assert word in html.unescape(shown.content.decode()), word
            assert word in said, word
            assert word in in_scenario, word
        self.cluster.refresh_from_db()
        assert self.cluster.config is None


@pytest.fixture
def doors(client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doors:
    return Doors(client, tmp_path, capsys)


def test_config_v1beta2(doors: Doors) -> None:
    text = text_of("config-v1beta2.yaml")
    doors.refused_everywhere(text, "was removed in Kubernetes 1.28", "had weight 1 by default")
    assert f"POST {doors.rest}/convert/ converts it to v1" in doors.put(text).json()["detail"]
    found = doors.convert(text)
    assert found["problem"] is None
    assert found["config"]["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert all(change["kept"] for change in found["changes"])
    assert doors.put(yaml.safe_dump(found["config"])).status_code == 200
    shown = doors.client.get(f"{doors.page}?profile=my-scheduler").content.decode()
    assert "VolumeBinding off, default on at PreScore" in shown
    status, said = doors.simulate(text, "--convert-config")
    assert status == 0
    assert "note: " in said


def test_the_page_converts_and_keeps_nothing_until_it_is_saved(doors: Doors) -> None:
    text = text_of("config-v1beta2.yaml")
    refused = doors.client.post(doors.page, {"text": text}).content.decode()
    assert 'value="convert">Convert it to v1' in refused
    shown = doors.client.post(doors.page, {"text": text, "action": "convert"})
    assert shown.status_code == 200
    page = shown.content.decode()
    assert "Converted to v1, not saved yet." in page
    assert "apiVersion: kubescheduler.config.k8s.io/v1\n" in page
    doors.cluster.refresh_from_db()
    assert doors.cluster.config is None
    current = doors.client.post(doors.page, {"text": "kind: Deployment"}).content.decode()
    assert "Convert it" not in current


def test_config_old_fields(doors: Doors) -> None:
    text = text_of("config-old-fields.yaml")
    doors.refused_everywhere(
        text, "bindTimeoutSeconds of VolumeBinding's args", "hardPodAffinityWeight of InterPodAffinity's args"
    )
    found = doors.convert(text)
    lost = [change["field"] for change in found["changes"] if not change["kept"]]
    assert lost == ["healthzBindAddress", "metricsBindAddress"]
    assert doors.put(yaml.safe_dump(found["config"])).status_code == 200


def config_map(text: str, **more: str) -> dict[str, Any]:
    return make_object("v1", "ConfigMap", "c", data={"notes.txt": "a: b: c", **more, "config.yaml": text})


V1 = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: mine}]\n"
WITHOUT_KIND = {key: value for key, value in config_map(V1).items() if key not in ("apiVersion", "kind")}


@pytest.mark.parametrize(
    "text",
    [
        text_of("config-in-configmap.yaml").replace("my-scheduler", "mine"),
        yaml.safe_dump(config_map(V1, other="{}")),
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [make_node("n"), config_map(V1)]}),
        json.dumps({"apiVersion": "v1", "kind": "ConfigMapList", "items": [WITHOUT_KIND]}),
        yaml.safe_dump_all([make_node("n"), config_map(V1), make_pod("p")]),
    ],
    ids=["one", "among keys", "in a List", "without a kind", "among documents"],
)
def test_config_in_configmap(doors: Doors, text: str) -> None:
    answer = doors.put(text)
    assert answer.status_code == 200, answer.content
    assert answer.json()["config"] == yaml.safe_load(V1)
    set_config(cluster=doors.cluster, config=None)
    assert doors.client.post(doors.page, {"text": text}).status_code == 302
    doors.cluster.refresh_from_db()
    assert doors.cluster.config == yaml.safe_load(V1)
    assert doors.simulate(text)[0] == 0
    documents = list(yaml.safe_load_all(text))
    if len(documents) == 1:
        scenario = load_scenario(
            SCENARIO | {"scheduler": documents[0], "steps": [{"configure": documents[0]}]}
        )
        assert scenario.scheduler == scenario.steps[0].configure == yaml.safe_load(V1)


def test_an_old_version_in_a_configmap_is_refused_and_converted(doors: Doors) -> None:
    text = yaml.safe_dump(config_map(text_of("config-v1beta2.yaml")))
    doors.refused_everywhere(text, "was removed in Kubernetes 1.28")
    assert doors.convert(text)["config"]["profiles"][1]["schedulerName"] == "my-scheduler"
    # The first line of the file is the ConfigMap's own apiVersion, which nothing is wrong with.
    assert f"{doors.file}: apiVersion: " in doors.simulate(text)[1]
    assert f"{doors.file}: line 1: apiVersion: " in doors.simulate(text_of("config-v1beta2.yaml"))[1]


def test_arguments_of_a_strategy_that_does_not_score_are_said_to_have_no_effect(doors: Doors) -> None:
    profile = {"pluginConfig": [{"name": "NodeResourcesMostAllocated", "args": {}}]}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1beta2", "kind": "KubeSchedulerConfiguration"}
    text = yaml.safe_dump(head | {"profiles": [profile]})
    doors.refused_everywhere(text, "has no effect: NodeResourcesMostAllocated is not enabled to score")


def test_a_policy_in_a_configmap_is_read(doors: Doors) -> None:
    text = json.dumps(config_map("{}", **{"policy.cfg": '{"kind": "Policy", "apiVersion": "v1"}'}))
    assert doors.put(text).json()["config"] == {"kind": "Policy", "apiVersion": "v1"}


def test_a_configmap_of_none_or_two_is_refused(doors: Doors) -> None:
    doors.refused_everywhere(yaml.safe_dump(config_map("a: 1")), "config.yaml, notes.txt")
    doors.refused_everywhere(yaml.safe_dump(config_map(V1, more=V1)), "holds 2 configurations", "data[more]")


@pytest.mark.parametrize(("api_version", "kind"), table(__file__, "another_kind_is_named"))
def test_another_kind_is_named(doors: Doors, api_version: str, kind: str) -> None:
    text = yaml.safe_dump({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    answer = doors.put(text).json()
    assert (answer["kind"], answer["field"], answer["value"]) == (kind, "kind", kind)
    doors.refused_everywhere(text, "a scheduler configuration is of kind")


def test_config_coscheduling_queuesort(doors: Doors) -> None:
    text = text_of("config-coscheduling-queuesort.yaml")
    doors.refused_everywhere(
        text, "a plugin of sigs.k8s.io/scheduler-plugins", "GangPermit", "GangScheduling"
    )


def test_a_file_that_is_not_here_says_what_to_do(doors: Doors, settings: Any) -> None:
    extender = {"urlPrefix": "https://e.test", "filterVerb": "f", "tlsConfig": {"caFile": "/absent/ca.crt"}}
    config = yaml.safe_load(V1) | {"extenders": [extender]}
    for embedded in (True, False):
        settings.EMBEDDED = embedded
        with pytest.raises(InvalidManifest) as refused:
            set_config(cluster=doors.cluster, config=config)
        assert (refused.value.path, refused.value.value) == (
            "extenders[0].tlsConfig.caFile",
            "/absent/ca.crt",
        )
        assert "caData" in refused.value.message
        assert "base64 -w0 FILE" in refused.value.message


# ---- extenders


def strict(key_of: dict[str, str]) -> Any:
    """An extender that reads one form only, as one in Python or Node does."""

    def answer(path: str, body: Any) -> Any:
        assert body[key_of["pod"]]["metadata"]["name"] == "p"
        names = [node["metadata"]["name"] for node in body[key_of["nodes"]]["items"]]
        if path.endswith("/filter"):
            return {key_of["nodes"]: body[key_of["nodes"]], key_of["failed"]: {}}
        return [{key_of["host"]: name, key_of["score"]: 10 * (name == "n2")} for name in names]

    return answer


def config_of(kind: str, url: str, kubernetes_version: str | None) -> dict[str, Any]:
    extender = {"urlPrefix": url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1000}
    if kind == "Policy":
        version = {} if kubernetes_version is None else {"kubernetesVersion": kubernetes_version}
        return {"kind": "Policy", "apiVersion": "v1", "extenders": [extender], **version}
    return yaml.safe_load(text_of("config-extender.yaml")) | {"extenders": [extender]}


@pytest.mark.parametrize(
    ("kind", "kubernetes_version", "keys"),
    table(__file__, "config_extender_reads_the_form_its_scheduler_sent"),
)
def test_config_extender_reads_the_form_its_scheduler_sent(
    settings: Any, kind: str, kubernetes_version: str | None, keys: dict[str, str]
) -> None:
    settings.PLAYGROUND_EXTENDER_HOSTS = ["127.0.0.1"]
    with serving(strict(keys)) as server:
        cluster = make_cluster(make_node("n1"), make_node("n2"), make_pod("p"))
        config = config_of(kind, f"http://127.0.0.1:{server.port}", kubernetes_version)
        set_config(cluster=cluster, config=config)
        run(cluster)
        assert [path for path, _ in server.log] == ["/filter", "/prioritize"]
    assert list(Cycle.objects.values_list("outcome", "node")) == [("bound", "n2")]
