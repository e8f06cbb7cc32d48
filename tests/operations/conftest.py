"""Markers of the operations tests."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "promtool: needs Prometheus' promtool on the PATH")
