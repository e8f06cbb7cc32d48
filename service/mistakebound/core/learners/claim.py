"""The theorem that bounds a run, or why none does; and the claims that several learners' pages share."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Any, Literal, NamedTuple

from mistakebound.core import bounds
from mistakebound.settings import LabelValue, LearnerSettings


@dataclass(frozen=True, slots=True)
class Run:
    """What a claim may rest on: an epoch that began from nothing, with every update folded and counted."""

    settings: LearnerSettings
    classes: tuple[LabelValue, ...]
    """As declared; empty where they are open."""
    radius: float
    """Largest length of an example updated on, in the learner's own space."""
    missing: int
    """Sum over the updates of how many came before it and were not in the model that decided it."""
    learner: Any
    costs: tuple[float, float] | None = None
    """The least and the most of a mistake, where they are learned from."""


class Claim(NamedTuple):
    """What a theorem says of the run so far."""

    theorem: str
    most: float
    """The largest count there can be."""
    assumes: str
    """Its numbers, those declared and those observed."""
    of: Literal["updates", "mistakes"] = "updates"
    """What it counts. Mistakes: of published predictions, at zero delay, with one worker."""


def separable(run: Run) -> Claim | None:
    """Perceptrons: updates are mistakes of a model that may have lacked some (Novikoff 1962)."""
    return perceptrons("Novikoff", run, run.radius)


def perceptrons(theorem: str, run: Run, radius: float, growth: float | None = None) -> Claim | None:
    """Where each update adds y*x: `growth` is what it adds to the square of theta's length; default R^2."""
    gamma = run.settings.gamma
    if gamma is None:
        return None
    most = bounds.missing_updates(radius * radius if growth is None else growth, radius, gamma, run.missing)
    numbers = f"R = {radius:.4g}, gamma = {gamma:.4g}{lacked(run)}"
    if run.costs is None:
        return Claim(theorem, most, numbers)
    cheapest, dearest = run.costs
    most = bounds.cost_sensitive(most, cheapest, dearest)
    return Claim(f"{theorem}, with costs", most, f"{numbers}, costs {cheapest:g} to {dearest:g}")


def lacked(run: Run) -> str:
    """How many updates deciding models lacked, as one more of the numbers that a claim assumes."""
    return f", {run.missing} missing" if run.missing else ""


def undeclared_margin(settings: LearnerSettings) -> str | None:
    """Why a learner whose theorem asks for a margin has no bound."""
    if settings.gamma is not None:
        return None
    return "No margin is declared: set learner.gamma to see the bound that follows from it."


def euclidean_norm(settings: LearnerSettings, theta: Mapping[str, float]) -> float:
    """||theta||_2: perceptrons' margins are those of separators with ||u||_2 = 1."""
    return sqrt(fsum(value * value for value in theta.values()))


def largest_norm(settings: LearnerSettings, theta: Mapping[str, float]) -> float:
    """||theta||_inf, for separators with ||u||_1 = 1."""
    return max((abs(value) for value in theta.values()), default=0.0)
