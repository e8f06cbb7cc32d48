"""The project's tests and programs, of the checkout in which they lie, whatever is installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "service"))
