"""Other rules beside the learner, as a table."""

from mistakebound.commands.output import render_table
from mistakebound.core.replay.comparators import Comparison
from mistakebound.core.replay.comparators.losses import Losses

HEADS = ("rule", "mistakes", "rate", "hinge", "squared", "log")


def render_comparison(found: Comparison, learner: str) -> str:
    """A row for each rule; then the best separator's margin and the regret against it, or why there is none."""
    rules = {
        learner: found.learner,
        "majority so far": found.majority,
        "last label": found.last_label,
        f"logistic regression, rate {found.learning_rate:g}": found.logistic_regression,
    }
    best = found.best_separator
    if best is not None:
        rules["best separator"] = best.losses
    lines = [render_table(HEADS, *(_row(name, losses) for name, losses in rules.items()))]
    if best is None or found.regret is None:
        lines.append(str(found.separator_missing))
    else:
        lines.append(
            f"separable with margin {best.margin:g}"
            if best.margin is not None
            else "not separable: the best separator is the one of the least hinge loss"
        )
        lines.append(f"regret {found.regret.mistakes} mistakes, {found.regret.hinge:g} hinge loss")
    return "\n".join(lines)


def _row(name: str, losses: Losses) -> tuple[str, ...]:
    sums = (losses.hinge, losses.squared, losses.log)
    return name, str(losses.mistakes), f"{losses.mistake_rate:.4f}", *(f"{value:.6g}" for value in sums)
