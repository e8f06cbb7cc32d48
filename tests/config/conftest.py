"""Every test runs in an empty folder of its own, without settings from the environment."""

from tests.support.folders import empty_folder

__all__ = ["empty_folder"]
