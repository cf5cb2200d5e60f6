"""A scenario as one line: it says the same on the other side, and a line that was cut or changed is refused."""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable

import pytest

from scheduler_core.scenario import load_scenario, scenario_digest
from scheduler_core.scenario.canonical import canonical_bytes
from scheduler_core.scenario.carried import CarriedError, carried_in, carry, check_words, unfold
from scheduler_core.scenario.gallery import ORDER, gallery_scenario
from tests.scheduler_core.scenario.builders import make_node, make_pod, make_scenario

SMALL = make_scenario(
    make_node("a"), make_pod("p"), make_pod("p2", hostAliases=[{"ip": "::1", "hostnames": ["ünï"]}])
)


@pytest.mark.parametrize("name", ORDER)
def test_a_carried_scenario_says_and_decides_the_same(name: str) -> None:
    scenario = gallery_scenario(name)
    carried = unfold(carry(scenario, note="see\n</script>", opens_at=3))
    again = load_scenario(carried.text)
    assert again == scenario
    assert scenario_digest(again) == scenario_digest(load_scenario(carried.canonical)) == carried.digest
    assert (carried.note, carried.opens_at) == ("see\n</script>", 3)
    assert carry(scenario, note="see\n</script>", opens_at=3) == carry(
        again, note="see\n</script>", opens_at=3
    )


def packed(*lines: bytes, digest: str = "") -> str:
    payload = base64.urlsafe_b64encode(zlib.compress(b"\n".join(lines))).decode().rstrip("=")
    return f"1.{digest or hashlib.sha256(lines[0]).hexdigest()}.{payload}"


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda line: "", "no carried scenario, or not all of it"),
        (lambda line: "elsewhere", 'it begins with "elsewhere"'),
        (lambda line: line[:60], "no carried scenario, or not all of it"),
        (lambda line: line[:-40], "cut or changed"),
        (lambda line: line + "A" * 40, "cut or changed"),
        (lambda line: line[:120] + ("A" if line[120] != "A" else "B") + line[121:], "cut or changed|it was changed"),
        (lambda line: "2" + line[1:], "version 2 of the form, and version 1 is read here"),
        (lambda line: line[:2] + "0" * 64 + line[66:], f"its digest is {'0' * 64}, and it is"),
        (lambda line: packed(b"{}"), "does not hold a scenario and its words"),
        (lambda line: packed(b"{}", b"[]"), "words beside the scenario"),
        (lambda line: packed(b"{}", b"{"), "words beside the scenario"),
        (lambda line: packed(b"{}", b'{"document": [], "note": ""}'), "words beside the scenario"),
        (lambda line: packed(b"{}", b'{"document": {}, "opensAt": true}'), "words beside the scenario"),
        (lambda line: packed(b"{}", b"[" * 100_000), "words beside the scenario"),
        (lambda line: packed(b" " * 40_000_000, b"{}"), "more than 33,554,432 bytes"),
    ],
)  # fmt: skip
def test_a_line_that_was_cut_or_changed_or_is_foreign_is_refused_by_its_cause(
    change: Callable[[str], str], said: str
) -> None:
    with pytest.raises(CarriedError, match=said):
        unfold(change(carry(SMALL)))


def test_words_of_another_scenario_are_refused() -> None:
    other = make_scenario(make_node("a"), make_pod("q"))
    words = json.dumps({"document": unfold(carry(other)).document}).encode()
    carried = unfold(packed(canonical_bytes(SMALL), words))
    with pytest.raises(CarriedError, match=r"has the digest .* as it says: it was changed"):
        check_words(carried, scenario_digest(load_scenario(carried.text)))


def test_a_link_is_told_from_a_document() -> None:
    line = carry(SMALL)
    found = carried_in(f" https://playground.example/open/#{line}\n".encode())
    assert found is not None and found.digest == scenario_digest(SMALL)
    assert carried_in(b"apiVersion: scheduling.playground/v1\nkind: Scenario\n") is None
    assert carried_in(b"https://playground.example/elsewhere/") is None
    with pytest.raises(CarriedError):
        carried_in(b"https://playground.example/open/#top")
