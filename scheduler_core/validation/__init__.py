"""What an API server refuses, and in which words: one home for every way an object comes in.

`admission.prepare` is the door; `kinds` says which rules a kind has, `pods` has those of pods and their templates.
"""
