"""Which labels are asked for: selective sampling (Cesa-Bianchi, Gentile & Zaniboni, JMLR 7, 2006, the perceptron's form).

The label of an example with score s is asked for with probability b/(b + |s|): surely where the score is 0, seldom
where the model is sure. No random number decides, but a hash of the id: everybody who reads the log decides alike.
"""

from hashlib import blake2b

from msgspec.structs import replace

from mistakebound.core.messages.asking import MILLION, MOST_WEIGHT
from mistakebound.core.messages.schema import Prediction
from mistakebound.settings import LabelSettings

HASH_BITS = 64


class Asking:
    """Asks for labels at the rate `labels.ask` = b, by the seed `labels.ask_seed`."""

    def __init__(self, rate: float, seed: int) -> None:
        self._whole, self._parts = rate.as_integer_ratio()
        self._seed = str(seed).encode() + b"\0"

    def weight(self, record_id: str, score: float) -> int:
        """(b + |score|)/b in millionths, rounded, where the label is asked for; else 0.

        Asked for where h/2^64 < b/(b + |score|), with h the first 64 bits of blake2b (digest of 8 bytes, big-endian)
        of the seed in decimal, a zero byte, and the id in UTF-8. The comparison is one of whole numbers: exact.
        """
        digest = blake2b(self._seed + record_id.encode(), digest_size=HASH_BITS // 8).digest()
        size, parts = abs(score).as_integer_ratio()
        rate = self._whole * parts
        both = rate + size * self._parts
        if int.from_bytes(digest, "big") * both >= rate << HASH_BITS:
            return 0
        return min(MOST_WEIGHT, (2 * MILLION * both + rate) // (2 * rate))

    def said(self, prediction: Prediction, score: float) -> Prediction:
        """The prediction, saying whether its label is asked for."""
        weight = self.weight(prediction.id, score)
        return replace(prediction, ask=True, weight=weight) if weight else replace(prediction, ask=False)


def asking(labels: LabelSettings) -> Asking | None:
    """None where every label is learned from."""
    return None if labels.ask is None else Asking(labels.ask, labels.ask_seed or 0)
