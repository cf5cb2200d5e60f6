"""Expressions without the compiled library, as in a browser: the same values and the same words as with it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_core.expressions import expression
from scheduler_core.expressions.expression import Expression, ExpressionLimits
from scheduler_core.expressions.syntax import ExpressionError

LIMITS = ExpressionLimits(length=200)
DEVICE = {
    "driver": "gpu.x",
    "attributes": {
        "gpu.x": {"model": "a", "gen": 3, "fast": True, "list": [1, 2, "x"], "share": 1.5, "nothing": None}
    },
    "capacity": {"gpu.x": {"memory": {"quantity": "16Gi"}}},
}
TEXTS = r"""
false && (1/0 > 0)
(1/0 > 0) && false
(1/0 > 0) && true
device.nope || true
device.nope || false
"a" || true
true && "a"
!"a"
-"a"
(!(!true))
- - 5
--5
1 == 1.0
1 == true
1 != "a"
1 < "a"
"a" < "b"
1 < 1.5
[1] < [2]
1 + 1.5
"a" + "b"
[1] + [2]
9223372036854775807 + 1
-9223372036854775808 - 1
-7 / 2
-7 % 3
1 / 0
1 % 0
1.0 / 0.0
-1.0 / 0.0
0x10 + (1)
device.attributes["zz"]
device.attributes["gpu.x"].nothing == null
device.driver.zz
device.attributes["gpu.x"].list[2]
device.attributes["gpu.x"].list[9]
device.attributes["gpu.x"].list["a"]
{"a": 1}["b"]
{1: 2}[1]
1 in [1, 2]
1.0 in [1]
true in [1]
"a" in {"a": 1}
"a" in "abc"
size("äb")
{"a": 1}.size()
size(1)
"abc".contains(1)
"abc".startsWith("a") && "abc".endsWith("c")
"abc".matches("^[ab]{2}c$")
string(1.0)
string(true)
int("a")
int(-1.9)
int(1e30)
double("x")
has(device.nope)
has(device.nope.x)
device.?driver.orValue("z")
(device.?nope).orValue("z")
device.?nope.value()
device.?nope.?x.orValue(1)
device.?attributes["gpu.x"].orValue({}) == device.attributes["gpu.x"]
device[?"driver"].hasValue()
optional.none().or(optional.of(2)).value()
optional.ofNonZeroValue("").hasValue()
[1, "a"].exists(x, x > 0)
["a", 1].exists(x, x > 0)
[1, 2, 3].all(x, x > 1)
[1, 2, 3].exists_one(x, x > 2)
[1, 2, 3].map(x, x > 1, x * 2)
{"a": 1}.filter(k, k == "a")
"abc".all(x, true)
[1].filter(x, 5)
cel.bind(d, 5, d + 1)
1 ? 1 : 2
nope
nope()
quantity("x")
quantity("1Gi").compareTo(1)
device.capacity["gpu.x"].memory.compareTo(quantity("10Gi")) > 0
quantity("1Gi").add(quantity("1Gi"))
semver("1.2.3-a").isLessThan(semver("1.2.3"))
""".strip().splitlines()


def outcome(text: str) -> Any:
    try:
        return Expression(text, LIMITS).run({"device": DEVICE})
    except ExpressionError as error:
        return f"failed: {error}"


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_is_the_same_without_the_library(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = outcome(text)
    monkeypatch.setattr(expression, "_library", lambda: None)
    plain = outcome(text)
    assert (plain, type(plain)) == (told, type(told))


@pytest.mark.parametrize("text", ["5u > 1u", 'duration("1s") == duration("1s")', 'b"a" == b"a"'])
def test_what_only_the_library_has_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(text) is True
    monkeypatch.setattr(expression, "_library", lambda: None)
    assert "compiled library" in outcome(text) and "line 1, column 1" in outcome(text)
