"""What a learner needs of settings and examples, said before it meets them."""

from collections.abc import Callable, Iterator

from mistakebound.core import learners
from mistakebound.core.faults import BadRecord
from mistakebound.core.learners.concepts import variables_of
from mistakebound.core.learners.kind import Kind, Unmet
from mistakebound.core.messages.costs import costs_of
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import declared
from mistakebound.settings import LearnerSettings, Settings


def of_epoch(settings: Settings) -> list[str]:
    """What keeps a model from being made of the settings that an epoch holds, as texts; empty where nothing does."""
    kind = settings.learner.kind
    unknown = [] if kind in learners.KINDS else [f"learner.kind: there is no {kind!r}"]
    return [*unknown, *(f"{each.key}: {each.wrong}" for each in unmet(settings))]


def unmet(settings: Settings, partitions: int | None = None) -> Iterator[Unmet]:
    """Everything that the learner needs and the settings do not give; `partitions` where known."""
    learner, features = settings.learner, settings.features
    kind = learners.KINDS.get(learner.kind)
    if kind is None:
        return  # named by whoever checks the key
    for key in kind.needs:
        if getattr(learner, key) is None:
            yield Unmet(f"learner.{key}", f"{kind.name} needs it", f"Set learner.{key}")
    if kind.unit and features.normalize != "unit":
        yield Unmet(
            "features.normalize",
            f"{kind.name} is proved for examples of length 1",
            'Set features.normalize = "unit"',
        )
    yield from kind.requires(learner)
    yield from _of_features(kind, settings)
    if learner.window is not None and kind.no_window is not None:
        yield Unmet("learner.window", f"{kind.name} {kind.no_window.why}", kind.no_window.remedy)
    yield from _restarting(settings, kind)
    if learner.delay_policy == "issued" and kind.no_issued is not None:
        yield Unmet("learner.delay_policy", f"{kind.name} {kind.no_issued.why}", kind.no_issued.remedy)
    yield from _by_score(settings, kind)
    yield from _costs(settings, kind)
    if len(declared(settings.labels)) != 2 and kind.many is None:
        yield Unmet("labels.classes", f"{kind.name} knows two classes", "Declare two, or take a perceptron")
    if partitions is not None and partitions > 1 and kind.one_partition is not None:
        wrong = f"{kind.name} {kind.one_partition.why}; there are {partitions}"
        yield Unmet("log.partitions", wrong, kind.one_partition.remedy)


def _by_score(settings: Settings, kind: Kind) -> Iterator[Unmet]:
    """What is done by the size of a score: asking for labels, and probabilities."""
    for is_wanted, key, refusal in (
        (settings.labels.ask is not None, "labels.ask", kind.no_ask),
        (settings.predictions.probability, "predictions.probability", kind.no_probability),
    ):
        if is_wanted and len(declared(settings.labels)) != 2:
            yield Unmet(key, "it goes by the one score of two classes", "Declare two, or leave it out")
        elif is_wanted and refusal is not None:
            yield Unmet(key, f"{kind.name} {refusal.why}", refusal.remedy)


def _costs(settings: Settings, kind: Kind) -> Iterator[Unmet]:
    """Costs are counted whatever learns, and learned from where that is asked for."""
    try:
        costs = costs_of(settings.labels)
    except ValueError as error:
        yield Unmet("labels.costs", str(error), "See deploy/costs.md, or leave it out")
        return
    if not settings.learner.cost_sensitive:
        return
    key, leave = "learner.cost_sensitive", "Leave it out: costs are counted all the same"
    if key.partition(".")[2] not in kind.parameters:
        yield Unmet(key, f"{kind.name} does not learn from costs", f"{leave}; or take a perceptron")
    if costs is None:
        yield Unmet(key, "there are no costs to learn from", "Set labels.costs")
    elif costs.least == 0:
        wrong = "a mistake that costs nothing would teach nothing"
        yield Unmet("labels.costs", wrong, "Give each a cost above 0")
    if settings.learner.delay_policy == "issued":
        wrong = "an update's cost is that of the present model's mistake"
        yield Unmet("learner.delay_policy", wrong, 'Set it to "rescore"')
    if settings.labels.ask is not None:
        wrong = "its expected mistakes are bounded for updates of one size, and learner.cost_sensitive makes them differ"
        yield Unmet("labels.ask", wrong, "Leave out one of the two")


def _of_features(kind: Kind, settings: Settings) -> Iterator[Unmet]:
    features = settings.features
    boolean = f"{kind.name} takes Boolean features only"
    if kind.boolean and features.bias:
        yield Unmet("features.bias", boolean, "Set features.bias = false")
    if kind.boolean and features.normalize != "none":
        yield Unmet("features.normalize", boolean, 'Set it to "none"')
    if kind.boolean and features.scale:
        yield Unmet("features.scale", boolean, "Leave it out")
    if features.cross is not None and kind.no_cross is not None:
        yield Unmet("features.cross", f"{kind.name} {kind.no_cross.why}", kind.no_cross.remedy)
    elif features.cross is not None and settings.learner.variables is not None:
        wrong = "declared variables are not those of each tenant, which features.cross asks for"
        yield Unmet("learner.variables", wrong, "Leave one of the two out")


def _restarting(settings: Settings, kind: Kind) -> Iterator[Unmet]:
    learner, remedy = settings.learner, "Leave it out, or"
    if learner.on_refuted is None:
        return
    if "on_refuted" not in kind.parameters:
        yield Unmet("learner.on_refuted", f"{kind.name} does not restart", f"{remedy} take a perceptron")
    elif len(declared(settings.labels)) != 2:
        yield Unmet("learner.on_refuted", "changes are proved for two classes", f"{remedy} declare two")
    elif learner.gamma is None:
        yield Unmet(
            "learner.on_refuted", "without a margin nothing is refuted", f"{remedy} set learner.gamma"
        )
    elif learner.window is not None:
        yield Unmet("learner.on_refuted", "a window forgets by itself", f"{remedy} leave out learner.window")
    elif settings.features.cross is not None:
        wrong = "one tenant's change would restart what was learned of all"
        yield Unmet("learner.on_refuted", wrong, f"{remedy} leave out features.cross")
    elif learner.cost_sensitive:
        wrong = "a proof counts each update once, and costs weigh them"
        yield Unmet("learner.on_refuted", wrong, f"{remedy} leave out learner.cost_sensitive")


def cautions(settings: Settings) -> Iterator[Unmet]:
    """What the learner can work with, and is hardly ever what is wanted."""
    kind = learners.KINDS.get(settings.learner.kind)
    if kind is not None:
        yield from kind.cautions(settings.learner)
        yield from _not_read(settings.learner, kind)


def _not_read(learner: LearnerSettings, kind: Kind) -> Iterator[Unmet]:
    """What does nothing, and yet is fixed with the epoch. Costs, windows and restarts are refused where they do nothing."""
    defaults = LearnerSettings(kind=learner.kind)
    for name in sorted(LearnerSettings.model_fields.keys() - {"kind", "delay_policy", *kind.parameters}):
        if getattr(learner, name) != getattr(defaults, name):
            readers = [each.name for each in learners.KINDS.values() if name in each.parameters]
            wrong = f"{kind.name} does not read it, and the epoch holds it all the same"
            yield Unmet(f"learner.{name}", wrong, f"Leave it out; it is for {', '.join(readers)}")


def accepted(settings: Settings) -> Callable[[Features], None] | None:
    """A check of decoded features, which raises BadRecord for what the learner does not take.

    None where it takes whatever could be decoded.
    """
    kind = learners.KINDS[settings.learner.kind]
    if not kind.boolean:
        return None
    named = variables_of(settings.learner)
    known = None if named is None else frozenset(named)

    def check(x: Features) -> None:
        for name, value in x:
            if value not in (0.0, 1.0):
                raise BadRecord(
                    "not-boolean", f"feature {name!r} is {value!r}; {kind.name} takes 0 and 1 only"
                )
            if known is not None and name not in known:
                raise BadRecord(
                    "unknown-variable", f"feature {name!r} must be one of learner.variables; declare it"
                )

    return check
