"""The JSON Schema of what each verb prints with `--json`."""

from typing import Any

from mistakebound.commands import json_forms as forms
from mistakebound.core.comparison.comparison import Comparison
from mistakebound.core.replay.recording import Line
from mistakebound.core.reporting import status
from mistakebound.core.reporting.report import Report

PRINTED: dict[str, tuple[Any, ...]] = {
    "demo": (Report,),
    "replay": (Report,),
    "status": (status.Status,),
    "compare": (Comparison,),
    "audit": (forms.Audited,),
    "tail": (Line,),
    "topics check": (list[forms.TopicFinding],),
    "checkpoint list": (list[forms.StoredFile],),
    "reset": (forms.ResetShown,),
    "config show": (dict[str, forms.SettingShown],),
    "seed": (forms.Seeded,),
    "learners": (list[forms.LearnerShown], list[forms.ConceptClass]),
    "teach": (forms.Taught,),
}
"""Verb to the document it prints; to several, where an option decides. Of `tail`, to a line."""


def schema_of(verb: str) -> dict[str, Any]:
    """Of what the verb prints; that of `status` is also what a worker's `/api/status` answers."""
    return status.schema_of(verb, *PRINTED[verb])
