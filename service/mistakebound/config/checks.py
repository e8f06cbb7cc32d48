"""Checks that look at more than one setting, or at more than a type. Pure."""

import difflib
from collections.abc import Iterator, Sequence

from mistakebound.config.problems import ConfigurationError, Problem
from mistakebound.settings import CheckpointSettings, LabelSettings, LabelValue, Settings
from mistakebound.worker.checkpoints.store import FORMS, place_of

EXAMPLE = """\
A mistakebound.toml to start from:

[log]
url = "kafka://localhost:9092"

[labels]
max_delay = "P7D"  # how long an example waits for its label"""

_LOG_FORMS = "kafka://host:9092, kafka+confluent://host:9092, sqlite:FILE or sqlite::memory:"


def inconsistencies(settings: Settings) -> Iterator[Problem]:
    """Every problem between settings; their origins are not known here."""
    yield from _labels(settings.labels)
    yield from _learner(settings, settings.log.partitions)
    if settings.log.url:
        yield from _log_url(settings.log.url)
    if settings.http.address:
        yield from _address(settings.http.address)
    yield from _checkpoint(settings.checkpoint)


def require_for_run(settings: Settings) -> None:
    """Raise ConfigurationError, with an example file, unless all that `run` needs was given."""
    problems = list(_missing_log(settings))
    if settings.labels.max_delay is None:
        problems.append(
            Problem(
                "labels.max_delay",
                "missing: how long an example waits for its label",
                "Set it in the file, or with --set labels.max_delay=P7D; only you know your labels",
            )
        )
    if problems:
        raise ConfigurationError(problems, EXAMPLE)


def require_log(settings: Settings) -> None:
    """Raise ConfigurationError unless the log's URL was given."""
    if problems := list(_missing_log(settings)):
        raise ConfigurationError(problems, EXAMPLE)


def _missing_log(settings: Settings) -> Iterator[Problem]:
    if not settings.log.url:
        yield Problem(
            "log.url", "missing: where the topics are", f"Set it in the file, or with --log URL: {_LOG_FORMS}"
        )


def _labels(labels: LabelSettings) -> Iterator[Problem]:
    positive, negative, classes = labels.positive, labels.negative, labels.classes
    if classes is not None:
        for key in ("positive", "negative"):
            if getattr(labels, key) != LabelSettings.model_fields[key].default:
                yield Problem(
                    f"labels.{key}", "labels.classes is set too", "Set one or the other", getattr(labels, key)
                )
        if classes != "open":
            yield from _classes(classes)
    elif type(positive) is not type(negative):
        yield Problem(
            "labels.positive",
            f"{positive!r} and labels.negative = {negative!r} are of different kinds",
            "Set both, to true and false, two integers or two strings",
            positive,
        )
    elif positive == negative:
        yield Problem(
            "labels.positive", "labels.negative is the same value", "Set two different values", positive
        )


def _classes(classes: Sequence[LabelValue]) -> Iterator[Problem]:
    shown = list(classes)
    if len({type(value) for value in classes}) > 1:
        yield Problem(
            "labels.classes",
            "the classes are of different kinds",
            "Use integers only, or strings only",
            shown,
        )
    elif len(set(classes)) < max(2, len(classes)):
        yield Problem("labels.classes", "needs at least two different classes", "List each class once", shown)


def require_learner(settings: Settings, partitions: int) -> None:
    """Raise ConfigurationError unless the learner can run on so many partitions."""
    if problems := list(_learner(settings, partitions)):
        raise ConfigurationError(problems)


def _learner(settings: Settings, partitions: int | None) -> Iterator[Problem]:
    # Imported late: the learners need numpy, and verbs that read no settings answer at once.
    from mistakebound.core.learners import KINDS
    from mistakebound.core.learners.requirements import unmet

    kind = settings.learner.kind
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        yield Problem("learner.kind", "unknown learner", f"{hint}Known: {', '.join(KINDS)}", kind)
    for one in unmet(settings, partitions):
        section, _, name = one.key.partition(".")
        value = getattr(getattr(settings, section), name)
        yield Problem(one.key, one.wrong, one.remedy, list(value) if isinstance(value, tuple) else value)


def _log_url(url: str) -> Iterator[Problem]:
    scheme, colon, rest = url.partition(":")
    if colon and scheme == "sqlite" and rest:
        return
    if colon and scheme in ("kafka", "kafka+confluent") and rest.startswith("//"):
        servers = rest.removeprefix("//").rstrip("/").split(",")
        if "@" in rest:
            remedy = "Set kafka.sasl_plain_username and kafka.sasl_plain_password instead"
            yield Problem("log.url", "credentials do not belong in the URL", remedy, url)
            return
        for server in servers:
            if (wrong := _host_port(server)) is not None:
                yield Problem("log.url", f"{wrong} in {server!r}", f"Write {_LOG_FORMS}", url)
        return
    yield Problem("log.url", "is not the URL of a log", f"Write {_LOG_FORMS}", url)


def _checkpoint(checkpoint: CheckpointSettings) -> Iterator[Problem]:
    try:
        place_of(checkpoint.url)
    except ValueError as error:
        remedy = f"Write {FORMS}; credentials come from the environment"
        yield Problem("checkpoint.url", str(error), remedy, checkpoint.url)
    if not checkpoint.timeout:
        remedy = "Write at least a few seconds"
        yield Problem("checkpoint.timeout", "leaves no time for an answer", remedy, 0)


def _address(address: str) -> Iterator[Problem]:
    if (wrong := _host_port(address)) is not None:
        yield Problem("http.address", wrong, "Write host:port, such as 127.0.0.1:9464 or [::1]:9464", address)


def _host_port(text: str) -> str | None:
    """What is wrong with `host:port` or `[v6]:port`; None for nothing."""
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        return "host or port is missing"
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        return "an IPv6 address needs brackets"
    if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        return "the port is not a number up to 65535"
    return None
