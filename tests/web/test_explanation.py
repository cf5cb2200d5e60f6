"""The pure view models of a cycle page, on recorded decisions of the real scheduler."""

import pytest
from django.template.loader import render_to_string

from playground.web.cycles import preemption, present
from playground.web.cycles.present import emphasise
from playground.web.looks import outcome_of
from scheduler_core.scenario import run_scenario
from scheduler_core.scenario.gallery import gallery_scenario
from tests.tables import table
from tests.web.cases import by_attribute, explanation

view_cycle, view_filter = by_attribute(present.view_cycle), by_attribute(present.view_filter)
view_scores, view_reason_matrix = by_attribute(present.view_scores), by_attribute(present.view_reason_matrix)
view_preemption = by_attribute(preemption.view_preemption)

ALL = table(__file__, "ALL")


@pytest.mark.parametrize("label", ALL)
def test_every_recorded_case_becomes_a_page(label):
    assert view_cycle(explanation(label)).pod


def filtered(verdicts, **more):
    plugins = sorted({verdict["plugin"] for verdict in verdicts.values() if verdict and verdict["plugin"]})
    return {"filter": verdicts, "nodes": list(verdicts), "filterPlugins": plugins, "skippedFilter": []} | more


def test_the_filter_row_stops_where_the_scheduler_stopped():
    given = explanation("scored")
    view = view_filter(given)
    order = [column.plugin for column in view.columns]
    for row in view.rows:
        verdict = given["filter"][row.node]
        if verdict is None:
            assert row.feasible and "fail" not in row.cells and len(row.cells) == len(order)
            assert row.colspan == 1
        else:
            assert row.cells[-1] == "fail" and order[len(row.cells) - 1] == verdict["plugin"]
            assert row.reason == ", ".join(verdict["reasons"])
            assert len(row.cells) + row.colspan == len(order) + 1


def test_the_gates_of_the_funnel_count_down_from_all_nodes_to_those_that_fit():
    given = explanation("unschedulable")
    gates = view_filter(given).parts
    ran = [gate.plugin for gate in gates]
    assert ran == [name for name in given["filterPlugins"] if name in ran]
    assert gates[0].before == len(given["filter"]) and gates[-1].left == 0
    assert all(gate.before - gate.count == gate.left for gate in gates)
    assert [one.before for one in gates[1:]] == [one.left for one in gates[:-1]]
    assert gates[0].words in given["fitError"]


def test_a_gate_says_what_it_says_most_and_the_last_one_is_what_fits():
    reasons = {f"n{i:02}": {"plugin": "NodeResourcesFit", "code": "Unschedulable",
                            "reasons": ["Insufficient gpu"] if i < 7 else ["Insufficient cpu"]}
               for i in range(10)}  # fmt: skip
    view = view_filter(filtered({**reasons, "fits": None}, filterPlugins=["NodeName", "NodeResourcesFit"]))
    gate, fits = view.parts
    assert (gate.count, gate.left, gate.words, gate.n_more) == (10, 1, "Insufficient gpu", 1)
    assert (fits.key, fits.count, view.n_quiet) == ("ok", 1, 1)
    assert [row.part for row in view.rows] == ["ok"] + ["r0"] * 10


def test_a_pressed_part_leaves_only_its_nodes():
    given = explanation("scored")
    whole = view_filter(given)
    part = next(part for part in whole.parts if part.key != "ok")
    view = view_filter(given, part=part.key)
    assert len(view.rows) == part.count and not any(row.feasible for row in view.rows)


def test_an_unknown_part_changes_nothing():
    given = explanation("scored")
    assert view_filter(given, part="r99") == view_filter(given)


def test_a_node_no_plugin_names_is_given_to_prefilter_or_the_extender():
    narrowed = view_filter(explanation("narrowed"))
    assert {row.plugin for row in narrowed.rows if not row.feasible} == {"PreFilter"}
    verdicts = {"n1": None, "n2": {"plugin": None, "code": "Unschedulable", "reasons": ["no license"]}}
    vetoed = view_filter(filtered(verdicts, extenders=[{}]))
    assert vetoed.rows[-1].plugin == "Extender" and vetoed.rows[-1].reason == "no license"


def test_above_thirty_nodes_equal_ones_are_one_group_that_opens_in_pages():
    filter_ = {
        f"n{i:04}": {
            "plugin": "TaintToleration",
            "code": "UnschedulableAndUnresolvable",
            "reasons": ["taint"],
        }
        if i % 2
        else {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]}
        for i in range(1000)
    } | {"fits": None}
    given = filtered(filter_, filterPlugins=["TaintToleration", "NodeResourcesFit"])
    view = view_filter(given)
    assert [(g.plugin, g.count, g.feasible) for g in view.groups] == [
        ("", 1, True),
        ("TaintToleration", 500, False),
        ("NodeResourcesFit", 500, False),
    ]
    assert view.rows == []
    second = view_filter(given, part=view.groups[1].part, page=2)
    assert second.n_pages == 10 and len(second.rows) == 50 and second.rows[0].node == "n0101"


def test_equal_nodes_share_pool_plugin_and_reason_and_the_nearest_is_named():
    full = {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]}
    given = filtered(
        {f"n{i:02}": full for i in range(31)},
        amounts={"NodeResourcesFit": {"n03": ["cpu: 1 short"], "n02": ["cpu: 2 short"]}},
    )
    pools = {f"n{i:02}": "general" if i % 2 else "batch" for i in range(31)}
    view = view_filter(given, pools=pools)
    assert [(g.pool, g.count, g.nearest, g.amounts) for g in view.groups] == [
        ("batch", 16, "n02", "cpu: 2 short"),
        ("general", 15, "n03", "cpu: 1 short"),
    ]
    opened = view_filter(given, pools=pools, part=view.groups[1].part)
    assert {pools[row.node] for row in opened.rows} == {"general"} and len(opened.rows) == 15
    one_each = view_filter(given, pools={node: node for node in pools})
    assert [(g.pool, g.count) for g in one_each.groups] == [("", 31)]
    few = filtered({f"n{i:02}": full for i in range(12)})
    assert len(view_filter(few, pools=pools).rows) == 12 and view_filter(few).groups == []


def test_equal_rows_of_the_reason_matrix_are_one():
    full = {"plugin": "A", "code": "Unschedulable", "reasons": ["a"]}
    names = [f"n{i:02}" for i in range(40)]
    given = filtered(dict.fromkeys(names, full), filterPlugins=["A", "B"])
    given["filterByPlugin"] = {
        "A": {"fails": dict.fromkeys(names, full)},
        "B": {"fails": {"n07": {"code": "Unschedulable", "reasons": ["b"]}}},
    }
    matrix = view_reason_matrix(given)
    assert [(row.node, row.count) for row in matrix.rows] == [("n00", 39), ("n07", 1)]
    assert (matrix.n_would_also_fail, matrix.n_hidden) == (1, 0)


def test_the_margin_is_the_sum_of_the_plugins_differences():
    view = view_scores(explanation("scored"))
    assert view.margin == sum(difference.points for difference in view.differences)
    assert view.rows[0].chosen and view.rows[0].rank == 1
    assert view.decided == view.differences[0]
    assert [sum(part.points for part in row.segments) for row in view.pair] == [
        row.total for row in view.pair
    ]
    assert [row.node for row in view.pair] == [view.winner, view.runner_up]


def test_what_plugins_did_not_give_came_from_extenders():
    view = view_scores({"total": {"a": 350, "b": 300}, "scores": {"NodeAffinity": {"a": 100, "b": 100}},
                        "scorePlugins": ["NodeAffinity"], "skippedScore": [], "weights": {"NodeAffinity": 3},
                        "nodes": ["a", "b"], "node": "a"})  # fmt: skip
    assert view.plugins[-1].name == "extenders"
    assert [row.cells[-1].points for row in view.rows] == [50, 0]


def test_a_large_score_table_shows_the_best_and_the_chosen_node():
    total = {f"n{i:03}": 1000 - i for i in range(600)}
    view = view_scores({"total": total, "scores": {}, "scorePlugins": [], "skippedScore": [], "weights": {},
                        "nodes": list(total), "node": "n599"})  # fmt: skip
    assert view.is_cut and [row.node for row in view.rows] == ["n599", "n000", "n001", "n002"]
    assert (view.rows[-1].n_more, view.rows[-1].lowest) == (596, 402)


def test_a_large_score_table_has_the_best_of_each_other_pool():
    total = {f"n{i:03}": 1000 - i for i in range(60)}
    pools = {node: "small" if int(node[1:]) % 2 else "large" for node in total}
    given = {"total": total, "scores": {}, "scorePlugins": [], "skippedScore": [], "weights": {},
             "nodes": list(total), "node": "n000"}  # fmt: skip
    view = by_attribute(present.view_scores)(given, pools=pools)
    assert [row.node for row in view.rows] == ["n000", "n002", "n004", "n006", "n001"]
    assert [row.n_more for row in view.rows] == [0, 0, 0, 26, 29]
    assert view.runner_up == "n001"


def test_a_single_feasible_node_is_not_scored():
    view = view_cycle(explanation("single"))
    assert view.scores is None and view.single_node


def test_a_prefilter_rejection_has_no_matrix_but_its_reason():
    view = view_cycle(explanation("prefilter"))
    assert view.filter is None and view.pre_filter and view.pre_filter_plugin


def test_criteria_show_where_each_candidate_fell_out():
    view = view_preemption(explanation("reprieved"))
    assert [(c.node, c.result) for c in view.candidates] == [
        ("n3", "chosen"),
        ("n1", "out at 5"),
        ("n2", "out at 1"),
    ]
    assert [cell.state for cell in view.candidates[1].criteria] == ["keep"] * 4 + ["kill", "gone"]
    assert [cell.state for cell in view.candidates[2].criteria] == ["kill"] + ["gone"] * 5
    rungs = [(rung.before, rung.after, len(rung.kept), len(rung.out)) for rung in view.criteria]
    assert rungs == [(3, 2, 2, 1), (2, 2, 2, 0), (2, 2, 2, 0), (2, 2, 2, 0), (2, 1, 1, 1), (1, None, 0, 0)]
    assert [rung.decided for rung in view.criteria].index(True) == 4
    # What was compared has 2^31 in it for each victim; people are shown the plain sum, 3 + 0.
    total = view.candidates[0].criteria[2]
    assert (total.value, total.exact) == ("3", str(3 + 2 * 2**31))


def test_reprieve_steps_say_what_was_given_back_and_what_a_budget_covers():
    view = view_preemption(explanation("reprieved"))
    assert [(step.pod.name, step.kept) for step in view.chosen.steps] == [
        ("low-3-1", True),
        ("low-3-2", False),
        ("low-3-0", False),
    ]
    covered = view.candidates[2]
    assert covered.n_kept == 1 and all(step.pod.violates_pdb for step in covered.steps)
    assert [victim.violates_pdb for victim in covered.victims] == [True, True]


def test_room_before_and_after_adds_up():
    view = view_preemption(explanation("reprieved"))
    cpu = view.room[0]
    assert (cpu.before, cpu.freed, cpu.needed, cpu.after) == (3000, 2000, 3000, 4000)
    assert cpu.stays + cpu.goes == 75 and cpu.comes == 75


def test_why_other_nodes_are_no_candidates_is_grouped_by_reason():
    groups = [
        {"code": None, "plugin": None, "reasons": ["not helpful"], "count": 1, "nodes": ["a"]},
        {"code": "Unschedulable", "plugin": "DefaultPreemption", "reasons": ["No victims"], "count": 30,
         "nodes": [f"n{i}" for i in range(30)]},
    ]  # fmt: skip
    view = view_preemption({"preemption": {"eligible": True, "notCandidates": groups}})
    assert [(group.reason, group.count, len(group.nodes)) for group in view.helpless] == [
        ("No victims", 30, 3),
        ("not helpful", 1, 1),
    ]


def test_the_reason_matrix_marks_the_stop_and_what_would_also_fail():
    given = table(__file__, "the_reason_matrix_marks_the_stop_and_what_would_also_fail")
    matrix = view_reason_matrix(given)
    assert [cell.amounts for cell in matrix.rows[0].cells] == ["", "b: wants 2; b: 1 free", ""]
    assert [cell.state for cell in matrix.rows[0].cells] == ["stop", "also", "pass"]
    assert [row.node for row in matrix.rows] == ["n1"]


def test_names_are_set_apart_in_the_sentence_without_touching_longer_names():
    parts = emphasise("default/web-1 bound to node-1, not node-10.", ("default/web-1", "node-1"))
    assert [text for text, is_name in parts if is_name] == ["default/web-1", "node-1"]


def test_a_failed_point_of_an_error_blames_no_plugin():
    given = {"outcome": "error", "points": [{"point": "Filter", "state": "failed", "detail": "timeout"}]}
    assert view_cycle(given).pipeline[0].css == "st-err"


def test_an_unknown_outcome_is_shown_as_it_is():
    assert outcome_of("exploded").key == "exploded"


def test_a_node_left_out_by_prefilter_ran_through_no_filter():
    view = view_filter(explanation("narrowed"))
    out = next(row for row in view.rows if not row.feasible)
    assert out.cells == () and out.colspan == len(view.columns) + 1


def test_a_headline_does_not_repeat_the_whole_message():
    given = {"pod": "a/b", "headline": "a/b fits no node", "message": "0/3 nodes."}
    view = view_cycle(given)
    assert "".join(text for text, _ in view.sentence) == "a/b fits no node." and view.message == "0/3 nodes."


@pytest.mark.parametrize(
    "module",
    [
        "bodies",
        "clusters.structural",
        "engine.admission",
        "engine.releases",
        "kube_api.cells",
        "web.amounts",
        "web.cycles.present",
        "web.problems",
        "web.site",
        "web.templatetags.playground",
    ],
)
def test_the_examples_in_docstrings_are_true(module):
    import doctest
    import importlib

    assert doctest.testmod(importlib.import_module(f"playground.{module}")).failed == 0


def test_a_node_that_fails_in_only_one_pass_names_the_pass_and_the_plugin():
    run = run_scenario(gallery_scenario("filtering-twice"), full_traces=True)
    both = run.cycles[1].explain()
    view = view_cycle(both)
    assert [(row.node, row.verdict, row.one_only) for row in view.passes.rows] == [
        ("node-a", "fails in both: NodeResourcesFit with them, InterPodAffinity without", False)
    ]
    (node,) = both["nominatedPasses"]["nodes"]
    one = both | {"nominatedPasses": {"count": 1, "nodes": [node | {"with": None, "failsIn": "without"}]}}
    view = view_cycle(one)
    assert [(row.verdict, row.one_only) for row in view.passes.rows] == [
        ("fails only without them: InterPodAffinity", True)
    ]
    assert view.passes.rows[0].without.reason == "node(s) didn't match pod affinity rules"
    html = render_to_string("cycles/passes.html", {"view": view})
    assert (
        "fails only without them: InterPodAffinity" in html
        and "nominated pods of equal or higher priority" in html
    )
    assert view_cycle(run.cycles[0].explain()).passes is None
