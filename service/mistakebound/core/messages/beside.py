"""What a prediction says beside its class, where the settings have it say that: it is kept until the label comes."""

from typing import Self

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from mistakebound.core.messages.asking import MILLION
from mistakebound.core.messages.schema import Decision, Prediction


class Beside(Struct, frozen=True, gc=False, omit_defaults=True):
    """Absent parts are None."""

    weight: int | None = None
    """Of the example, where labels are asked for; 0 where its label is not."""
    bucket: int | None = None
    """Of its margin, with a probability."""
    probability: int | None = None
    """Of the positive class, in millionths."""

    @classmethod
    def of(cls, prediction: Prediction) -> Self | None:
        """What a published prediction said; None where it said nothing."""
        ask, probability = prediction.ask, prediction.probability
        if ask is UNSET and probability is UNSET:
            return None
        weight = None if ask is UNSET else _known(prediction.weight) or 0
        return cls(weight, _known(prediction.bucket), None if probability is UNSET else _whole(probability))

    def in_decision(self, decision: Decision) -> Decision:
        """What became of the example, with what its prediction had said."""
        if self.probability is None or decision.label_offset is None:
            return replace(decision, weight=self.weight)
        probability = self.probability / MILLION
        return replace(decision, weight=self.weight, bucket=self.bucket, probability=probability)

    @classmethod
    def of_decision(cls, decision: Decision) -> Self | None:
        """What the prediction had said, by what became of it."""
        found = cls(
            decision.weight,
            decision.bucket,
            None if decision.probability is None else _whole(decision.probability),
        )
        return None if found == cls() else found


def _known(number: int | UnsetType) -> int | None:
    return None if number is UNSET else number


def _whole(probability: float) -> int:
    """In millionths, which six decimals give exactly."""
    return round(probability * MILLION)
