"""The front door for text: what YAML means here, and what is refused before it can do harm."""

import time
from typing import Any

import pytest

from scheduler_core.errors import InvalidManifest
from scheduler_core.objects.documents import LineMap, load_documents
from scheduler_core.objects.reading import DocumentWriter, dump_yaml
from tests.tables import table


@pytest.mark.parametrize(
    ("text", "value"),
    table(__file__, "scalars_mean_what_kubernetes_tools_take_them_for"),
)
def test_scalars_mean_what_kubernetes_tools_take_them_for(text: str, value: Any) -> None:
    assert load_documents(f"a: {text}")[0].value == {"a": value}


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        *table(__file__, "what_could_do_harm_is_refused_with_its_line"),
        pytest.param("[" * 200_000, "nested deeper than 64", 1, id="lists"),
        pytest.param('{"a":' * 100_000, "nested deeper than 64", 1, id="objects"),
        pytest.param(f"a: {'1' * 5000}", "cannot be read", 1, id="digits"),
    ],
)
def test_what_could_do_harm_is_refused_with_its_line(text: str, words: str, line: int) -> None:
    with pytest.raises(InvalidManifest) as caught:
        load_documents(text)
    assert words in str(caught.value)
    assert caught.value.line == line


def test_a_key_that_is_there_twice_is_named_by_its_path() -> None:
    with pytest.raises(InvalidManifest) as caught:
        load_documents("ok: 1\n---\nspec:\n  containers:\n  - {a: 1}\n  - b: {c: 1, d: 2, c: 3}\n")
    error = caught.value
    assert (error.document, error.line, error.column) == (1, 6, 21)
    assert (error.path, error.value) == ("spec.containers[1].b.c", "c")


def test_tags_anchors_and_odd_keys_that_do_no_harm_are_read() -> None:
    text = "1: a\non: b\nc: &x !!str 5\nd: !!int '6'\ne: ! x\nf: !!seq [!!map {}]\n? g\n: [[], {h: {}}]\n"
    expected = {"1": "a", "true": "b", "c": "5", "d": 6, "e": "x", "f": [{}], "g": [[], {"h": {}}]}
    assert load_documents(text)[0].value == expected


def test_documents_are_counted_with_the_empty_ones() -> None:
    documents = load_documents("---\n# nothing\n---\na: 1\n---\nb: 2\n")
    assert [(item.index, item.line, item.value) for item in documents] == [(1, 4, {"a": 1}), (2, 6, {"b": 2})]
    assert load_documents("") == []


def test_a_field_path_leads_to_its_line() -> None:
    text = "a: 1\n---\nspec:\n  limits:\n  - nvidia.com/gpu: 1x\n"
    assert LineMap(text).place(1, "spec.limits[0][nvidia.com/gpu]") == (5, 5)
    assert LineMap(text).place(1, "spec.limits[7].cpu") == (4, 3)
    # An entry is a key below the path, or the key of a value.
    labels = LineMap("labels:\n  app: web\n  tier: front\n")
    assert [labels.place(0, "labels", entry) for entry in ("tier", "front", "x")] == [(3, 3), (3, 3), (1, 1)]


def test_a_line_for_every_object_composes_the_text_once() -> None:
    lines = LineMap("items:\n" + "- spec: {a: [1, 2, 3]}\n" * 1000)
    started_s = time.process_time()
    assert [lines.place(0, f"items[{n}].spec") for n in range(1000)] == [(n + 2, 3) for n in range(1000)]
    assert time.process_time() - started_s < 5
    two = LineMap("a: 1\n---\n---\nb:\n  c: 1\n")
    assert [two.place(n, "b.c") for n in (2, 0, 2, 1, 9, 0)] == [(5, 3), (1, 1), (5, 3), None, None, (1, 1)]


def test_what_is_dumped_reads_back_equal() -> None:
    strings = table(__file__, "what_is_dumped_reads_back_equal")
    document = {"a": strings, "b": None, "c": 1.5, "d": {"é": True}}
    assert load_documents(dump_yaml([document]))[0].value == document


@pytest.mark.parametrize(
    "specs",
    [
        [{"a": 1, "nodeName": name} for name in ("n1", "1", "true", "n: 1", "- x", "é", "")],
        [{"nodeName": "n1"}, {"nodeName": "n1", "a": 1}, {}, None, "text", [1], {"a": {"nodeName": "x"}}],
        [{"script": "one\n  two\n\nthree: # no\n", "list": [{"x": ""}, []], "nodeName": "n1"}],
        [{"cpu": value} for value in (1, 1.0, True, "1", "1e3", "0o7", "yes", None, 2**70)],
    ],
)
def test_objects_written_one_by_one_are_what_they_are_written_together(specs: list[Any]) -> None:
    documents = [{"kind": "Pod", "metadata": {"name": f"p{i}"}, "spec": spec} for i, spec in enumerate(specs)]
    documents += [{"status": spec} for spec in specs] + documents
    writer = DocumentWriter()
    writer.most_known = 3
    text = "".join(map(writer.write, documents))
    assert text == dump_yaml(documents)
    assert [item.value for item in load_documents(text)] == documents
