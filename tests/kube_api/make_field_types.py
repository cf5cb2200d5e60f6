"""Write `playground/kube_api/data/field_types.json`: fields and types of the kinds held here, from a Python client.

    pip download --no-deps kubernetes==36.0.3 && unzip kubernetes-36.0.3-*.whl -d client
    python -m tests.kube_api.make_field_types client/kubernetes/client/models

The client of major version N speaks of Kubernetes 1.N. Only names, types and what is required are taken, no prose.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from playground.clusters.kinds import KINDS

TARGET: Final = Path(__file__).parents[2] / "playground/kube_api/data/field_types.json"
PLAIN: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "datetime": "string"}
CLASSES: Final = {"Event": "CoreV1Event", "ResourceClaim": "ResourceV1ResourceClaim"}
NAMES: Final = {"CoreV1ResourceClaim": "ContainerResourceClaim"}
"""Types whose own name is another's, too: a container's claims beside the objects."""
VERSIONED: Final = r"(Core|Events|Resource|Storage)?V1(alpha2)?(?=[A-Z])"
META: Final = (
    "ObjectMeta",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ManagedFieldsEntry",
    "OwnerReference",
)


def plain(name: str) -> str:
    """``V1PodSpec`` and ``CoreV1Event`` without their version."""
    return NAMES.get(name) or re.sub(f"^{VERSIONED}", "", name)


def type_of(text: str) -> str:
    """``list[V1Container]`` as ``[]Container``."""
    if match := re.fullmatch(r"list\[(.*)\]", text):
        return "[]" + type_of(match[1])
    if match := re.fullmatch(r"dict[\[(]str, (.*)[\])]", text):
        return "{}" + type_of(match[1])
    return PLAIN.get(text, text if text == "object" else plain(text))


def table(source: str, name: str) -> dict[str, str]:
    """A dict that is written out in a class."""
    match = re.search(rf"^    {name} = (\{{.*?\}})$", source, re.MULTILINE | re.DOTALL)
    assert match, name
    found: dict[str, str] = ast.literal_eval(match[1])
    return found


def main(folder: Path) -> None:
    sources = {}
    for path in sorted(folder.glob("*.py")):
        source = path.read_text()
        if match := re.search(r"^class (\w+)\(", source, re.MULTILINE):
            sources[match[1]] = source
    types: dict[str, dict[str, Any]] = {}

    def add(class_name: str, group: str) -> None:
        name = plain(class_name)
        if name in types:
            return
        source = sources[class_name]
        json_names = table(source, "attribute_map")
        # What may be left out is only set where it is given.
        required = set(json_names) - set(re.findall(r"^        if (\w+) is not None:$", source, re.MULTILINE))
        fields: dict[str, str] = {}
        types[name] = {"group": "meta" if name in META else group, "fields": fields}
        if "alpha" in class_name:
            types[name] = {"group": group, "version": "v1alpha2", "fields": fields}
        for attribute, text in table(source, "openapi_types").items():
            mark = "!" if attribute in required else ""
            fields[json_names[attribute]] = type_of(text) + mark
            for inner in re.findall(r"\w*V1\w+", text):
                add(inner, group)

    # What core reaches is core's, whoever else uses it.
    for kind in sorted(KINDS, key=lambda kind: bool(kind.group)):
        class_name = CLASSES.get(kind.kind, f"{kind.version.capitalize()}{kind.kind}")
        add(class_name, kind.group.removesuffix(".k8s.io") or "core")
    lines = [f"{json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types)]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
