"""What a prediction says beside its class, where the settings have it say that: it is kept until the label comes."""

from typing import Self

from msgspec import UNSET, Struct

from mistakebound.core.messages.schema import Prediction


class Beside(Struct, frozen=True, gc=False):
    """Absent parts are None."""

    weight: int | None = None
    """Of the example, where labels are asked for; 0 where its label is not."""

    @classmethod
    def of(cls, prediction: Prediction) -> Self | None:
        """What a published prediction said; None where it said nothing."""
        if prediction.ask is UNSET:
            return None
        return cls(0 if prediction.weight is UNSET else prediction.weight)
