"""Plots for the pages under `deploy`, each made by a command: `python -m tests.plots winnow`."""
