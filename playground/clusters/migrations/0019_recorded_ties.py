"""How many nodes were viable is a column; of cycles recorded before, their sentence is asked this once.

Apart from the columns: PostgreSQL alters no table that has rows changed in the same transaction.
"""

import re
from typing import Any

from django.db import migrations

BATCH = 1000
_TIED = re.compile(r": drawn among (\d+) nodes that tie with ")


def count_ties(apps: Any, schema_editor: Any) -> None:
    cycles = apps.get_model("clusters", "Cycle").objects
    uncounted = cycles.filter(n_viable__isnull=True, n_feasible__gt=1).order_by("pk")
    last = 0
    while rows := list(uncounted.filter(pk__gt=last).values_list("pk", "sentence_then")[:BATCH]):
        last = rows[-1][0]
        changed = [
            cycles.model(pk=pk, n_viable=int(found[1]))
            for pk, sentence in rows
            if (found := _TIED.search(sentence)) is not None
        ]
        cycles.bulk_update(changed, ["n_viable"], batch_size=500)


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0018_records"),
    ]

    operations = [migrations.RunPython(count_ties, migrations.RunPython.noop, elidable=True)]
