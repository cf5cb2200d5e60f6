"""`kubectl playground` on our own Kubernetes API, found on PATH by the oldest and the newest kubectl."""

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from playground.remote.instance import Instance
from playground.remote.kubectl_plugin import main
from tests.kube_api.kubectls import kubeconfig, programs
from tests.remote.cases import node, pod
from tests.servers import free_port

pytestmark = [pytest.mark.slow, pytest.mark.kubectl, pytest.mark.timeout(300)]
OBJECTS = (
    node("acme-node-1", labels="topology.kubernetes.io/zone: acme-zone, acme.example/rack: r7")
    + node("acme-node-2", spec="unschedulable: true")
    + pod("acme-db", requests='cpu: "3"', spec="nodeName: acme-node-1")
    + pod("acme-web", requests='cpu: "2"', container="env: [{name: PASSWORD, value: acme-secret}]")
    + pod("acme-small", requests="cpu: 100m")
).replace("namespace: shop", "namespace: acme-shop")


class Plugin:
    """kubectl with a cluster of its own and the plugin on PATH."""

    def __init__(self, program: str, folder: Path, instance: Instance) -> None:
        self.instance = instance
        self.cluster = instance.post("clusters/", {"name": "a company's own"})["id"]
        instance.post(f"clusters/{self.cluster}/apply", OBJECTS)
        (folder / "kubectl").symlink_to(program)
        plugin = folder / "kubectl-playground"
        plugin.symlink_to(Path(sys.executable).with_name("kubectl-playground"))
        config = folder / "config"
        config.write_text(json.dumps(kubeconfig(f"{instance.server}/k8s/{self.cluster}")))
        self.environment = {
            "PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(folder),
            "KUBECONFIG": str(config),
            "PLAYGROUND_SERVER": instance.server,
        }

    def by_kubectl(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["kubectl", "playground", *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The same in this process, which has imported it already."""
        out, error = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(error):
            for name, value in (self.environment | environment).items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(words)
        return subprocess.CompletedProcess(words, ended.value.code, out.getvalue(), error.getvalue())

    def made(self) -> list[dict[str, Any]]:
        """Clusters that the plugin made, the newest first."""
        found = self.instance.get("clusters/", limit="100")["items"]
        return [one for one in found if one["name"] == "from kubectl"]


@pytest.fixture(scope="module", params=programs(), ids=lambda program: Path(program).name)
def plugin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, instance: Instance
) -> Plugin:
    return Plugin(request.param, tmp_path_factory.mktemp("kubectl"), instance)


def test_a_pending_pod_is_explained_with_its_own_names_and_none_of_them_leaves(plugin: Plugin) -> None:
    done = plugin.by_kubectl("why", "acme-web", "-n", "acme-shop")
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("acme-shop/acme-web fits no node: 0/2 nodes are available: ")
    assert "  NodeResourcesFit: Insufficient cpu, 1 nodes" in lines
    assert any(line.startswith("  -> Uncordon acme-node-2 (1 of 1, no cost") for line in lines), lines
    cluster = plugin.made()[0]["id"]
    assert lines[-1].startswith(f"  {plugin.instance.server}/c/{cluster}/cycles/")
    # What the playground holds of it: everything but the names.
    sent = "\n".join(
        json.dumps(plugin.instance.get(f"clusters/{cluster}/{kind}/", limit="100"))
        for kind in ("nodes", "pods", "cycles")
    )
    assert '"node-1"' in sent and "acme" not in sent and "r7" not in sent
    assert plugin.run("why", "acme-shop/acme-small").stdout.startswith(
        "acme-shop/acme-small is on acme-node-1."
    )
    assert plugin.run("why", "acme-shop/acme-small", "--keep-names").returncode == 0
    kept = plugin.made()[0]["id"]
    assert "acme-node-1" in json.dumps(plugin.instance.get(f"clusters/{kept}/nodes/"))


def test_a_plan_and_a_share_are_one_line_each(plugin: Plugin) -> None:
    done = plugin.run("plan", "drain", "acme-node-1")
    assert done.returncode == 1, done.stderr
    assert "acme-shop/acme-db" in done.stdout.splitlines()[0]
    done = plugin.run("share", "--days", "2")
    [link] = done.stdout.splitlines()
    assert done.returncode == 0 and link.startswith(f"{plugin.instance.server}/s/")
    shared = plugin.instance.get(f"scenarios/{link.rstrip('/').rpartition('/')[2]}/")
    assert shared["nodes"] == 2 and shared["expiresAt"]
    assert "acme" not in json.dumps(shared)


def test_what_is_wrong_is_said_and_makes_nothing(plugin: Plugin) -> None:
    before = plugin.made()
    nowhere = f"http://127.0.0.1:{free_port()}"
    for words, environment, said in (
        (("why", "gone"), {}, 'error: the cluster has no Pod "default/gone"'),
        (("plan", "drain", "gone"), {}, 'error: the cluster has no Node "gone"'),
        (("why", "acme-shop/acme-web", "--context", "none"), {}, "error: the cluster cannot be read: "),
        (("share",), {"PLAYGROUND_SERVER": nowhere}, "start one with `kube-scheduler-playground`"),
        (("share", "--server", "ftp://x"), {}, 'error: --server: "ftp://x" is not an address'),
        (("why", "acme-shop/acme-web", "--release", "1.2"), {}, '"1.2"'),
        (("share", "--server", "http://example.org"), {"PLAYGROUND_TOKEN": "t"}, "would send the token unencrypted"),
    ):  # fmt: skip
        done = plugin.run(*words, **environment)
        assert (done.returncode, done.stdout) == (2, "") and said in done.stderr, (words, done.stderr)
    assert plugin.made() == before
