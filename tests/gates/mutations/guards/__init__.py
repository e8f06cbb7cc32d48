"""Guards of exactly-once and of what predictions say beside their class, each with the quick test that must notice when it is broken.

What the fault suite and the simulation notice is in `tests/faults/sabotage.py`.
"""

from collections.abc import Sequence

from tests.gates.mutations.guards.beside import BESIDE
from tests.gates.mutations.guards.core import CORE
from tests.gates.mutations.guards.log import LOG
from tests.gates.mutations.guards.model import MODEL
from tests.gates.mutations.guards.worker import WORKER
from tests.gates.mutations.mutation import Guard

GUARDS: Sequence[Guard] = (*CORE, *MODEL, *LOG, *WORKER, *BESIDE)
