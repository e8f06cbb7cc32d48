"""Plots for the README, each made by a command: `python -m tests.plots winnow`."""
