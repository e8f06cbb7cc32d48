"""The fleet in one seed: production workers on a model broker, in virtual time, under a scheduler that a seed rules.

    python -m tests.simulate --seeds 10000 [--from N] [--workers 1-4] [--only FAULT ...] [--without FAULT ...]
    python -m tests.simulate --sabotage [NAME ...] [--seeds 1000]
    python -m tests.simulate --trap TRAP

What runs is the worker's own code: loop, step, takeover, followers, checkpoints, the thread that commits, the
Kafka log with its reader and its writer. What is modelled is what lies below: the broker (`broker.py`), the
network (`network.py`), the clients' two ports and their membership (`client.py`), the checkpoint store
(`store.py`), clocks and threads (`stand_ins.py`). The log's contract suite runs on the model as on a real Kafka.

Every kind of fault (`strikes.py`) is in the mix unless it is switched off. Now and then a rare state is tried when all is
quiet (`trials.py`), or something worse happens at the end (`disasters.py`), which all workers must refuse. With `--sabotage` one guard after the other is taken out of the
service, with `--trap` one out of the model's client, and seeds are run until one fails.

A seed and a commit reproduce a run to the bit.
"""
