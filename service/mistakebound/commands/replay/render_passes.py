"""How the passes over labelled data ended, in words."""

from mistakebound.core.reporting.report import Report


def render_passes(report: Report, *, shuffled: bool) -> str:
    """One line: converged, in a loop, or neither yet."""
    count = len(report.passes)
    counts = ", ".join(str(one.updates) for one in report.passes[:20]) + (", ..." if count > 20 else "")
    if report.converged:
        end = "converged: the last pass needed no update"
    elif report.passes and report.passes[-1].updates == 0:
        end = "the last pass needed no update, yet made mistakes: no hypothesis within its reach agrees with the labels"
    elif report.cycle is not None:
        first, again = report.cycle
        end = f"theta after pass {again} is theta after pass {first}: the data is not separable" + (
            "" if shuffled else ", and the same passes would follow for ever"
        )
    else:
        end = "not converged"
    return f"passes           {count} (updates {counts}); {end}"
