"""One program a file, run as `python -m tests.benchmarks.contenders.NAME TASK`, in an environment of its own.

TASK is JSON: `bootstrap`, `prefix` (of its own outputs and group), `examples`, `labels` (topics), `records`,
`options`. Each prints one line of JSON when it has worked off the stream: `seconds` from the first record
delivered to the last commit acknowledged, `cpu_seconds` of its process meanwhile, `labelled`, the same three of
the second half (`half_seconds` and so on), and what else it knows of itself.
"""
