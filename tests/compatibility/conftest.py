"""Workers that poll often."""

from tests.support.polling import asked_often

__all__ = ["asked_often"]
