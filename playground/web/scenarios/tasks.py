"""Tasks to solve: a cluster in an editor, and what an answer is worth. The answer is in the address, to hand it in."""

from __future__ import annotations

import hashlib
from typing import Final

from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from playground.engine.scenarios import Graded, RunStopped, ScenarioError, asked
from playground.scenarios.services.errands import through_a_worker
from playground.web.looks import View
from playground.web.requests import site_user
from scheduler_core.scenario.tasks import packed, tasks, unpacked

KEPT_S: Final = 3600
"""How long a grade is kept: the same answer is not run again."""


def every_task(request: HttpRequest) -> HttpResponse:
    """The list of tasks."""
    return render(request, "scenarios/tasks.html", {"tasks": tasks().values()})


def task(request: HttpRequest, name: str) -> HttpResponse:
    """One task; with ``?a=`` an answer and its grade. POST makes the address of an answer."""
    found = tasks().get(name)
    if found is None:
        raise Http404(f'There is no task "{name}".')
    if request.method == "POST":
        text = request.POST.get("answer", "").replace("\r\n", "\n")
        return redirect(f"{reverse('scenarios:task', args=[name])}?a={packed(text)}#grade")
    names = list(tasks())
    place = names.index(name)
    context: View = {
        "task": found,
        "number": place + 1,
        "n_tasks": len(names),
        "next": names[place + 1] if place + 1 < len(names) else "",
        "text": found.text,
        "link": request.build_absolute_uri(),
    }
    if "a" in request.GET:
        try:
            text = context["text"] = unpacked(request.GET["a"])
            context["grade"] = _graded(request, name, text)
        except ScenarioError as error:
            context["problems"] = error.problems
        except RunStopped as error:
            context["stopped"] = str(error)
        except ValueError as error:
            raise Http404(str(error)) from None
    return render(request, "scenarios/task.html", context)


def _graded(request: HttpRequest, name: str, text: str) -> Graded:
    key = f"task:{name}:{hashlib.sha256(text.encode()).hexdigest()}"
    found: Graded | None = cache.get(key)
    if found is None:
        found = asked("grade", text, Graded, ask=through_a_worker(owner=site_user(request)), task=name)
        cache.set(key, found, KEPT_S)
    return found
