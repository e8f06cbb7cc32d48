"""Mistake bounds: one theorem, one function.

Each function takes the quantities of its theorem and returns the largest count it allows, as a float.
U are updates, M mistakes on published predictions, R the largest length of an updated-on example in the
learner's own space (BIAS counted, after normalisation; over the updates suffices), gamma the margin of a
separator u of length 1 on every example there: y u.x >= gamma > 0. For plain learners at zero delay M = U.

A bound holds only where its assumptions do. That a count exceeds it proves that they do not. Which of
them speak of a run, and with which numbers, is decided in `service/mistakebound/core/theorems/claims.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, log, sqrt

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


def normalized_margin(gamma0: float) -> float:
    """U <= 8/gamma0^2 for ||x|| <= 1, data separable by gamma0 >= the gamma asked for (lecture 6).

    From a^2 <- a^2 + 1 + gamma a for the length a of theta. In fact 2.513/gamma0^2.
    """
    return 8 / gamma0**2


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


def winnow_any_rate(
    kl: float, eta: float, gamma1: float, radius: float, updates_between: int = 0, missing: int = 0
) -> float:
    """U <= KL/(eta gamma1 - eta^2 R^2 (1 + 2 tau')/2) while that is positive, else no bound (infinity).

    ||u||_1 = 1, `kl` = KL(u || w0/||w0||_1), gamma1 its margin, R = max ||x||_inf. `updates_between` tau' =
    most updates between a prediction and its label under `issued`; 0 for `rescore` and at zero delay.
    Tighter, instead of tau', as in `missing_updates`: `missing` S gives (KL + eta^2 R^2 S)/(eta gamma1 -
    eta^2 R^2/2), since each update that a deciding model lacked has moved its score by eta R^2 at most.
    """
    pace = eta * gamma1 - eta**2 * radius**2 * (1 + 2 * updates_between) / 2
    return (kl + eta**2 * radius**2 * missing) / pace if pace > 0 else inf


def littlestone_zero(relevant: int, features: int, alpha: float, threshold: float) -> float:
    """M <= alpha k (log_alpha theta + 1) + n/theta: k-literal disjunctions, demotion to zero.

    theta >= 1/alpha, Boolean features, no BIAS, any tie (Littlestone 1988, Winnow1). U likewise.
    """
    return alpha * relevant * (log(threshold, alpha) + 1) + features / threshold


def littlestone_divide(relevant: int, features: int, alpha: float, threshold: float) -> float:
    """M <= (1 + alpha) k (log_alpha theta + 1) + alpha n/((alpha - 1) theta): by division, theta >= 1.

    Otherwise as `littlestone_zero` (Littlestone 1988, Winnow2).
    """
    return (1 + alpha) * relevant * (log(threshold, alpha) + 1) + alpha * features / ((alpha - 1) * threshold)


def littlestone_threshold(relevant: int, needed: int, features: int) -> float:
    """M <= 8 k^2 + 5 r + 14 k r ln n for "at least k of r", alpha = 1 + 1/(2k), theta = n, by division.

    Littlestone 1988, theorem 9, as recalled; `relevant` is r, `needed` k. Never exceeded in trials; demotion
    to zero exceeds it and is refused for k > 1.
    """
    return 8 * needed**2 + 5 * relevant + 14 * needed * relevant * log(features)


def elimination(variables: int, *, general: bool) -> float:
    """M <= n for monotone conjunctions, n + 1 for general ones (lecture 6). Tight."""
    return variables + 1 if general else variables


def con(concepts: int) -> float:
    """M <= |C| - 1 (lecture 6): a mistake removes at least the concept that was wrong."""
    return concepts - 1


def halving(concepts: int) -> float:
    """M <= floor(log2 |C|) (lecture 6): with a strict majority a mistake removes at least half.

    The lecture's 1 = |C_n| < |C_{n-1}|/2 fails on ties; at most half remain.
    """
    return concepts.bit_length() - 1


def rescored(updates: float, outstanding: int) -> float:
    """M <= (1 + tau) U under `rescore` with one worker, plain learners.

    `outstanding` tau = most other examples waiting, over all owned partitions, when a label is applied.
    A wrong prediction errs again when its label comes, or an update came between: it is charged to the
    first one, with those that waited at that time. Not for the averaged and voted perceptrons.
    """
    return (1 + outstanding) * updates


def rescored_by_partition(updates: float, waiting: Iterable[int]) -> float:
    """M <= (sum over p of W_p) U under `rescore`, any number of workers and partitions, plain learners.

    W_p = most examples waiting in partition p when a label was applied there, the labelled one included; 0
    where none was. An update can be charged with W_p predictions of p at most: the first of them to be
    labelled finds the others waiting. On one partition this is `rescored`. With a part of the partitions:
    their M, by their W_p and all U.
    """
    return sum(waiting) * updates


def issued(bound: float, updates_between: int) -> float:
    """M <= (1 + 2 tau')(R/gamma)^2 under `issued`, perceptron; tau' as in `winnow_any_rate`."""
    return (1 + 2 * updates_between) * bound


def several_workers(bound: float, missing: int) -> float:
    """U <= (1 + 2s)(||u|| R/gamma)^2; s = most updates committed before one that its model lacks."""
    return (1 + 2 * missing) * bound


def missing_updates(growth: float, radius: float, gamma: float, missing: int) -> float:
    """The largest U of U^2 gamma^2 <= U G + 2 R^2 S: perceptrons decided by models that lacked updates.

    `missing` S = sum over the updates of how many before it the deciding model lacked: under several
    workers those not followed yet, under `issued` those since the prediction. Never above
    `several_workers` and `issued`, since S <= s U. `growth` G = R^2 (2 R^2 for many classes with R^2 doubled,
    R^2 + 2 margin/r with a margin); at S = 0 this is G/gamma^2.
    """
    return (growth + sqrt(growth**2 + 8 * gamma**2 * radius**2 * missing)) / (2 * gamma**2)


def stale_sets(bound: float, age: int) -> float:
    """U <= (1 + Delta) m: elimination, CON, Halving; Delta = age in updates of the oldest one missing."""
    return (1 + age) * bound


def missing_sets(bound: float, missing: int) -> float:
    """U <= m + S for them, S as in `missing_updates`: an update decided by a model that lacked nothing makes
    the progress that m counts, the others are at most S, and no update ever undoes progress."""
    return bound + missing


def margin_upper_bound(length: float, updates: int) -> float:
    """gamma <= ||theta||/U for every unit separator, in any order, under any delay; infinite before an update.

    Because U gamma <= u.theta. ||theta||_2 for perceptrons (Frobenius for many classes, the RKHS norm for
    kernels), max |theta_i| for balanced Winnow and max theta_i for Winnow (||u||_1 = 1 there). Theta, never
    r * theta. The same over any run of updates, with what it added: a theta that came back shows that no
    margin is above 0. Allow 1e-9 relative for rounding. Below the declared margin, it proves that no such
    separator exists.
    """
    return length / updates if updates else inf
