"""Which labels are asked for, decided a second time, in fractions."""

from fractions import Fraction
from hashlib import blake2b

from mistakebound.core.messages.asking import MOST_WEIGHT
from mistakebound.settings import LabelSettings


def weight_of(labels: LabelSettings, record_id: str, score: float) -> int:
    """The weight in millionths of a label that `labels.ask` asks for; 0 for one that it does not."""
    assert labels.ask is not None
    rate = Fraction(labels.ask)
    asked = rate / (rate + abs(Fraction(score)))
    text = f"{labels.ask_seed or 0}\0{record_id}".encode()
    place = Fraction(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"), 2**64)
    if place >= asked:
        return 0
    millionths = 1_000_000 / asked
    return min(MOST_WEIGHT, int(millionths + Fraction(1, 2)))
