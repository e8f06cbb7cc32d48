"""Mistake bounds: one theorem, one function.

Each function takes the quantities of its theorem and returns the largest count it allows, as a float.
U are updates, M mistakes on published predictions, R the largest length of an updated-on example in the
learner's own space (BIAS counted, after normalisation; over the updates suffices), gamma the margin of a
separator u of length 1 on every example there: y u.x >= gamma > 0. For plain learners at zero delay M = U.

A bound holds only where its assumptions do. That a count exceeds it proves that they do not. A learner's page
says which of them speaks of a run, and with which numbers. They import nothing, so every page can use them.

What float64 cannot hold is infinite, which is no bound. So squares are products here, and divisors are divided by one by
one: R is what some producer sent, `R**2` would raise an error, and the square of a small gamma is 0.
"""

from collections.abc import Iterable
from math import exp, expm1, floor, hypot, inf, log, log1p, sqrt

MOST_EXPONENT = 700.0
"""exp(709.8) overflows float64."""
SMALL = 1e-3
WHOLE = 2.0**53
"""From here on floats are integers, and one more is none more."""


def normalized_margin(gamma0: float) -> float:
    """U <= 8/gamma0^2 for ||x|| <= 1, data separable by gamma0 >= the gamma asked for (lecture 6).

    From a^2 <- a^2 + 1 + gamma a for the length a of theta. In fact 2.513/gamma0^2.
    """
    return 8 / gamma0 / gamma0


def winnow_any_rate(kl: float, eta: float, gamma1: float, radius: float, missing: int = 0) -> float:
    """U <= (KL + eta^2 R^2 S)/(eta gamma1 - eta^2 R^2/2) while that is positive, else no bound (infinity).

    ||u||_1 = 1, `kl` = KL(u || w0/||w0||_1), gamma1 its margin, R = max ||x||_inf. `missing` S as in
    `missing_updates`: each update that a deciding model lacked has moved its score by eta R^2 at most.
    """
    size = eta * radius
    pace = eta * gamma1 - size * size / 2
    return (kl + size * size * missing) / pace if pace > 0 else inf


def winnow_initial(eta: float, gamma: float, radius: float) -> float:
    """U <= ((1 - c) ln(1 - c) + c)/(c p - q) while positive, with p = eta gamma, q = exp(eta R) - 1 - eta R and
    c = 2q/p, at most 1. For small eta about R^2/gamma^2.

    Winnow against its initial weights w0: it errs where y (w - w0).x <= 0. Features are not negative, v of either
    sign has ||v||_1 = 1 and y v.x >= gamma, R = max sqrt(||x||_1 ||x||_inf).

    Let D = sum u ln(u/w) - u + w with u = w0 (1 + c v). With b the largest x_d, and by convexity of exp, an update
    takes from D at least eta y u.x - w.x (exp(eta y b) - 1)/b. Where it errs, y w.x <= y w0 ||x||_1: so at least
    w0 (c p - ||x||_1 (exp(eta b) - 1 - eta b)/b), where the last term is at most q. At the start D is
    w0 sum h(c v_d), h(s) = (1 + s) ln(1 + s) - s, which by convexity of h is largest where v is one -1: w0 h(-c).
    """
    if radius == 0 or eta * radius >= MOST_EXPONENT:
        return inf if radius else 0.0
    pace, size = eta * gamma, eta * radius
    if pace == 0:
        return inf
    # Where a difference would lose its digits, a little more than it.
    cost = expm1(size) - size if size > SMALL else size * size / 2 * exp(size)
    c = min(1.0, 2 * cost / pace)
    start = 1.0 if c == 1.0 else (1 - c) * log1p(-c) + c if c > SMALL else c * c / 2 / (1 - c)
    return start / (c * pace - cost) if c * pace > cost else inf


def littlestone_zero(relevant: int, features: int, alpha: float, threshold: float) -> float:
    """M <= alpha k (log_alpha theta + 1) + n/theta: k-literal disjunctions, demotion to zero.

    theta >= 1/alpha, Boolean features, no BIAS, any tie (Littlestone 1988, Winnow1). U likewise.
    """
    return alpha * relevant * (log(threshold, alpha) + 1) + features / threshold


def littlestone_divide(relevant: int, features: int, alpha: float, threshold: float) -> float:
    """M <= (1 + alpha) k (log_alpha theta + 1) + alpha n/((alpha - 1) theta): by division, theta >= 1.

    Otherwise as `littlestone_zero` (Littlestone 1988, Winnow2).
    """
    return (1 + alpha) * relevant * (log(threshold, alpha) + 1) + alpha / (alpha - 1) * features / threshold


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


def asked(b: float, radius: float, gamma: float) -> float:
    """E[M] <= (2b + R^2)^2/(8 b gamma^2): perceptrons that ask for the label of a score s with probability b/(b + |s|).

    M are all mistakes, asked for or not, at zero delay, with one worker; the mean is over what is asked for. Cesa-Bianchi,
    Gentile & Zaniboni, JMLR 7, 2006, theorem 1, on separable data. R is over all labelled examples, and not over the
    updates: these depend on what was asked for.

    Each update has 2 a y u.x - ||x||^2 >= 2 a gamma - R^2 and -2 y w.x = 2|s|, so that the sum over updates of
    2 a gamma - R^2 + 2|s| is at most a^2. With a = (2b + R^2)/(2 gamma) each term is 2(b + |s|), and a mistake becomes an
    update with probability b/(b + |s|): 2 b E[M] <= a^2.
    """
    root = (2 * b + radius * radius) / gamma
    return root * root / 8 / b


def rescored_by_partition(updates: float, waiting: Iterable[int]) -> float:
    """M <= (sum over p of W_p) U under `rescore`, any number of workers and partitions, plain learners.

    W_p = most examples waiting in partition p when a label was applied there, the labelled one included; 0
    where none was. An update can be charged with W_p predictions of p at most: the first of them to be
    labelled finds the others waiting. On one partition this is `rescored`. With a part of the partitions:
    their M, by their W_p and all U.
    """
    return sum(waiting) * updates


def missing_updates(growth: float, radius: float, gamma: float, missing: int) -> float:
    """The largest U of U^2 gamma^2 <= U G + 2 R^2 S: perceptrons decided by models that lacked updates.

    `missing` S = sum over the updates of how many before it the deciding model lacked: under several
    workers those not followed yet, under `issued` those since the prediction. Never above
    `several_workers` and `issued`, since S <= s U. `growth` G = R^2 (2 R^2 for many classes with R^2 doubled,
    R^2 + 2 margin/r with a margin); at S = 0 this is G/gamma^2.
    """
    lacked = gamma * radius * sqrt(8 * missing) if missing else 0.0
    return (growth + hypot(growth, lacked)) / 2 / gamma / gamma


def cost_sensitive(bound: float, cheapest: float, dearest: float) -> float:
    """U <= (c_max/c_min) B for perceptrons whose update adds c y x, c the cost of the mistake; B is their bound without.

    An update at y theta.x <= 0 adds at most c^2 R^2 to ||theta||^2, and at least c gamma to u.theta. With C the sum of
    the updates' costs: gamma^2 C^2 <= R^2 sum c^2 <= R^2 c_max C, so C <= c_max (R/gamma)^2 = c_max B, and C >= c_min U.
    So mistakes of cost c are at most (c_max/c) B: of the dearest, as many as without costs. Each update that a deciding
    model lacked adds at most 2 c_max^2 R^2 more: with V = C/c_max, V^2 gamma^2 <= V R^2 + 2 R^2 S as in `missing_updates`.
    For many classes R^2 is doubled, here as there.
    """
    return bound * dearest / cheapest


def restarted(most: float, restarts: int) -> float:
    """U <= (C + 1)(floor(m) + 1) after C restarts, m the bound of a life without one: perceptrons, one partition.

    A life ends with the first update after which ||theta|| < gamma U. Before it gamma U <= ||theta||, and with
    ||theta||^2 <= G U as ever that is U <= G/gamma^2 = m, without a word about the data. Each restart was a proved
    change, so with K changes in the data, each part of it separable by gamma, C <= K: U <= (K + 1)(floor(m) + 1).
    """
    return (restarts + 1) * (floor(most) + 1 if most < WHOLE else most)


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
