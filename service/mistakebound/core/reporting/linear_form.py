"""A model as rows of weights, for programs that know nothing of ours: a score is coef.x + intercept.

The weights are asked for as explanations are (`core/step/explain.py`): the score of each feature alone, less that of none.
So this is right for whatever learner has such a score, averages and windows included, and for no other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mistakebound.core.learners.multiclass_perceptron import MulticlassPerceptron
from mistakebound.core.messages.features import BIAS
from mistakebound.core.model.model import Model
from mistakebound.settings import LabelValue

FORMAT = 1


class NotLinear(ValueError):
    """The model cannot be written so. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearForm:
    """Classes K, features n; one row where there are two declared classes, else one for each class."""

    format: int
    learner: str
    epoch: int
    updates: tuple[int, ...]
    digest: str
    classes: tuple[LabelValue, ...]
    """Of two with one row of weights the second is the positive one: the class of a score above 0."""
    features: tuple[str, ...]
    """Names of the columns. A text feature is `name=value`, a number of an array its place, a token itself."""
    coef: tuple[tuple[float, ...], ...]
    """[1 or K, n]."""
    intercept: tuple[float, ...]
    """[1 or K]: BIAS, less a threshold."""
    unseen: float
    """The weight of any other column: not 0 for a Winnow whose threshold is a number."""
    tie: str
    """With one row: the class of a score of 0, as in `learner.tie`. With more the first of the largest scores counts."""
    scale: Mapping[str, tuple[float, float]]
    """What is to be done with a column first: x becomes (x - centre)/width, where the example has the feature."""
    normalize: str
    """`unit`: then each row is divided by its length; BIAS is among the columns, and 1 before that."""


def linear_form(model: Model) -> LinearForm:
    """The model as its next prediction would be made. Raises NotLinear."""
    kind, rules = model.kind, model.settings.features
    if not kind.sums:
        raise NotLinear(
            f"learner.kind = {kind.name}: its score is no sum over the features, weight times value"
        )
    classes = (*reversed(model.classes),) if len(model.classes) == 2 else tuple(_known(model))
    if len(classes) < 2:
        raise NotLinear(f"it knows {len(classes)} classes so far, and there is nothing to tell apart")
    of_none = _scores(model, ())
    names = sorted(_names(model))
    weights = {name: _alone(model, name, of_none) for name in names}
    unseen = _alone(model, max(names, default="") + "\0", of_none)[0]
    bias = (0.0,) * len(of_none)
    if rules.cross is not None:
        pass  # each tenant has a BIAS of its own, as a column
    elif rules.bias and rules.normalize == "none":
        bias = weights.pop(BIAS, (unseen,) * len(of_none))
    elif rules.bias and BIAS not in weights:
        weights[BIAS] = (unseen,) * len(of_none)
    kept = {name: row for name, row in weights.items() if any(row) or unseen}
    return LinearForm(
        format=FORMAT,
        learner=kind.name,
        epoch=model.epoch,
        updates=tuple(model.updates),
        digest=model.digest(),
        classes=classes,
        features=tuple(kept),
        coef=tuple(tuple(row[k] for row in kept.values()) for k in range(len(of_none))),
        intercept=tuple(b + score for b, score in zip(bias, of_none, strict=True)),
        unseen=unseen,
        tie=model.settings.learner.tie,
        scale=rules.scale,
        normalize=rules.normalize,
    )


def _known(model: Model) -> Iterable[LabelValue]:
    assert isinstance(model.learner, MulticlassPerceptron)
    return model.learner.known()


def _names(model: Model) -> set[str]:
    """Every name in theta, and with many classes perhaps names that no update had: these have no weight."""
    keys = model.learner.theta()
    if len(model.classes) == 2:
        return set(keys)
    prefixes = [f"{one}/" for one in _known(model)]
    return {key.removeprefix(prefix) for key in keys for prefix in prefixes if key.startswith(prefix)}


def _scores(model: Model, x: tuple[tuple[str, float], ...]) -> tuple[float, ...]:
    score = model.score(x)
    return tuple(score) if isinstance(score, list) else (score,)


def _alone(model: Model, name: str, of_none: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(a - b for a, b in zip(_scores(model, ((name, 1.0),)), of_none, strict=True))
