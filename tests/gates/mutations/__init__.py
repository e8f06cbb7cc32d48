"""Are the tests any good? Break the code in many small ways, and see which test notices.

    python -m tests.gates.mutations [guards | KIND ...] [--seed N] [--most N] [--match TEXT] [--table FILE]

`guards` are lines on which exactly-once rests (`guards.py`), each with the few quick tests that must notice; a KIND is
a learner, of which ten or so lines are broken (`learners.py`). Each mutation is one replacement in a copy of the source,
in a temporary folder; then its tests run until one fails. What none notices is printed as SURVIVED and the exit code
is 1. Takes minutes.
"""
