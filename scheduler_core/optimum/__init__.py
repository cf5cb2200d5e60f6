"""The best joint placement: all pods at once, as kube-scheduler never looks at them.

As many pods as possible, higher priorities first, then the highest sum of the scores each would get alone. A placement
counts when every placed pod would pass every filter where it stands, with all the others where they stand. In which
order they could come is not asked: two pods that each want the other beside them may be placed. Solved by HiGHS
(`highspy`, needed for this alone), with a proved bound beside what was found.
"""

from scheduler_core.optimum.problem import JointProblem, joint_problem
from scheduler_core.optimum.result import optimum_document
from scheduler_core.optimum.solver import Solution, Unsolvable, solve

__all__ = ["JointProblem", "Solution", "Unsolvable", "joint_problem", "optimum_document", "solve"]
