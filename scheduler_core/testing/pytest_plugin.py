"""pytest: scenario files are collected as tests, and the fixture `scheduling` schedules objects.

Nothing of the scheduler is imported before a scenario is collected or the fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from scheduler_core.scenario import ScenarioRun, Verification

SUFFIXES = (".scenario.yaml", ".scenario.yml", ".scenario.json")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("scheduling").addoption(
        "--scheduling-release",
        metavar="NAME",
        help="decide scenarios as this release of Kubernetes, such as 1.36 (recorded decisions are left aside)",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name.endswith(SUFFIXES):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


class ScenarioFile(pytest.File):
    """One scenario; it is run once, when the first of its tests is."""

    def collect(self) -> Iterator[pytest.Item]:
        import dataclasses

        from scheduler_core.errors import InvalidObject
        from scheduler_core.releases import release_named
        from scheduler_core.scenario import ScenarioError, load_scenario

        try:
            scenario = load_scenario(self.path.read_bytes())
        except ScenarioError as error:
            words = "\n".join(str(problem) for problem in error.problems[:20])
            raise self.CollectError(f"{self.path}: {words}") from None
        release = self.config.getoption("--scheduling-release")
        if release:
            try:
                name = release_named(release, "--scheduling-release").name
            except InvalidObject as error:
                raise pytest.UsageError(str(error)) from None
            scenario = dataclasses.replace(scenario, kubernetes_release=name, decisions=None)
        self._scenario = scenario
        self._ran: tuple[ScenarioRun, Verification | None] | None = None
        names = [f"expect[{place}]" for place in range(len(scenario.expect))]
        for number, step in enumerate(scenario.steps):
            names += [f"steps[{number}].expect[{place}]" for place in range(len(step.expect or ()))]
        if scenario.decisions is not None:
            names.append("decisions")
        for name in names:
            yield ScenarioTest.from_parent(self, name=name)

    def ran(self) -> tuple[ScenarioRun, Verification | None]:
        """The run, and how it compares with the decisions that the file carries."""
        from scheduler_core.scenario import run_scenario, verify

        if self._ran is None:
            run = run_scenario(self._scenario)
            self._ran = run, verify(run)
        return self._ran


class ScenarioFailure(Exception):
    """An expectation does not hold; its words."""


class ScenarioTest(pytest.Item):
    """One expectation of a scenario, or that its decisions are made again."""

    parent: ScenarioFile

    def runtest(self) -> None:
        run, verification = self.parent.ran()
        if self.name == "decisions":
            assert verification is not None
            if not verification.same:
                raise ScenarioFailure(verification.sentence)
            return
        finding = next((one for one in run.findings if one.path == self.name), None)
        if finding is None:
            raise ScenarioFailure("it was not checked: the run ended before its step")
        if not finding.holds:
            where = f" (cycle {finding.cycle})" if finding.cycle is not None else ""
            raise ScenarioFailure(f"{finding.sentence}{where}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ScenarioFailure):
            return f"{self.path.name}: {self.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.name}: {self.name}"


class Scheduled:
    """What came of `Scheduling.simulate`.

    Attributes
    ----------
    run : ScenarioRun
        All of it.
    """

    def __init__(self, run: ScenarioRun) -> None:
        self.run = run

    @property
    def placement(self) -> dict[str, str]:
        """`namespace/name` -> node, of every pod that is on one."""
        return self.run.placement()

    @property
    def waiting(self) -> dict[str, str]:
        """`namespace/name` -> what the scheduler says of it, of every pod without a node."""
        pods = (stored.typed for stored in self.run.simulation.world.all("Pod"))
        return {pod.key: self.why(pod.key) or "" for pod in pods if not pod.node_name and not pod.is_terminal}

    def node(self, pod: str) -> str | None:
        """The node of a pod, `namespace/name`; None where it waits."""
        return self.placement.get(pod)

    def nodes(self, prefix: str = "") -> list[str]:
        """Nodes of the pods whose `namespace/name` begins so, one for each pod."""
        return [node for pod, node in self.placement.items() if pod.startswith(prefix)]

    def why(self, pod: str) -> str | None:
        """The scheduler's last message about a pod; None if it was never tried."""
        cycles = self.run.cycles_of(pod)
        return cycles[-1].message if cycles else None

    def labels_of(self, node: str) -> Mapping[str, str]:
        """Labels of a node.

        Raises
        ------
        KeyError
            There is none of this name.
        """
        stored = self.run.simulation.world.get("Node", "", node)
        if stored is None:
            raise KeyError(f"there is no node {node}")
        labels: Mapping[str, str] = stored.typed.meta.labels
        return labels


class Scheduling:
    """The fixture `scheduling`.

    Parameters
    ----------
    folder
        What relative paths begin at.
    """

    def __init__(self, folder: Path, release: str | None) -> None:
        self._folder = folder
        self._release = release

    def simulate(
        self, *what: str | Path | Mapping[str, Any], release: str | None = None, seed: int = 0, **more: Any
    ) -> Scheduled:
        """Schedule the pending pods of files, folders and manifests; time goes on until nothing is left to happen.

        Parameters
        ----------
        what
            Paths, or manifests as mappings.
        release
            Of Kubernetes; that of `--scheduling-release`, else the newest one.
        more
            Other fields of a scenario, such as `scheduler` (a configuration) or `steps`.

        Raises
        ------
        ScenarioError
            Something cannot be read; with its place.
        """
        from scheduler_core.cli.manifests import named_by_file, read_manifests, scenario_of_dump
        from scheduler_core.releases import DEFAULT
        from scheduler_core.scenario import ScenarioError, load_scenario, run_scenario

        posted, notes = read_manifests(
            item if isinstance(item, Mapping) else str(self._folder / item) for item in what
        )
        name = release or self._release or DEFAULT.name
        manifests = [item.manifest for item in posted]
        document = scenario_of_dump(manifests, kubernetesRelease=name, seed=seed) | more
        try:
            run = run_scenario(load_scenario(document), full_traces=False)
        except ScenarioError as error:
            raise named_by_file(error, dict(enumerate(posted))) from None
        run.notes[:0] = notes
        return Scheduled(run)


@pytest.fixture
def scheduling(request: pytest.FixtureRequest) -> Scheduling:
    """Schedules objects: `scheduling.simulate("manifests/", release="1.36").waiting`."""
    return Scheduling(request.path.parent, request.config.getoption("--scheduling-release"))
