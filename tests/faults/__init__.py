"""A whole site with inputs coming all the time, and what can happen to it; nothing may be lost, doubled or misplaced.

``python -m tests.faults --rounds 100 --seed 1 --on embedded|servers`` runs rounds and tells of violations by seed and
round; ``--first N --rounds 1`` with the same seed sees one again. ``python -m tests.faults --mutants`` breaks the code
in each of the ways of `mutants.py`, one after the other, and fails unless each is found.

``start.py``     starts the site's processes: `manage.py play`, or the command lines of the README's team section
``points.py``    in those processes: kills, cuts or stalls one that passes a step it was told of
``site.py``      the harness's door to the site: HTTP, its processes, its broker and database
``people.py``    who writes to the clusters meanwhile
``extender.py``  a real HTTP extender that binds pods, slow, failing, or with its answers lost
``chaos.py``     faults that come at any time
``scenes.py``    faults that need several steps: a lease taken over, two workers at once, a reset during a batch
``replay.py``    the log replayed by itself
``checks.py``    what must hold when all is quiet
``mutants.py``   small breaks of the code, each of which the rounds must find
"""
