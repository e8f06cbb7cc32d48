"""The passive-aggressive learners PA, PA-I and PA-II (Crammer, Dekel, Keshet, Shalev-Shwartz & Singer 2006).

Predict the sign of w.x, with w = theta. The loss l = max(0, 1 - y w.x) asks for more than the right sign: whenever
it is above 0, even without a mistake, w <- w + tau*y*x. PA goes as far as it takes to make the loss 0, tau =
l/||x||^2; C, the aggressiveness, holds the others back: PA-I by tau = min(C, l/||x||^2), PA-II by tau =
l/(||x||^2 + 1/(2C)). The zero vector teaches nothing. Tau is logged as the update's amount.
"""

from mistakebound.core.learners.claim import Claim, Run, undeclared_margin
from mistakebound.core.learners.kind import Kind, Refusal
from mistakebound.core.linear.linear import Linear
from mistakebound.core.linear.theta import saturate
from mistakebound.core.messages.features import Features
from mistakebound.settings import LearnerSettings

VARIANT = "PA-I"
"""The default, with C = 1."""


def passive_aggressive(settings: LearnerSettings, partitions: int) -> Linear:
    """`settings`: variant, and aggressiveness C > 0."""
    variant, most = settings.variant or VARIANT, settings.aggressiveness or 1.0

    def amount(score: float, x: Features, positive: bool) -> float:
        loss = 1.0 - (score if positive else -score)
        if loss <= 0.0:
            return 0.0
        square = 0.0
        for _, value in x:
            square += value * value
        if square == 0.0:
            return 0.0
        if variant == "PA-II":
            return loss / (square + 1.0 / (2.0 * most))
        tau = saturate(loss / square)
        return min(most, tau) if variant == "PA-I" else tau

    return Linear(settings, partitions, amount=amount)


def _claim(run: Run) -> Claim | None:
    """M <= (R/gamma)^2 for PA, max(R^2, 1/C)/gamma^2 for PA-I, (R^2 + 1/(2C))/gamma^2 for PA-II.

    Let u have the loss 0 on every example, so ||u|| = 1/gamma. An update moves w nearer to it: ||w - u||^2 falls
    by 2 tau y (u - w).x - tau^2 ||x||^2 >= 2 tau l - tau^2 ||x||^2, in all by ||u||^2 at most (their lemma 1).
    For PA that is l^2/||x||^2; for PA-I at least tau l, since tau ||x||^2 <= l; for PA-II at least
    l^2/(||x||^2 + 1/(2C)). A mistake has a loss of 1 or more, so each takes 1/R^2, or min(1/R^2, C), or
    1/(R^2 + 1/(2C)) of the 1/gamma^2 there is. Updates without a mistake may be many, so none bounds them.
    """
    settings, square = run.settings, run.radius * run.radius
    if settings.gamma is None:
        return None
    variant, most = settings.variant or VARIANT, settings.aggressiveness or 1.0
    held = {"PA": square, "PA-I": max(square, 1.0 / most), "PA-II": square + 1.0 / (2.0 * most)}[variant]
    numbers = f"R = {run.radius:.4g}, gamma = {settings.gamma:.4g}"
    return Claim(
        variant,
        held / settings.gamma / settings.gamma,
        numbers if variant == "PA" else f"{numbers}, C = {most:.4g}",
        of="mistakes",
    )


KIND = Kind(
    name="passive-aggressive",
    order=45,
    make=passive_aggressive,
    source="Crammer et al. 2006",
    bound="(R/gamma)^2; PA-I max(R^2, 1/C)/gamma^2; PA-II (R^2 + 1/(2C))/gamma^2",
    bounds="mistakes",
    parameters=("variant", "aggressiveness", "tie", "gamma", "window"),
    no_issued=Refusal(
        "learns from the loss of the present weights, and an issued prediction tells only its sign",
        'Set it to "rescore"',
    ),
    claim=_claim,
    undeclared=undeclared_margin,
    no_probability=None,
    size=Linear.size,
    sums=True,
)
