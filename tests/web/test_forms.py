"""Forms: what they make, what they refuse and where, and that nothing of a refused one is kept."""

import gzip

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from playground.clusters import drafts
from playground.clusters.models import Cluster, Draft, Node, Pod, Run
from playground.web.pods.forms import PodForm, values_of
from playground.web.problems import read_mapping
from tests.markup import html_of
from tests.tables import table
from tests.web import factories

pytestmark = pytest.mark.django_db

HTMX = {"HTTP_HX_REQUEST": "true"}
NODE = table(__file__, "NODE")
BAD = NODE.replace('cpu: "8"', "cpu: 8x")
POOL = table(__file__, "POOL")
POD = {"name": "p", "namespace": "default", "copies": "1", "cpu": "500m", "memory": "1Gi", "image": "x",
       "action": "form"}  # fmt: skip


def url(name, *args):
    return reverse(f"web:{name}", args=args)


def test_a_blank_cluster(client, wakes):
    response = client.post(url("new-blank"), {"name": "demo"})
    assert response.status_code == 302 and Cluster.objects.get().name == "demo"


def test_a_blank_cluster_needs_a_name_and_says_so_at_the_field(client, wakes):
    response = client.post(url("new-blank"), {"name": ""})
    assert response.status_code == 400
    assert 'aria-describedby="id_name_error"' in html_of(response)


def test_a_node_pool_makes_a_cluster(client, wakes):
    client.post(url("new-pools"), POOL)
    nodes = Node.objects.filter(cluster__name="pool")
    assert nodes.count() == 5 and sorted({node.zone for node in nodes}) == ["a", "b"]
    assert nodes[0].extended["nvidia.com/gpu"] == 2


def test_the_pool_preview_keeps_nothing(client, wakes):
    html = html_of(client.post(url("new-pools"), POOL | {"action": "preview"}, **HTMX))
    assert "gpu-1" in html and not Cluster.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    table(__file__, "a_bad_pool_is_refused_at_its_field"),
)
def test_a_bad_pool_is_refused_at_its_field(client, wakes, field, value, words):
    response = client.post(url("new-pools"), POOL | {field: value})
    html = html_of(response)
    assert response.status_code == 400 and words in html and f'id="id_{field}_error"' in html
    assert not Cluster.objects.exists()


def test_an_import_shows_what_it_will_do_before_it_does_it(client, wakes):
    response = client.post(url("new-import"), {"text": NODE, "action": "preview"}, **HTMX)
    html = html_of(response)
    assert "1 ignored" in html and "Wombat w" in html and "makes this kind" in html and "n1" in html
    assert not Cluster.objects.exists()
    client.post(url("new-import"), {"text": NODE, "cluster_name": "real", "action": "import"})
    assert Node.objects.get().name == "n1" and Cluster.objects.get().name == "real"


def test_nodes_and_pods_in_the_short_form_are_imported(client, wakes):
    short = "nodes: [{name: n, type: m6i.large, count: 2}]\npods: [{name: p, cpu: 1, priority: 5}]\n"
    client.post(url("new-import"), {"text": short, "cluster_name": "short", "action": "import"})
    assert sorted(Node.objects.values_list("name", flat=True)) == ["n-0", "n-1"]
    assert Cluster.objects.get().pods.get().name == "p"
    html = html_of(
        client.post(url("new-import"), {"text": short.replace("cpu: 1", "cpu: one"), "action": "import"})
    )
    assert "pods[0].cpu" in html and "line 2" in html


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_is_imported_like_pasted_text(client, wakes, encoding):
    upload = SimpleUploadedFile("cluster.yaml", NODE.replace("\n", "\r\n").encode(encoding))
    client.post(url("new-import"), {"text": "", "upload": upload, "cluster_name": "f", "action": "import"})
    assert Node.objects.get().name == "n1"


def packed_upload(data):
    return {"text": "", "upload": SimpleUploadedFile("cluster.yaml.gz", data), "cluster_name": "f"}


def test_a_packed_file_is_imported_like_the_text_in_it(client, wakes):
    first, second = NODE[: len(NODE) // 2].encode(), NODE[len(NODE) // 2 :].encode()
    data = gzip.compress(first) + gzip.compress(second) + bytes(7)  # as several processors write it, padded
    client.post(url("new-import"), packed_upload(data) | {"action": "import"})
    assert Node.objects.get().name == "n1"


PACKED = gzip.compress(NODE.encode())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(bytes(9 * 2**20)), "has more than 8 MB unpacked, which is the most that is read."),
        (gzip.compress(b" " * 2**19) * 99, "has more than 8 MB unpacked, which is the most that is read."),
        (gzip.compress(b"") * 101, "cannot be read: the gzip&#x27;d file has more than 100 parts."),
        (PACKED[:-9], "cannot be read: the gzip&#x27;d file ends too early."),
        (PACKED[:12] + b"\xff" + PACKED[13:], "cannot be read: the gzip&#x27;d file is damaged"),
        (b"# " + bytes(2**20), "This upload has 1 MB; at most 1 MB are taken. Pack a larger dump with gzip"),
    ],
    ids=["a bomb", "a bomb in parts", "many parts", "truncated", "damaged", "too large"],
)
def test_a_file_that_is_too_large_or_damaged_is_refused_in_words(client, wakes, settings, data, words):
    settings.PLAYGROUND_MAX_UPLOAD_BYTES, settings.PLAYGROUND_MAX_UNPACKED_BYTES = 2**20, 8 * 2**20
    response = client.post(url("new-import"), packed_upload(data) | {"action": "import"})
    assert response.status_code == 400 and words in html_of(response)
    assert not Cluster.objects.exists()


def test_pasted_text_that_is_too_large_is_refused_in_the_same_words(client, wakes, settings):
    settings.PLAYGROUND_MAX_UPLOAD_BYTES = 2**20
    response = client.post(url("new-import"), {"text": "#" * (2**20 + 1), "action": "import"})
    assert response.status_code == 400 and "at most 1 MB are taken. Pack" in html_of(response)


def test_a_packed_dump_may_have_more_than_a_request(client, wakes, settings, monkeypatch):
    """A worker reads it, for its preview and for its cluster."""
    settings.PLAYGROUND_MAX_UPLOAD_BYTES, settings.PLAYGROUND_MAX_UNPACKED_BYTES = 2000, 20_000
    monkeypatch.setattr(drafts, "READ_AT_ONCE_BYTES", 2000)
    data = gzip.compress(f"{NODE}\n{'#' * 10_000}".encode())
    for action, done in (("preview", "What will happen"), ("import", "created")):
        client.post(url("new-import"), packed_upload(data) | {"action": action})
        draft = Draft.objects.latest("pk")
        drafts.work_on(draft_id=draft.pk)
        page = client.get(url("draft", draft.public_id), follow=True)
        assert page.status_code == 200 and done in html_of(page)
    assert Node.objects.get().name == "n1"


@pytest.mark.parametrize("action", ["preview", "import"])
def test_a_packed_dump_for_a_cluster_that_is_there_may_have_as_much_and_no_more(
    client, cluster, wakes, settings, action
):
    settings.PLAYGROUND_MAX_UPLOAD_BYTES, settings.PLAYGROUND_MAX_UNPACKED_BYTES = 2000, 20_000
    here = url("import", cluster.public_id)
    for size, status, words in ((10_000, 200, ""), (20_000, 400, "which is the most that is read.")):
        data = gzip.compress(f"{NODE}\n{'#' * size}".encode())
        page = client.post(here, packed_upload(data) | {"action": action}, follow=True)
        assert page.status_code == status and words in html_of(page)
        assert cluster.nodes.filter(name="n1").exists() == (action == "import")


def test_a_bad_import_names_the_line_and_keeps_nothing(client, wakes):
    response = client.post(url("new-import"), {"text": BAD, "cluster_name": "bad", "action": "import"})
    html = html_of(response)
    assert response.status_code == 400 and "line 5" in html and "8x" in html and 'class="ebad"' in html
    assert not Cluster.objects.exists()


OF_A_CLASS = "spec: {priorityClassName: gold, nodeName: n7, containers: [{name: c, image: i}]}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NAMESPACE   NAME    READY\nshop        web-0   1/1\n", "the table kubectl prints"),
        ("apiVersion: v1\nkind: Node\nmetadata:\n\tname: n1\n", "indented by a tab"),
        (f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n{OF_A_CLASS}\n", "kubectl get pc -o yaml"),
        (f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n{OF_A_CLASS.replace('priorityClassName: gold, ', '')}\n",
         "kubectl get nodes -o yaml"),
    ],
    ids=["table", "tab", "no class", "no node"],
)  # fmt: skip
def test_what_many_paste_first_is_told_what_is_missing(client, wakes, text, words):
    assert words in html_of(client.post(url("new-import"), {"text": text, "action": "preview"}, **HTMX))


def test_an_empty_import_is_refused(client, wakes):
    assert client.post(url("new-import"), {"text": " ", "action": "import"}).status_code == 400


def test_importing_into_a_cluster_says_created_updated_unchanged(client, cluster):
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1, labels: {disk: hdd}}\n"
    html = client.post(url("import", cluster.public_id), {"text": text, "action": "preview"}, **HTMX).content
    assert b"1 to update" in html


def test_a_pod_is_submitted_and_run(client, cluster):
    response = client.post(url("pod-new", cluster.public_id), POD | {"then": "run"})
    assert response.status_code == 302 and Pod.objects.filter(cluster=cluster, name="p").exists()
    assert Run.objects.get(cluster=cluster).until == "idle"


def test_copies_of_a_pod_are_numbered(client, cluster):
    client.post(url("pod-new", cluster.public_id), POD | {"copies": "3"})
    assert Pod.objects.filter(cluster=cluster, name__startswith="p-").count() == 3


def test_the_form_writes_the_yaml_beside_it(client, cluster):
    form = POD | {"action": "preview", "toleration_0_key": "gpu", "toleration_0_operator": "Exists",
                  "toleration_1_key": "spot", "toleration_1_value": "true", "required_0_key": "os",
                  "required_0_values": "linux",
                  "affinity_0_key": "disk", "affinity_0_operator": "In", "affinity_0_values": "ssd",
                  "spread_0_key": "topology.kubernetes.io/zone", "labels": "app=p", "node_selector": "disk=ssd",
                  "extended": "nvidia.com/gpu=1", "host_port": "80"}  # fmt: skip
    html = html_of(client.post(url("pod-new", cluster.public_id), form, **HTMX))
    for words in ("operator: Exists", "topologyKey", "matchExpressions", "nvidia.com/gpu", "hostPort: 80"):
        assert words in html, words
    assert not Pod.objects.filter(cluster=cluster, name="p").exists()


EDITED = table(__file__, "EDITED")


def test_the_form_follows_the_yaml(client, cluster):
    address = url("pod-new", cluster.public_id)
    html = html_of(client.post(address, POD | {"action": "from_yaml", "yaml": EDITED}, **HTMX))
    for words in (
        'value="typed"',
        'value="250m"',
        'name="toleration_1_key" value="spot"',
        "toleration_2_key",
    ):
        assert words in html, words
    bad = EDITED.replace("250m", "1x")
    html = html_of(client.post(address, POD | {"action": "from_yaml", "yaml": bad}, **HTMX))
    assert "line 12" in html and 'name="name" value="p"' in html


def test_a_filled_row_brings_another_one(client, cluster):
    address = url("pod-new", cluster.public_id)
    form = POD | {"action": "preview", "toleration_0_key": "gpu"}
    html = html_of(client.post(address, form, **HTMX))
    assert 'id="rows-toleration" hx-swap-oob' in html and 'name="toleration_1_key"' in html
    html = html_of(client.post(address, form | {"toleration_1_key": ""}, **HTMX))
    assert "rows-toleration" not in html


AFFINE = table(__file__, "AFFINE")


def edited(manifest, **values):
    """The manifest after some fields of its form were changed."""
    form = PodForm(values_of(manifest) | values, base=manifest)
    assert form.is_valid(), form.errors
    return form.manifests()[0]


def test_whatever_yaml_says_is_there_after_another_field_was_edited():
    assert edited(read_mapping(EDITED)) == read_mapping(EDITED)
    manifest = read_mapping(AFFINE)
    assert edited(manifest) == manifest
    changed = edited(manifest, cpu="1")
    assert changed["spec"].pop("containers")[0]["resources"] == {"requests": {"cpu": "1"}}
    assert changed["spec"] == {key: value for key, value in manifest["spec"].items() if key != "containers"}


def test_a_changed_row_keeps_what_it_has_no_field_for_and_an_emptied_one_takes_only_itself_away():
    manifest = read_mapping(AFFINE)
    emptied = {"pod_affinity_1_key": "", "pod_affinity_1_selector": ""}
    affinity = edited(manifest, pod_affinity_0_selector="app=pg", **emptied)["spec"]["affinity"]
    assert affinity["podAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "pg"}}, "namespaces": ["shop"]}
        ]
    }
    assert affinity["nodeAffinity"] == manifest["spec"]["affinity"]["nodeAffinity"]
    # The first of two is emptied: the second stays as it is, although it is now the first.
    anti = edited(manifest, pod_anti_affinity_0_key="")["spec"]["affinity"]["podAntiAffinity"]
    assert anti == {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]}
    softer = edited(manifest, pod_affinity_0_rule="Preferred", pod_affinity_0_weight="3")["spec"]["affinity"]
    assert softer["podAffinity"] == {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 3,
                "podAffinityTerm": manifest["spec"]["affinity"]["podAffinity"][
                    "requiredDuringSchedulingIgnoredDuringExecution"
                ][0],
            },
            *manifest["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"],
        ]
    }


def test_pod_affinity_and_spread_are_of_the_pods_own_labels_unless_told_otherwise(client, cluster):
    form = POD | {"action": "preview", "labels": "app=p", "pod_affinity_0_key": "zone",
                  "pod_affinity_0_selector": "app=db", "pod_affinity_0_rule": "Required",
                  "pod_anti_affinity_0_key": "kubernetes.io/hostname", "pod_anti_affinity_0_rule": "Preferred",
                  "pod_anti_affinity_0_weight": "70", "spread_0_key": "zone"}  # fmt: skip
    address = url("pod-new", cluster.public_id)
    text = client.post(address, form, **HTMX).context["text"]
    for words in ("app: db", "weight: 70", "podAntiAffinity", "topologyKey: kubernetes.io/hostname"):
        assert words in text, words
    assert text.count("app: p\n") == 3  # the pod's, of the anti-affinity and of the spread
    # They follow the pod's labels as long as no others are written.
    text = client.post(address, form | {"labels": "app=q", "yaml": text}, **HTMX).context["text"]
    assert text.count("app: q\n") == 3 and "app: p\n" not in text
    client.post(address, form | {"action": "form"})
    affinity = Pod.objects.get(cluster=cluster, name="p").manifest["spec"]["affinity"]
    assert sorted(affinity) == ["podAffinity", "podAntiAffinity"]


@pytest.mark.parametrize(
    ("field", "value", "words"), table(__file__, "a_bad_row_is_refused_at_its_field_and_the_yaml_stays")
)
def test_a_bad_row_is_refused_at_its_field_and_the_yaml_stays(client, cluster, field, value, words):
    html = html_of(
        client.post(
            url("pod-new", cluster.public_id),
            POD | {"pod_affinity_0_key": "zone", "yaml": EDITED, field: value},
        )
    )
    assert words in html and f'id="id_{field}_error"' in html and "terminationGracePeriodSeconds: 5" in html
    assert not Pod.objects.filter(cluster=cluster, name="p").exists()


def test_a_term_that_names_pods_says_within_which_topology(client, cluster):
    response = client.post(url("pod-new", cluster.public_id), POD | {"pod_affinity_0_selector": "app=db"})
    html = html_of(response)
    assert response.status_code == 400 and "Within which topology?" in html
    assert 'id="id_pod_affinity_0_key_error"' in html


def test_the_server_refuses_a_row_at_its_line(client, cluster):
    form = POD | {"action": "preview", "pod_affinity_0_key": "zone", "pod_affinity_0_selector": "a b=db"}
    html = html_of(client.post(url("pod-new", cluster.public_id), form, **HTMX))
    assert "labelSelector.matchLabels: Invalid value: &quot;a b&quot;: name part must" in html
    assert "1 error, line 13" in html


def test_yaml_is_submitted_by_itself_and_refused_at_its_line(client, cluster):
    good = "apiVersion: v1\nkind: Pod\nmetadata: {name: y}\nspec:\n  containers:\n  - {name: c, image: x}\n"
    client.post(url("pod-new", cluster.public_id), {"yaml": good, "action": "yaml"})
    assert Pod.objects.filter(cluster=cluster, name="y").exists()
    bad = good.replace("name: y", "name: z") + "  priority: high\n"
    response = client.post(url("pod-new", cluster.public_id), {"yaml": bad, "action": "yaml"})
    assert response.status_code == 400 and "line 7" in html_of(response)
    assert not Pod.objects.filter(cluster=cluster, name="z").exists()


def test_a_node_is_edited_by_its_common_fields(client, cluster):
    address = url("object", cluster.public_id, "Node", "-", "node-1")
    form = client.get(address).context["form"]
    posted = {
        **{field.name: field.value() for field in form},
        "action": "form",
        "cpu": "12",
        "taints": "gpu=true:NoSchedule",
        "unschedulable": "on",
    }
    assert client.post(address, posted).status_code == 302
    node = Node.objects.get(cluster=cluster, name="node-1")
    assert node.cpu_milli == 12_000 and node.unschedulable and node.taints[0]["key"] == "gpu"
    assert node.labels["disk"] == "ssd"
    refused = client.post(address, posted | {"cpu": "-1"})
    assert refused.status_code == 400 and 'id="id_cpu_error"' in html_of(refused)


def test_a_pods_labels_are_edited_by_form(client, cluster):
    address = url("object", cluster.public_id, "Pod", "default", "train-2")
    assert client.post(address, {"action": "form", "labels": "app=train"}).status_code == 302
    assert Pod.objects.get(cluster=cluster, name="train-2").manifest["metadata"]["labels"] == {"app": "train"}


def test_an_edit_of_an_older_version_is_a_conflict(client, cluster):
    address = url("object", cluster.public_id, "Node", "-", "node-1")
    text = client.get(address).context["text"]
    client.post(address, {"text": text.replace("disk: ssd", "disk: nvme")})
    response = client.post(address, {"text": text.replace("disk: ssd", "disk: hdd")})
    assert response.status_code == 409 and "modified" in html_of(response)


def test_an_edit_may_not_rename(client, cluster):
    address = url("object", cluster.public_id, "Node", "-", "node-1")
    text = client.get(address).context["text"]
    assert client.post(address, {"text": text.replace("name: node-1", "name: other")}).status_code == 400


def test_deleting_asks_first(client, cluster):
    address = url("object-delete", cluster.public_id, "Pod", "default", "train-2")
    assert "Yes, delete" in html_of(client.post(address))
    assert Pod.objects.filter(cluster=cluster, name="train-2").exists()
    client.post(address, {"sure": "yes"})
    assert not Pod.objects.filter(cluster=cluster, name="train-2").exists()


def test_unknown_objects_are_not_found(client, cluster):
    assert client.get(url("object", cluster.public_id, "Node", "-", "nosuch")).status_code == 404
    assert client.get(url("object", cluster.public_id, "Wombat", "-", "x")).status_code == 404
    told = client.get(f"/c/{cluster.public_id}/cycles/99/")
    assert told.status_code == 404 and "Cycle 99 not found. It may have been deleted" in " ".join(
        told.content.decode().split()
    )


def test_a_cluster_is_renamed_cloned_reset_exported_and_deleted(client, cluster):
    def do(action, **data):
        return client.post(url("cluster-action", cluster.public_id, action), data)

    do("rename", name="other")
    assert Cluster.objects.filter(name="other").exists()
    do("clone", name="twin")
    assert Node.objects.filter(cluster__name="twin").count() == 12
    assert "confirm=reset" in do("reset").url and cluster.cycles.exists()
    do("reset", sure="yes")
    assert not cluster.cycles.exists()
    export = client.get(url("export", cluster.public_id))
    assert b"kind: Node" in export.getvalue() and "attachment" in export["Content-Disposition"]
    do("delete")
    assert Cluster.objects.filter(pk=cluster.pk).exists()
    do("delete", sure="yes")
    assert not Cluster.objects.filter(pk=cluster.pk).exists()
    assert client.post(url("cluster-action", Cluster.objects.get().public_id, "explode")).status_code == 404


CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_a_configuration_is_saved_and_taken_back(client, cluster):
    address = url("config", cluster.public_id)
    assert client.post(address, {"text": CONFIG + "parallelism: 4\n"}).status_code == 302
    cluster.refresh_from_db()
    assert cluster.config["parallelism"] == 4
    client.post(address, {"action": "default"})
    cluster.refresh_from_db()
    assert cluster.config is None


@pytest.mark.parametrize(
    ("text", "line"),
    [(CONFIG + "parallelism: 4\npercentageOfNodesToScore: 200\n", "line 4"), ("a: [1\nb: 2\n", "line 2")],
)
def test_a_bad_configuration_is_refused_at_its_line(client, cluster, text, line):
    response = client.post(url("config", cluster.public_id), {"text": text})
    assert response.status_code == 400 and line in html_of(response)
    cluster.refresh_from_db()
    assert cluster.config is None


def test_a_permit_decision_for_a_pod_that_does_not_wait_is_told(client, cluster):
    response = client.post(
        url("permit", cluster.public_id, "default", "train-2"), {"decision": "allow"}, follow=True
    )
    assert "does not wait at Permit" in html_of(response)


def test_a_pod_at_permit_can_be_allowed(client, cluster):
    client.post(url("permit", cluster.public_id, "default", "mpi-0"), {"decision": "allow"})
    assert cluster.log.filter(kind="permit").exists() and Run.objects.filter(cluster=cluster).exists()
    assert factories.START_NS
