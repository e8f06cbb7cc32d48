"""The fleet in one seed: production workers on a model broker, in virtual time, under a scheduler that a seed rules.

    python -m tests.simulate --seeds 10000 [--from N] [--workers 1-4] [--without GUARD]

What runs is the worker's own code: loop, step, takeover, followers, checkpoints, the thread that commits, the
Kafka log with its reader and its writer. What is modelled is what lies below: the broker (`broker.py`), the
network (`network.py`), the clients' two ports and their membership (`client.py`), the checkpoint store
(`store.py`), clocks and threads (`stand_ins.py`). The log's contract suite runs on the model as on a real Kafka.

A seed and a commit reproduce a run to the bit.
"""
