"""Benchmarks, side by side on one real broker. Never part of the test command: `python -m tests.benchmarks`."""
