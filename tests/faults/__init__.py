"""Workers killed, connections cut, messages lost and doubled, clocks turned back; and nothing lost by it.

``python -m tests.faults --rounds 300 --seed 1`` runs more rounds than the suite does, on what ``--database`` and
``--broker`` name.
"""
