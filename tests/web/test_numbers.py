"""Every number on a cycle's page is the API's: both are read for the same cycles and compared cell by cell."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest
from django.urls import reverse

from playground.clusters import wake
from playground.clusters.models import Cycle
from playground.clusters.objects.apply import apply_documents
from playground.web.cycles.preemption import CRITERIA
from scheduler_core.framework.record import of_one
from tests.clusters.builders import run
from tests.web import factories

pytestmark = pytest.mark.django_db


class Tables(HTMLParser):
    """The rows of each table, keyed by the id of the section it stands in: cells as plain text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self._section = ""
        self._cell: list[str] | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("section", "details") and given.get("id"):
            self._section = given["id"]
        if tag == "tr":
            self.rows.setdefault(self._section, []).append([])
        if tag in ("td", "th"):
            self._cell = []
        if tag == "small" and self._cell is not None:
            self._cell.append(" ")
        if self._cell is not None and given.get("aria-label") and tag == "svg":
            self._cell.append(f"[{given['aria-label']}]")

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self._cell is not None and self._section in self.rows:
            self.rows[self._section][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None
        if tag in ("br", "span", "b", "small") and self._cell is not None:
            self._cell.append(" ")

    def handle_data(self, data):
        if self._cell is not None:
            self._cell.append(data)


@pytest.fixture
def cluster(db, monkeypatch):
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    cluster = factories.make_cluster()
    apply_documents(
        cluster=cluster,
        objects=[
            *(factories.pod(f"new-{i}", cpu="500m") for i in range(4)),
            factories.pod("vip", cpu="7", class_="business-critical"),
            factories.pod("giant", cpu="600"),
        ],
    )
    run(cluster)
    return cluster


def both(client, cluster, number):
    page = client.get(reverse("web:cycle", args=[cluster.public_id, number]))
    api = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{number}/")
    assert page.status_code == api.status_code == 200
    return page.content.decode(), json.loads(api.content)


def numbers_of(cluster, outcome):
    return list(Cycle.objects.filter(cluster=cluster, outcome=outcome).values_list("number", flat=True))


def test_scores_are_the_apis_cell_by_cell(client, cluster):
    compared = 0
    for number in numbers_of(cluster, "bound"):
        html, told = both(client, cluster, number)
        if not told["total"]:
            continue
        head, *rows = Tables(html).rows["score"]
        plugins = told["scorePlugins"]
        assert len(head) == 2 + len(plugins)
        for row in rows:
            node = row[0].split(" ", 1)[1]
            assert int(row[1].split()[0].replace(",", "")) == told["total"][node]
            for plugin, cell in zip(plugins, row[2:], strict=True):
                if plugin in told["skippedScore"]:
                    assert cell == "[skipped]"
                    continue
                points, raw, normalised, weight = map(
                    int, re.fullmatch(r"(\d+) (\S+) → (\d+) × (\d+)", cell.replace(",", "")).groups()
                )
                assert raw == told["rawScores"][plugin][node]
                assert normalised == told["scores"][plugin][node]
                assert weight == told["weights"][plugin] and points == normalised * weight
                compared += 1
        assert len(rows) == len(told["total"])
    assert compared > 50


def test_filter_rows_are_the_apis_node_by_node(client, cluster):
    seen = 0
    for number in Cycle.objects.filter(cluster=cluster).values_list("number", flat=True):
        html, told = both(client, cluster, number)
        if not told["filter"]:
            continue
        _, *rows = Tables(html).rows["filter"]
        stated = {}
        for row in rows:
            node = next(name for name in told["nodes"] if row[0].split(" ")[0] == name)
            stated[node] = row[-1]
        assert set(stated) == set(told["filter"])
        for node, verdict in told["filter"].items():
            if verdict is None:
                assert "feasible" in stated[node]
            else:
                assert stated[node].startswith(
                    f"{verdict['plugin']} {', '.join(map(of_one, verdict['reasons']))}"
                )
            seen += 1
    assert seen > 50


def test_points_sentence_and_figures_are_the_apis(client, cluster):
    for number in Cycle.objects.filter(cluster=cluster).values_list("number", flat=True):
        html, told = both(client, cluster, number)
        text = " ".join(re.sub(r"<[^>]+>", "", html).split())
        strip = re.search(r'<ol class="pipe">(.*?)</ol>', html, re.S).group(1).replace("<wbr>", "")
        states = re.findall(r"</svg>(\w+)</span><small>(.*?)</small>", strip)
        assert states == [(p["point"], p["detail"] or p["state"]) for p in told["points"]]
        assert f"{told['nNodes']} possible, {told['nFeasible']} feasible, {told['nViable']} viable" in text
        assert told["digest"] in html


def test_preemption_is_the_apis_candidate_by_candidate(client, cluster):
    compared = 0
    for number in numbers_of(cluster, "preempting"):
        html, told = both(client, cluster, number)
        rows = [row for row in Tables(html).rows["preempt"] if row[0] != "Candidate"]
        candidates = {c["node"]: c for c in told["preemption"]["candidates"]}
        assert {row[0] for row in rows} == set(candidates)
        for row in rows:
            candidate = candidates[row[0]]
            for victim in candidate["victims"]:
                assert victim.rpartition("/")[2] in row[1]
            if told["preemption"]["criteria"]:
                for key, cell in zip(CRITERIA, row[2:], strict=False):
                    value = candidate["criterionValues"].get(key)
                    if key == "lowestPrioritySum" and value is not None:
                        value -= 2**31 * len(candidate["victims"])
                    shown = cell.removeprefix("[eliminated] ")
                    if key not in candidate["criterionValues"]:
                        assert shown == "[not compared]"
                    else:
                        assert shown == ("not started" if value is None else str(value))
            compared += 1
    assert compared


def plain(html):
    """Words of a page: tags gone, entities read."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def number(words):
    return int(words.replace(",", "").replace("−", "-").replace("+", ""))


def test_ranks_margins_and_differences_are_the_apis(client, cluster):
    beaten = tied = 0
    for cycle in numbers_of(cluster, "bound"):
        html, told = both(client, cluster, cycle)
        if not told["total"]:
            continue
        total = told["total"]
        best = max(total.values())
        _, *rows = Tables(html).rows["score"]
        for row in rows:
            place, node = re.fullmatch(r"(\d+)[.=] (\S+)", row[0]).groups()
            assert int(place) == 1 + sum(other > total[node] for other in total.values())
            word = row[1].split()[1]
            if node == told["node"]:
                assert word == ("drawn" if list(total.values()).count(best) > 1 else "chosen")
            else:
                assert number(word) == total[node] - best if total[node] < best else word == "tie"
        tied += "The draw:" in plain(html)
        pair = re.findall(r'aria-label="(\S+): (\d+) points of', html)
        if not pair:
            continue
        (winner, points), (second, behind) = pair
        assert (winner, int(points)) == (told["node"], best)
        assert total[second] == int(behind) == max((n for n in total.values() if n < best), default=best)
        given = dict(re.findall(r"(\w+) ([+−][\d,]+)", plain(html[html.index('class="legend"') :])))
        computed = {
            plugin: told["weights"][plugin] * (scores[winner] - scores[second])
            for plugin, scores in told["scores"].items()
        }
        assert {plugin: number(given[plugin]) for plugin in computed if plugin in given} == {
            plugin: points for plugin, points in computed.items() if points
        }
        beaten += 1
    assert beaten and tied


def test_victims_survivors_room_and_reprieves_are_the_apis(client, cluster):
    for cycle in numbers_of(cluster, "preempting"):
        html, told = both(client, cluster, cycle)
        preemption = told["preemption"]
        _, *rows = Tables(html).rows["preempt"]
        chosen = next(c for c in preemption["candidates"] if c["node"] == preemption["nominatedNode"])
        assert chosen["victims"] == told["victims"] == preemption["victims"]
        row = next(row for row in rows if row[0] == chosen["node"])
        assert re.findall(r"(\S+) \d+", row[1]) == [victim.rpartition("/")[2] for victim in told["victims"]]
        survivors = re.findall(r'class="big">[\d,]+ → ([\d,]+)<', html)
        # A tie on every criterion is one more column: any of those left.
        left = [criterion["left"] for criterion in preemption["criteria"]] + (
            [1] if preemption["nTied"] else []
        )
        assert [number(words) for words in survivors] == left
        text = plain(html)
        assert f"{preemption['nCandidates']} candidate" in text
        room = chosen["room"]["pods"]
        assert f"{room['before']} of {room['allocatable']}" in text
        assert (
            f"{chosen['room']['cpu']['before'] / 1000:g} of {chosen['room']['cpu']['allocatable'] / 1000:g}"
            in text
        )
        for candidate in preemption["candidates"]:
            steps = candidate["steps"]
            assert f"removed {len(steps)}, {sum(step['kept'] for step in steps) or 'none'} could stay" in text


def test_amounts_behind_a_rejection_are_the_apis_word_by_word(client, cluster):
    number = Cycle.objects.filter(cluster=cluster, pod_name="giant").earliest("number").number
    page = client.get(reverse("web:cycle", args=[cluster.public_id, number])).content.decode()
    full = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{number}/", {"full": "1"}).json()
    amounts = full["amounts"]["NodeResourcesFit"]
    assert sorted(amounts) == sorted(full["filterByPlugin"]["NodeResourcesFit"]["fails"])
    assert all(said[0].startswith("cpu: wants 600, ") for said in amounts.values())
    tables = Tables(page).rows
    stopped = [node for node in amounts if full["filter"][node]["plugin"] == "NodeResourcesFit"]
    assert len(stopped) > 5
    for section, nodes in (("filter", stopped), ("reasons", amounts)):
        rows = {row[0].split()[0]: " ".join(row) for row in tables[section][1:]}
        for node in nodes:
            assert all(text in rows[node] for text in amounts[node]), (section, node)
    story = client.get(reverse("web:pod", args=[cluster.public_id, "default", "giant"])).content.decode()
    last = Cycle.objects.filter(cluster=cluster, pod_name="giant").latest("number").number
    newest = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{last}/", {"full": "1"}).json()[
        "amounts"
    ]
    rows = {row[0]: row[-1] for row in Tables(story).rows["why-not"][1:]}
    assert all(newest["NodeResourcesFit"][node][0] in rows[node] for node in stopped)
    bare = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{number}/").json()
    assert "amounts" not in bare


def test_each_group_of_a_large_cluster_tells_the_nearest_node_with_the_apis_amounts(client, db, monkeypatch):
    monkeypatch.setattr(wake, "send", lambda *_, **__: True)
    cluster = factories.make_cluster(n_nodes=240)
    apply_documents(cluster=cluster, objects=[factories.pod("giant", cpu="7500m", memory="1Gi")])
    run(cluster)
    cycle = Cycle.objects.filter(cluster=cluster, pod_name="giant").earliest("number").number
    html, _ = both(client, cluster, cycle)
    full = client.get(f"/api/v1/clusters/{cluster.public_id}/cycles/{cycle}/", {"full": "1"}).json()
    groups = {}
    for node, verdict in full["filter"].items():
        if verdict is not None:
            key = (verdict["plugin"], ", ".join(verdict["reasons"]))
            groups.setdefault(key, []).append(node)
    _, *rows = (row for row in Tables(html).rows["filter"] if row[-1] != "Outcome")
    assert len(rows) == len(groups) > 2
    shortfalls = 0
    for plugin, count, words, *_ in rows:
        nodes = next(found for key, found in groups.items() if key[0] == plugin and words.startswith(key[1]))
        assert number(count) == len(nodes)
        told = full["amounts"].get(plugin, {})
        if plugin in ("TaintToleration", "NodeResourcesFit"):
            nearest = next(node for node in nodes if f" {node}: " in words)
            assert words.endswith(f"{nearest}: {'; '.join(told[nearest])}")
        if plugin == "NodeResourcesFit":
            short = {node: float(re.search(r"([\d.]+) short$", told[node][0])[1]) for node in nodes}
            assert short[nearest] == min(short.values()) < max(short.values())
            shortfalls += 1
    assert shortfalls
