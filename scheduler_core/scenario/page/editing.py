"""What the page's editor asks: what may be written at a place, by the schemas that are checked; texts made for others.

A text that is made says what it shall by digest: the first of several that has it is taken, the one nearest to what was
written first, so that comments stay where they can.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from scheduler_core.errors import InvalidManifest
from scheduler_core.objects import short
from scheduler_core.objects.merge import merge_patch
from scheduler_core.objects.prices import shipped_prices
from scheduler_core.objects.reading import dump_yaml, read_posted
from scheduler_core.releases import DEFAULT, Release
from scheduler_core.scenario.canonical import canonical_manifest, scenario_digest
from scheduler_core.scenario.errors import Problem, ScenarioError
from scheduler_core.scenario.form import SCHEMA
from scheduler_core.scenario.load import load_scenario, scenario_document
from scheduler_core.scenario.types import API_VERSION, KIND, Scenario
from scheduler_core.schema import tables
from scheduler_core.sim.world import Stored, World, key_of
from scheduler_core.whatif.patches import without_given

MOST: Final = 40
"""Choices that are offered."""
_KEY: Final = re.compile(r"^([ \t]*(?:- +)*)(?:(\{.*)|([\w./-]+):(.*)|([\w./-]*))$")


def choices_at(text: str, at: int) -> dict[str, Any]:
    """What may be written where a text is edited.

    Returns
    -------
    dict
        ``from``, the character from which it takes the place of what is there, and ``choices``, each with ``name``,
        ``words`` and ``insert``.
    """
    before = text[:at]
    typed = re.search(r"[\w./-]*$", before)
    word = typed[0] if typed else ""
    path, value_of, kinds = _place(text, before)
    if value_of:
        found = dict.fromkeys(_values(path, value_of), "")
        end = ""
    else:
        found, end = _fields(path, kinds), ": "
    choices = [
        {"name": name, "words": words, "insert": name + end}
        for name, words in found.items()
        if name.lower().startswith(word.lower()) and name != word
    ]
    return {"from": at - len(word), "choices": choices[:MOST]}


def _place(text: str, before: str) -> tuple[list[str], str, tuple[str, str]]:
    """Keys from the outermost to the place, whose value is written there (or nothing), apiVersion and kind around."""
    lines = before.split("\n")
    last = lines[-1]
    value_of = ""
    path: list[str] = []
    flow = _open_flow(last)
    depth = len(last) - len(last.lstrip())
    if flow is not None:
        value = re.search(r"([\w./-]+):\s*[\w./-]*$", flow)
        value_of = value[1] if value else ""
        last_key = re.match(r"[ \t]*(?:- +)*([\w./-]+):", last[: len(last) - len(flow)])
        path = [last_key[1]] if last_key else []
        # A list's dash may be as deep as its key.
        depth = depth if path else depth + 1
    elif value := re.match(r"[ \t]*(?:- +)*([\w./-]+):\s+[\w./-]*$", last):
        value_of = value[1]
    item = re.match(r"[ \t]*((?:- +)+)", last)
    depth = depth + len(item[1]) if item and flow is None else depth
    for line in reversed(lines[:-1]):
        key = re.match(r"^([ \t]*)((?:- +)*)([\w./-]+):", line)
        if key is None:
            continue
        column = len(key[1]) + len(key[2])
        if column < depth:
            path.insert(0, key[3])
            depth = column
    return path, value_of, _kinds(text, len(lines) - 1)


def _open_flow(line: str) -> str | None:
    """What follows the innermost brace of a line that is open."""
    open_at: list[int] = []
    for place, letter in enumerate(line):
        if letter == "{":
            open_at.append(place)
        elif letter == "}" and open_at:
            open_at.pop()
    return line[open_at[-1] + 1 :] if open_at else None


def _kinds(text: str, number: int) -> tuple[str, str]:
    """The apiVersion and kind written nearest before the line, or behind it in the same document."""
    lines = text.split("\n")
    found = {}
    for key in ("apiVersion", "kind"):
        places = [
            (at, match[1])
            for at, line in enumerate(lines)
            if (match := re.match(rf"[ \t-]*{key}:\s*([\w./]+)", line))
        ]
        before = [value for at, value in places if at <= number]
        found[key] = before[-1] if before else places[0][1] if places else ""
    return found["apiVersion"], found["kind"]


def _fields(path: list[str], kinds: tuple[str, str]) -> dict[str, str]:
    """Fields of the place, with their words: of Kubernetes' types within a manifest, else of the scenario's schema."""
    type_name = tables.types_by_kind().get(kinds)
    if type_name is not None and kinds[1] != KIND:
        inner = path[path.index("objects") + 1 :] if "objects" in path else path
        if path[:1] not in (["nodes"], ["pods"]):
            return _of_type(type_name, inner)
    schema: Any = SCHEMA
    for key in path:
        schema = next((one for one in _within(schema, key)), {})
    found: dict[str, str] = {}
    for one in _objects(schema):
        found |= {name: said.get("description", "") for name, said in one.get("properties", {}).items()}
    return found


def _of_type(type_name: str, path: list[str]) -> dict[str, str]:
    for key in path:
        field = tables.types().get(type_name, {}).get(key)
        if field is None:
            return {}
        type_name = field.item
    words = tables.prose().get(type_name, ("", {}))[1]
    return {name: words.get(name, "") for name in tables.types().get(type_name, {})}


def _objects(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every schema of an object within a schema: itself, what it refers to, its items, its alternatives."""
    if "$ref" in schema:
        yield from _objects(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    if "properties" in schema:
        yield schema
    for one in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if isinstance(one, Mapping):
            yield from _objects(one)


def _within(schema: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    return (one["properties"][key] for one in _objects(schema) if key in one["properties"])


def _values(path: list[str], key: str) -> list[str]:
    if path[:1] == ["nodes"] and key == "type":
        return sorted(one.name for one in shipped_prices().types)
    if key == "kind":
        return sorted({kind for _, kind in tables.types_by_kind()})
    schema: Any = SCHEMA
    for one in (*path, key):
        schema = next(_within(schema, one), {})
    return [str(value) for one in (schema, *_objects(schema)) for value in one.get("enum", ())]


# ---- texts


def scenario_of(text: str) -> Scenario:
    """The scenario of a text; of manifests one in which their pending pods are scheduled.

    Raises
    ------
    ScenarioError
    """
    try:
        posted = read_posted(text)
    except InvalidManifest as error:
        raise ScenarioError([Problem(error.path, error.words, None, error.line, error.column)]) from None
    if len(posted) == 1 and (posted[0].kind in ("", KIND)):
        return load_scenario(text)
    manifests: list[dict[str, Any]] = [one.manifest for one in posted]
    release = {"kubernetesRelease": DEFAULT.name}
    return load_scenario({"apiVersion": API_VERSION, "kind": KIND, "objects": manifests, **release})


def shortened_text(scenario: Scenario) -> str:
    """A scenario as YAML, its nodes and pods in the short form where that says the same."""
    document = scenario_document(scenario)
    objects = document.pop("objects", [])
    found = short.shortened(objects, canonical_manifest)
    bare = {
        key: value
        for key, value in document.items()
        if key not in ("apiVersion", "kind", "kubernetesRelease")
    }
    bare["kubernetesRelease"] = scenario.release.name
    # Pods are tried in the order in which they come: where some are no short ones, all are written as they are.
    whole = {
        "nodes": found.get("nodes", []),
        "objects": [one for one in objects if one.get("kind") != "Node"],
    }
    texts = (
        _yaml(bare | {"objects": parts.get("objects")})
        + "".join(
            f"{key}:\n" + "".join(f"- {_flow(item)}\n" for item in items)
            for key, items in parts.items()
            if items and key in short.FIELDS
        )
        for parts in (found, whole)
    )
    long = _yaml({"apiVersion": API_VERSION, "kind": KIND, **bare, "objects": objects})
    return _that_says(scenario, texts) or long


def _that_says(scenario: Scenario, texts: Iterable[str]) -> str | None:
    digest = scenario_digest(scenario)
    for text in texts:
        try:
            if scenario_digest(scenario_of(text)) == digest:
                return text
        except ScenarioError:
            continue
    return None


def released_text(text: str, release: Release) -> str:
    """A text with another release: in its own line, or in one more.

    Raises
    ------
    ScenarioError
        Of the text, or where the release does not know a gate of it.
    """
    scenario = scenario_of(text)
    scenario = load_scenario(scenario_document(scenario) | {"kubernetesRelease": release.name})
    line = f"kubernetesRelease: '{release.name}'"
    texts = (_RELEASE.sub(line, text, count=1), f"{line}\n{text}")
    return _that_says(scenario, texts) or shortened_text(scenario)


_Key = tuple[str, str, str]
_RELEASE: Final = re.compile(r"^(?:kubernetesRelease|emulates):.*$", re.MULTILINE)
_NODES: Final = re.compile(r"^nodes:[ \t]*\n([ \t]*)-.*\n(?:\1[ \t-].*\n)*", re.MULTILINE)


def applied_texts(
    text: str, scenario: Scenario, world: World, change: Mapping[str, Any]
) -> Iterator[tuple[str, Scenario]]:
    """A text with the change that a fix is (`Fix.change`): where its objects are written, and at the end.

    The first is how one would write it, but what happens before the fix may be otherwise then; the second is how it was
    proved.

    Parameters
    ----------
    scenario
        Of the text.
    world
        At its end, where the fix was found.
    """
    old = {_key(one): world.get(one["kind"], *key_of(one)) for one in change.get("write", ())}
    new = [_bare(one) for one in change.get("write", ()) if old[_key(one)] is None]
    found = load_scenario(_begun_otherwise(scenario_document(scenario), change, old, new))
    if scenario_digest(found) != scenario_digest(scenario):
        yield _that_says(found, _with(text, new)) or shortened_text(found), found
    document = scenario_document(scenario)
    document["steps"] = [
        *(document.get("steps") or [{"run": "idle"}]),
        *_steps(change, world),
        {"run": "idle"},
    ]
    found = load_scenario(document)
    yield shortened_text(found), found


def _begun_otherwise(
    document: dict[str, Any],
    change: Mapping[str, Any],
    old: Mapping[_Key, Stored | None],
    new: list[dict[str, Any]],
) -> dict[str, Any]:
    objects = document.setdefault("objects", [])
    written = {_key(holder[at]): (holder, at) for holder, at in _written(document)}
    for manifest in change.get("write", ()):
        stored = old[_key(manifest)]
        if stored is not None and _key(manifest) in written:
            holder, at = written[_key(manifest)]
            holder[at] = _rewritten(holder[at], without_given(stored.manifest), without_given(manifest))
    for pod, node in change.get("move", ()):
        if place := written.get(_pod(pod)):
            holder, at = place
            holder[at] = merge_patch(holder[at], {"spec": {"nodeName": node}})
    gone = [_pod(pod) for pod in change.get("delete", ())]
    objects = [one for one in objects if _key(one) not in gone]
    # A new node comes behind the others.
    last = max((at for at, one in enumerate(objects) if one["kind"] == "Node"), default=-1)
    return document | {"objects": [*objects[: last + 1], *new, *objects[last + 1 :]]}


def _steps(change: Mapping[str, Any], world: World) -> Iterator[dict[str, Any]]:
    """The steps that a change is, in the order in which a branch makes them."""

    def without(pod: str) -> dict[str, Any]:
        _, namespace, name = _pod(pod)
        return {"delete": {"kind": "Pod", "namespace": namespace, "name": name, "gracePeriodSeconds": 0}}

    for pod, node in change.get("move", ()):
        stored = world.get(*_pod(pod))
        assert stored is not None
        yield without(pod)
        yield {"apply": merge_patch(without_given(stored.manifest), {"spec": {"nodeName": node}})}
    for manifest in change.get("write", ()):
        if manifest["kind"] == "Pod" and world.get("Pod", *key_of(manifest)):
            # What a pod asks for cannot be changed in place.
            yield without("/".join(key_of(manifest)[1:]))
        yield {"apply": _bare(manifest)}
    yield from map(without, change.get("delete", ()))


def _bare(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest as one would write it: the rest of a node's status is what a kubelet would say."""
    found = without_given(manifest)
    if found["kind"] == "Node":
        found["status"] = {"allocatable": found["status"]["allocatable"]}
    return {key: value for key, value in found.items() if value}


def _with(text: str, new: list[dict[str, Any]]) -> Iterator[str]:
    """A text with more objects: in its short list of nodes, or as documents at its end."""
    text = text.rstrip("\n") + "\n"
    nodes = short.shortened(new, canonical_manifest).get("nodes", ())
    yield _NODES.sub(
        lambda found: found[0] + "".join(f"{found[1]}- {_flow(one)}\n" for one in nodes), text, count=1
    )
    yield text + dump_yaml(new)


def _key(manifest: Mapping[str, Any]) -> _Key:
    """Kind, namespace (as where it is left out) and name."""
    meta = manifest["metadata"]
    return manifest["kind"], meta.get("namespace") or "default", meta["name"]


def _pod(key: str) -> _Key:
    namespace, _, name = key.partition("/")
    return "Pod", namespace, name


def _written(document: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Where objects are written: what holds one, and its place there."""
    yield from ((document["objects"], at) for at in range(len(document["objects"])))
    for step in document.get("steps", ()):
        made = step.get("apply", [])
        yield from [(made, at) for at in range(len(made))] if isinstance(made, list) else [(step, "apply")]


def _rewritten(own: Any, old: Any, new: Any) -> Any:
    """What was written, and reads as `old` with what is usual, changed as `old` becomes `new`."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = dict(own or {})
        for key in [key for key in {**old, **new} if old.get(key) != new.get(key)]:
            found[key] = _rewritten(found.get(key), old.get(key), new.get(key))
        return {key: value for key, value in found.items() if value is not None}
    if isinstance(old, list) and isinstance(new, list):
        if len(own or ()) == len(old) == len(new):
            return [_rewritten(*each) for each in zip(own, old, new, strict=True)]
        if all(one in new for one in old):
            return [*(own or ()), *(one for one in new if one not in old)]
    return new


def _yaml(document: Mapping[str, Any]) -> str:
    return dump_yaml([{key: value for key, value in document.items() if value}]).removeprefix("---\n")


def _flow(item: Mapping[str, Any]) -> str:
    plain = {
        name: int(value) if isinstance(value, str) and value.isdigit() else value
        for name, value in item.items()
    }
    return str(yaml.dump(plain, default_flow_style=True, sort_keys=False, width=100_000)).strip()
