"""Mistake bounds as the literature states them; the service uses tighter ones, which these check.

`mistakebound.core.bounds` explains the words.
"""

from collections.abc import Mapping, Sequence
from math import exp, inf, log, sqrt

Weights = Mapping[str, float]


def novikoff(radius: float, gamma: float, norm: float = 1.0) -> float:
    """U <= (||u|| R / gamma)^2 for the perceptron at any learning rate and tie (Novikoff 1962).

    `gamma` = min y u.x. After t updates u.theta >= t gamma and ||theta||^2 <= t R^2. Also for the averaged
    and voted perceptrons, whose M it does not bound. The lecture's ||u||^2 <= R^2/gamma^2 must read
    1 <= ||u||^2 R^2/gamma^2, as here.
    """
    return (norm * radius / gamma) ** 2


def novikoff_with_bias(radius: float, gamma: float, offset: float) -> float:
    """U <= (R^2 + 1)(1 + b^2)/gamma^2: BIAS counted, where (u, b) has the geometric margin gamma, ||u|| = 1.

    `radius` is that of the features without BIAS.
    """
    return (radius**2 + 1) * (1 + offset**2) / gamma**2


def freund_schapire(radius: float, gamma: float, deviation: float) -> float:
    """U <= ((R + D)/gamma)^2 on any data, any unit u and gamma > 0 (Freund & Schapire 1999, theorem 2).

    `deviation` D = sqrt(sum over the updates of max(0, gamma - y u.x)^2), see `deviation_of`.
    """
    return ((radius + deviation) / gamma) ** 2


def deviation_of(margins: Sequence[float], gamma: float) -> float:
    """D of `freund_schapire` from y u.x of each update."""
    return sqrt(sum(max(0.0, gamma - margin) ** 2 for margin in margins))


def multiclass(radius: float, gamma: float) -> float:
    """U <= 2 (R/gamma)^2 with ||U||_F = 1 and gamma = min over wrong k of (u_y - u_k).x.

    Each update moves two rows, so the square of the length grows by up to 2 R^2: (R/gamma)^2 is wrong.
    Declared classes only: an open one is not asked before its first update, so it can be missed at a score
    above all others'.
    """
    return 2 * (radius / gamma) ** 2


def margin_perceptron(radius: float, gamma: float, margin: float, rate: float) -> float:
    """U <= (R^2 + 2 margin/r)/gamma^2 when updating while y w.x < margin, w = r theta, unit u."""
    return (radius**2 + 2 * margin / rate) / gamma**2


def one_sided(gap: float) -> float:
    """U <= 1/g^2 for ||x|| = 1, BIAS counted if it is on, and a unit w* of w*.x >= g (COMS 172, lecture 11)."""
    return 1 / gap**2


def winnow(separator: Weights, initial: float, norm: float, radius: float, delta: float) -> float:
    """U <= 2 W R^2/delta^2 * sum u_d ln(u_d ||w0||_1 / (w0_d ||u||_1)) (Zhang; threshold 0).

    `separator` u >= 0 over all n features, zeros included, margin gamma >= `delta` > 0; `norm` W >= ||u||_1;
    `radius` R >= every |x_d|; eta must be delta/(W R^2). The notes print w_d where u_d belongs. Balanced
    Winnow: the same over [x; -x].
    """
    return 2 * norm * radius**2 / delta**2 * divergence(separator, initial)


def divergence(separator: Weights, initial: float) -> float:
    """sum u_d ln(u_d ||w0||_1 / (w0_d ||u||_1)) with w0_d = `initial` for all n features."""
    total = sum(separator.values())
    whole = initial * len(separator)
    return sum(u * log(u * whole / (initial * total)) for u in separator.values() if u > 0)


def winnow_initial(separator: Weights, eta: float, margin: float, rows: Sequence[Sequence[float]]) -> float:
    """U <= min over c of sum h(c v_d) / (c eta gamma - q), h(s) = (1 + s) ln(1 + s) - s, while positive.

    Winnow that errs where y (w - w0).x <= 0. `separator` v of either sign has `margin` gamma on all `rows`, which are
    not negative; every c with 1 + c v_d >= 0 counts; q is the largest ||x||_1 (exp(eta b) - 1 - eta b)/b, b the largest
    value of x.
    """
    cost = max(
        sum(row) * (exp(eta * max(row)) - 1 - eta * max(row)) / max(row) for row in rows if max(row) > 0
    )
    most = min((-1 / v for v in separator.values() if v < 0), default=100.0)

    def bound(c: float) -> float:
        pace = c * eta * margin - cost
        return sum(_potential(c * v) for v in separator.values()) / pace if pace > 0 else inf

    return min(bound(most * step / 10_000) for step in range(1, 10_001))


def _potential(s: float) -> float:
    return (1 + s) * log(1 + s) - s if s > -1 else 1.0


def littlestone_threshold(relevant: int, needed: int, features: int) -> float:
    """M <= 8 k^2 + 5 r + 14 k r ln n for "at least k of r", alpha = 1 + 1/(2k), theta = n, by division.

    Littlestone 1988, theorem 9, as recalled; `relevant` is r, `needed` k. Never exceeded in trials; demotion
    to zero exceeds it and is refused for k > 1.
    """
    return 8 * needed**2 + 5 * relevant + 14 * needed * relevant * log(features)


def rescored(updates: float, outstanding: int) -> float:
    """M <= (1 + tau) U under `rescore` with one worker, plain learners.

    `outstanding` tau = most other examples waiting, over all owned partitions, when a label is applied.
    A wrong prediction errs again when its label comes, or an update came between: it is charged to the
    first one, with those that waited at that time. Not for the averaged and voted perceptrons.
    """
    return (1 + outstanding) * updates


def issued(bound: float, updates_between: int) -> float:
    """M <= (1 + 2 tau')(R/gamma)^2 under `issued`, perceptron; tau' = most updates between a prediction and its label."""
    return (1 + 2 * updates_between) * bound


def several_workers(bound: float, missing: int) -> float:
    """U <= (1 + 2s)(||u|| R/gamma)^2; s = most updates committed before one that its model lacks."""
    return (1 + 2 * missing) * bound


def stale_sets(bound: float, age: int) -> float:
    """U <= (1 + Delta) m: elimination, CON, Halving; Delta = age in updates of the oldest one missing."""
    return (1 + age) * bound
