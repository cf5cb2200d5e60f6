"""From YAML, JSON or plain data to a `Scenario`, or one error that names every place."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

from scheduler_core.config.decode import configuration_among
from scheduler_core.config.wire import Problems, encode
from scheduler_core.errors import ConfigurationError, InvalidManifest, InvalidObject
from scheduler_core.installed_plugins import outside
from scheduler_core.objects import reading, short
from scheduler_core.objects.documents import LineMap, decoded, load_documents
from scheduler_core.objects.fields import mapping, mappings, string
from scheduler_core.objects.kinds import parse
from scheduler_core.plugins import REGISTRY
from scheduler_core.releases import DEFAULT, Release, release_named
from scheduler_core.scenario import types
from scheduler_core.scenario.bounds import RunBounds, bound_problems
from scheduler_core.scenario.controllers import with_controllers
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.form import SCHEMA, did_you_mean, part_of
from scheduler_core.schema.fields_check import FieldProblem, unknown_fields, unknown_fields_of_patch
from scheduler_core.sim.options import load as load_as_simulated
from scheduler_core.validation.admission import check
from scheduler_core.validation.kinds import validate_metadata

MAX_BYTES = 64_000_000
ONE_DOCUMENT = "a scenario is one document; put manifests under `objects`"
TEMPLATED = frozenset(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"))
"""Kinds that make pods, which are named after a hash of the template as it is spelled."""
_GROUP, _, _VERSION = types.API_VERSION.partition("/")
_MOST_NOTES = 20
_WITH_LINES = 5
"""Problems whose line is looked up: the text is composed again for each."""
_LINES_UP_TO_BYTES = 2_000_000


def load_scenario(
    source: str | bytes | Mapping[str, Any], *, bounds: RunBounds | None = None
) -> types.Scenario:
    """Read a scenario.

    Parameters
    ----------
    source : str, bytes or mapping
        YAML or JSON text of one document, or the document.
    bounds : RunBounds, optional
        What the run may become.

    Raises
    ------
    ScenarioError
    """
    if isinstance(source, Mapping):
        return _from_document(source, bounds or RunBounds())
    document = _document(source)
    try:
        return _from_document(document, bounds or RunBounds())
    except ScenarioError as error:
        raise ScenarioError(with_lines(error.problems, decoded(source))) from None


def _document(text: str | bytes) -> Mapping[str, Any]:
    try:
        documents = load_documents(text, max_bytes=MAX_BYTES)
    except InvalidManifest as error:
        raise ScenarioError(
            [Problem(error.path, error.words, error.value, error.line, error.column)]
        ) from None
    if not documents:
        raise ScenarioError([Problem("", "there is no document")])
    if len(documents) > 1:
        raise ScenarioError([Problem("", ONE_DOCUMENT, line=documents[1].line)])
    return documents[0].value


def with_lines(problems: Iterable[Problem], text: str) -> Iterator[Problem]:
    """The problems, the first of them with line and column in the text of the document."""
    lines = LineMap(decoded(text))
    for index, problem in enumerate(problems):
        place = None
        if index < _WITH_LINES and len(text) <= _LINES_UP_TO_BYTES:
            place = lines.place(0, problem.path)
        yield problem if place is None else dataclasses.replace(problem, line=place[0], column=place[1])


def _from_document(document: Mapping[str, Any], bounds: RunBounds) -> types.Scenario:
    _check_type(document)
    body = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    _check_bounds(body)
    came_from = _write_out(body)
    if not came_from:
        return _from_body(body, bounds)
    try:
        return _from_body(body, bounds)
    except ScenarioError as error:
        raise ScenarioError(
            dataclasses.replace(problem, path=_as_written(problem.path, came_from))
            for problem in error.problems
        ) from None


def _write_out(body: dict[str, Any]) -> dict[str, str]:
    """Put what `controllers`, `nodes` and `pods` stand for around the objects; where each is written, by its path."""
    written = body.get("objects") or []
    own: Any = [written] if isinstance(written, Mapping) else written
    if not body.keys() & {"controllers", *short.FIELDS} or not isinstance(own, list | tuple):
        return {}
    places = [f"objects[{n}]" for n in range(len(own))]
    if "controllers" in body:
        with_settings = with_controllers(body.pop("controllers"), own)
        places[:0] = ["controllers"] * (len(with_settings) - len(own))
        body["objects"] = own = with_settings
    if body.keys() & short.FIELDS.keys():
        try:
            nodes, pods = (reading.opened({key: body.pop(key, None) or []}) for key in short.FIELDS)
        except InvalidManifest as error:
            words = error.words.removeprefix(f"{error.path}: ")
            raise ScenarioError([Problem(error.path, words)]) from None
        if not body.keys() & {"kubernetesRelease", "emulates"}:
            # Its digest is of the whole scenario, which says its release.
            body["kubernetesRelease"] = DEFAULT.name
        body["objects"] = [*(one.manifest for one in nodes), *own, *(one.manifest for one in pods)]
        places = [*(one.prefix for one in nodes), *places, *(one.prefix for one in pods)]
    return {f"objects[{n}]": place for n, place in enumerate(places)}


def _as_written(path: str, came_from: Mapping[str, str]) -> str:
    place, bracket, field = path.partition("]")
    return came_from.get(place + bracket, place + bracket) + field


def _from_body(body: dict[str, Any], bounds: RunBounds) -> types.Scenario:
    if "emulates" in body:
        _read_older_name(body)
    problems = Problems()
    checked = part_of(types.Scenario).check(body, "", problems)
    if problems.types or problems.unknown:
        raise ScenarioError(
            Problem(error.field, error.detail, error.value) for error in (*problems.types, *problems.unknown)
        )
    _open_configurations(checked)
    scenario: types.Scenario = part_of(types.Scenario).build(checked)
    missing = list(_missing_plugins(scenario))
    if missing:
        raise ScenarioError(missing)
    found = list(_problems(scenario)) or list(bound_problems(scenario, bounds))
    if found:
        raise ScenarioError(found)
    return with_plugins(scenario)


def _open_configurations(checked: dict[str, Any]) -> None:
    """Take configurations out of the ConfigMaps and Lists that hold them."""
    parts = [(checked, "scheduler", "scheduler")]
    parts += [
        (step, "configure", f"steps[{index}].configure")
        for index, step in enumerate(checked.get("steps", ()))
    ]
    for part, key, path in parts:
        if part.get(key) is not None:
            try:
                part[key] = configuration_among([part[key]])
            except ConfigurationError as error:
                raise ScenarioError(_configuration_errors(error, path)) from None


def _missing_plugins(scenario: types.Scenario) -> Iterator[Problem]:
    """Plugins the scenario needs that are not known here."""
    known = outside()
    for index, plugin in enumerate(scenario.plugins):
        if plugin.name in known:
            continue
        if plugin.name in REGISTRY:
            yield Problem(
                f"plugins[{index}].name", "is a plugin of the tree, which needs no mention", plugin.name
            )
            continue
        how = f"; it comes with the package: pip install {plugin.requirement}" if plugin.requirement else ""
        yield Problem(f"plugins[{index}]", f"the plugin {plugin.name} is not installed here{how}")


def with_plugins(scenario: types.Scenario) -> types.Scenario:
    """The scenario with all plugins from outside the tree that its configurations name, sorted by name."""
    known = outside()
    if not known and not scenario.plugins:
        return scenario
    refs = {plugin.name: plugin for plugin in scenario.plugins}
    for document, _, release in _configurations(scenario):
        plans = load_as_simulated(document, release=release).plans if document is not None else ()
        for name in (name for plan in plans for name in plan.plugin_names):
            if name in known and name not in refs:
                refs[name] = types.PluginRef(name, known[name].origin.package, known[name].origin.version)
    return dataclasses.replace(scenario, plugins=tuple(refs[name] for name in sorted(refs)))


def plugin_notes(scenario: types.Scenario) -> list[str]:
    """Where another version of a plugin is installed than the scenario names."""
    known = outside()
    return [
        f"{plugin.name} is of {known[plugin.name].origin.requirement} here, the scenario names {plugin.requirement}"
        for plugin in scenario.plugins
        if plugin.version
        and plugin.name in known
        and known[plugin.name].origin.requirement != plugin.requirement
    ]


class FieldNote(NamedTuple):
    """Something without effect.

    Attributes
    ----------
    path
        Where: `objects[3].spec.nodeSelectr`.
    fault
        What is misspelt, with its place and what is near; all that is said where it is refused. Empty = nothing is.
    effect
        What comes of it where it is not.
    """

    path: str
    fault: str
    effect: str

    @property
    def words(self) -> str:
        """Fault and effect as one sentence."""
        return f"{self.fault}, {self.effect}" if self.fault else self.effect


def field_notes(scenario: types.Scenario) -> list[FieldNote]:
    """Objects that are left out by their type, and fields that the kinds of objects and patches do not have.

    They change nothing. The first 20.
    """
    found = (
        FieldNote(at, problem.said_of(at), "which has no effect")
        for path, problems in _unknown_fields(scenario)
        for problem in problems
        for at in [f"{path}.{problem.path}"]
    )
    left_out = reading.notes_of(
        reading.Posted(dict(manifest), prefix=path) for path, manifest in _placed(scenario)
    )
    return list(islice(chain((FieldNote("", "", words) for words in left_out), found), _MOST_NOTES))


def _placed(scenario: types.Scenario) -> Iterator[tuple[str, types.Manifest]]:
    """The objects of a scenario that a run takes in, each with its place."""
    for index, manifest in enumerate(scenario.objects):
        yield f"objects[{index}]", manifest
    for number, step in enumerate(scenario.steps):
        for index, manifest in enumerate(step.apply or ()):
            yield f"steps[{number}].apply[{index}]", manifest


def _unknown_fields(scenario: types.Scenario) -> Iterator[tuple[str, list[FieldProblem]]]:
    for path, manifest in _placed(scenario):
        yield path, unknown_fields(manifest)
    for index, manifest in enumerate(scenario.kept):
        yield f"kept[{index}]", unknown_fields(manifest)
    for number, step in enumerate(scenario.steps):
        if step.patch is not None:
            yield f"steps[{number}].patch.patch", unknown_fields_of_patch(step.patch.kind, step.patch.patch)


def _read_older_name(body: dict[str, Any]) -> None:
    """`emulates: v1.34` is what `kubernetesRelease` was called before there was more than one."""
    name = body.pop("emulates")
    if "kubernetesRelease" in body:
        said = "is the older name of kubernetesRelease; give one of them"
        raise ScenarioError([Problem("emulates", said, name)])
    try:
        body["kubernetesRelease"] = release_named(name, "emulates").name
    except InvalidObject as error:
        raise ScenarioError([Problem("emulates", error.reason, name)]) from None


def _check_type(document: Mapping[str, Any]) -> None:
    version, kind = document.get("apiVersion"), document.get("kind")
    if version is None and kind is None and document.keys() & short.FIELDS.keys():
        return
    if not isinstance(version, str) or not version:
        raise ScenarioError([Problem("apiVersion", f'is required: "{types.API_VERSION}"')])
    group, _, number = version.partition("/")
    if version != types.API_VERSION:
        later = re.fullmatch(r"v(\d+)", number)
        if group == _GROUP and later is not None and int(later[1]) > int(_VERSION.removeprefix("v")):
            reason = f"is a later format than this program reads ({types.API_VERSION}); a newer one is needed"
        else:
            reason = f'must be "{types.API_VERSION}"'
        raise ScenarioError([Problem("apiVersion", reason, version)])
    if kind != types.KIND:
        near = did_you_mean(kind, [types.KIND]).removeprefix("; ") if isinstance(kind, str) else ""
        raise ScenarioError([Problem("kind", near or f'must be "{types.KIND}"', kind)])


def _check_bounds(body: Mapping[str, Any]) -> None:
    """Before anything is looked at closely: a huge document must fail fast."""
    extenders = body.get("extenders")
    cassette = extenders.get("cassette") if isinstance(extenders, Mapping) else None
    for path, value, limit in (
        ("steps", body.get("steps"), types.MAX_STEPS),
        ("objects", body.get("objects"), types.MAX_OBJECTS),
        ("expect", body.get("expect"), types.MAX_EXPECTATIONS),
        ("path", body.get("path"), types.MAX_EXPECTATIONS),
        ("extenders.cassette", cassette, types.MAX_CALLS),
    ):
        if isinstance(value, list | tuple) and len(value) > limit:
            raise ScenarioError([Problem(path, f"has {len(value):,} entries, at most {limit:,} are run")])


def _configurations(scenario: types.Scenario) -> Iterator[tuple[types.Manifest | None, str, Release]]:
    """Every configuration that is used, where it is written (an upgrade keeps the one before), and in which release."""
    document, release = scenario.scheduler, scenario.release
    yield document, "scheduler", release
    for index, step in enumerate(scenario.steps):
        if step.configure is not None:
            document = step.configure
            yield document, f"steps[{index}].configure", release
        elif step.upgrade is not None:
            release = step.upgrade.release
            yield document, f"steps[{index}].upgrade", release


def _gate_problems(scenario: types.Scenario) -> Iterator[Problem]:
    """Feature gates that a release does not have, or that cannot be switched."""
    parts: list[tuple[str, types.Scenario | types.Upgrade | types.UpgradeSelection]] = [("", scenario)]
    for index, step in enumerate(scenario.steps):
        if step.upgrade is not None:
            parts.append((f"steps[{index}].upgrade.", step.upgrade))
    ends = [("expect", scenario.expect)]
    ends += [(f"steps[{index}].expect", step.expect or ()) for index, step in enumerate(scenario.steps)]
    for where, expectations in ends:
        for index, item in enumerate(expectations):
            if item.upgrade is not None:
                parts.append((f"{where}[{index}].upgrade.", item.upgrade))
    for prefix, written in parts:
        try:
            _ = written.release
        except ConfigurationError as error:
            for field in error.errors:
                yield Problem(f"{prefix}{field.field}", field.detail, field.value)


def _problems(scenario: types.Scenario) -> Iterator[Problem]:
    found = list(_gate_problems(scenario))
    if found:
        yield from found
        return
    for document, path, release in _configurations(scenario):
        if document is not None:
            yield from configuration_problems(document, path, release)
    for path, manifest in _placed(scenario):
        yield from _manifest_problems(manifest, path, scenario.release)
    for index, manifest in enumerate(scenario.kept):
        found_type = reading.type_of(manifest["apiVersion"], manifest["kind"], scenario.release.name)
        if found_type.role == reading.WRONG:
            yield Problem(f"kept[{index}].{found_type.path}", found_type.words)
        try:
            validate_metadata(manifest, scenario.release)
        except InvalidObject as error:
            yield from problems_of(error, f"kept[{index}]")
    seen: set[tuple[str, str, str]] = set()
    for index, manifest in enumerate(scenario.objects):
        key = types.object_key(manifest)
        if key in seen and key[2] and not reading.is_foreign(manifest):
            yield Problem(f"objects[{index}]", f"{key[0]} {'/'.join(key[1:]).strip('/')} is there twice")
        seen.add(key)


def configuration_problems(
    document: types.Manifest, path: str, release: Release | None = None
) -> Iterator[Problem]:
    """What is wrong with a scheduler configuration or Policy."""
    try:
        load_as_simulated(document, release=release)
    except ConfigurationError as error:
        yield from _configuration_errors(error, path)


def _configuration_errors(error: ConfigurationError, path: str) -> Iterator[Problem]:
    for field in error.errors:
        yield Problem(f"{path}.{field.field}", field.detail or str(field), field.value)
    if not error.errors:
        yield Problem(path, str(error))


def _manifest_problems(manifest: types.Manifest, path: str, release: Release) -> Iterator[Problem]:
    found = reading.type_of(manifest["apiVersion"], manifest["kind"], release.name)
    if found.role == reading.WRONG:
        yield Problem(f"{path}.{found.path}", found.words)
    elif found.role != reading.FOREIGN:
        try:
            check(manifest, release)
            check_shape(manifest)
        except InvalidObject as error:
            yield from problems_of(error, path)


def problems_of(error: InvalidObject, path: str) -> Iterator[Problem]:
    """Everything that is wrong with an object, in the words of all surfaces."""
    error = error.in_kubernetes_form()
    if not error.errors:
        yield Problem(f"{path}.{error.path}", error.words)
    for each in error.errors:
        yield Problem(f"{path}.{each.field}", each.body)


def check_shape(manifest: types.Manifest) -> None:
    """Look at what is only read while the cluster runs: conditions, and the pods a workload makes.

    Raises
    ------
    InvalidObject
    """
    status = mapping(manifest, "status", "")
    for path, condition in mappings(status, "conditions", "status"):
        string(condition, "type", path)
        string(condition, "status", path)
    if manifest["kind"] not in TEMPLATED:
        return
    template = mapping(mapping(manifest, "spec", ""), "template", "spec")
    pod = {
        "kind": "Pod",
        "metadata": {**mapping(template, "metadata", "spec.template"), "name": "x"},
        "spec": mapping(template, "spec", "spec.template"),
    }
    try:
        parse(pod)
    except InvalidObject as error:
        raise InvalidObject(f"spec.template.{error.path}", error.value, error.reason) from None


def scenario_document(scenario: types.Scenario) -> dict[str, Any]:
    """The document of a scenario, its pins written out."""
    return {"apiVersion": types.API_VERSION, "kind": types.KIND, **encode(scenario)}


def dump_scenario(scenario: types.Scenario) -> str:
    """The scenario as YAML that `load_scenario` reads back equal."""
    return reading.dump_yaml([scenario_document(scenario)]).removeprefix("---\n")


def schema_text() -> str:
    """The JSON Schema, draft 2020-12, as the published file holds it."""
    return json.dumps(SCHEMA, indent=1, ensure_ascii=False) + "\n"
