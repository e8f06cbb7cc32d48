"""Checks of settings against each other, and of values by more than their type. Pure."""

import difflib
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from mistakebound.config.problems import ConfigurationError, Problem
from mistakebound.config.schema_files import CLIENT, EXTRA, LIBRARIES, missing
from mistakebound.core.records import TOPICS
from mistakebound.settings import LabelSettings, RegistrySettings, Settings
from mistakebound.worker.checkpoints.store import FORMS, place_of

if TYPE_CHECKING:
    from mistakebound.core.learners.kind import Unmet

EXAMPLE = """\
A mistakebound.toml to start from:

[log]
url = "kafka://localhost:9092"

[labels]
max_delay = "P7D"  # how long an example waits for its label"""

_LOG_FORMS = "kafka://host:9092, kafka+confluent://host:9092, sqlite:FILE or sqlite::memory:"
_MISSING_LOG = Problem(
    "log.url", "missing: where the topics are", f"Set it in the file, or with --log URL: {_LOG_FORMS}"
)
_MISSING_DELAY = Problem(
    "labels.max_delay",
    "missing: how long an example waits for its label",
    "Set it in the file, or with --set labels.max_delay=P7D; only you know your labels",
)


def inconsistencies(settings: Settings) -> Iterator[Problem]:
    """Every problem that is more than a value of the wrong type; where values came from is not known here."""
    of_labels = list(_labels(settings.labels))
    yield from of_labels
    yield from _topics(settings)
    yield from _cross(settings)
    yield from _columns(settings)
    yield from _formats(settings)
    for one in _learner(settings, settings.log.partitions):
        if not (of_labels and one.key == "labels.costs"):  # of what classes, is not known then
            yield one
    if (url := settings.log.url) and (problem := _log_url(url)) is not None:
        yield problem
    address = settings.http.address
    if address and (wrong := _host_port(address)) is not None:
        yield Problem("http.address", wrong, "Write host:port, such as 127.0.0.1:9464 or [::1]:9464", address)
    try:
        place_of(settings.checkpoint.url)
    except ValueError as error:
        remedy = f"Write {FORMS}; credentials come from the environment"
        yield Problem("checkpoint.url", str(error), remedy, settings.checkpoint.url)
    yield from _spans(settings)
    if not settings.checkpoint.timeout:
        yield Problem("checkpoint.timeout", "leaves no time for an answer", "Write at least a few seconds", 0)


def require_for_run(settings: Settings) -> None:
    """Raise ConfigurationError, with an example file, unless everything `run` needs was given."""
    problems = [] if settings.log.url else [_MISSING_LOG]
    if settings.labels.max_delay is None:
        problems.append(_MISSING_DELAY)
    if problems:
        raise ConfigurationError(problems, EXAMPLE)


def require_log(settings: Settings) -> None:
    """Raise ConfigurationError unless the log's URL was given."""
    if not settings.log.url:
        raise ConfigurationError([_MISSING_LOG], EXAMPLE)


def _labels(labels: LabelSettings) -> Iterator[Problem]:
    positive, negative, classes = labels.positive, labels.negative, labels.classes
    if classes is not None:
        for key, value in (("positive", positive), ("negative", negative)):
            if value != LabelSettings.model_fields[key].default:
                yield Problem(f"labels.{key}", "labels.classes is set too", "Set one or the other", value)
        if classes == "open":
            return
        if len(set(map(type, classes))) > 1:
            wrong, remedy = "the classes are of different kinds", "Use integers only, or strings only"
            yield Problem("labels.classes", wrong, remedy, list(classes))
        elif len(set(classes)) < max(2, len(classes)):
            wrong, remedy = "needs at least two different classes", "List each class once"
            yield Problem("labels.classes", wrong, remedy, list(classes))
    elif type(positive) is not type(negative):
        wrong = f"{positive!r} and labels.negative = {negative!r} are of different kinds"
        remedy = "Set both, to true and false, two integers or two strings"
        yield Problem("labels.positive", wrong, remedy, positive)
    elif positive == negative:
        wrong, remedy = "labels.negative is the same value", "Set two different values"
        yield Problem("labels.positive", wrong, remedy, positive)


def _topics(settings: Settings) -> Iterator[Problem]:
    """Two topics in one would read each other's records."""
    seen: dict[str, str] = {}
    for topic in TOPICS:
        key, name = f"topics.{topic.replace('-', '_')}", settings.topic_name(topic)
        other = seen.setdefault(name, key)
        if other != key:
            wrong, remedy = f"{other} has this name, too", "Give each topic a name of its own"
            yield Problem(key, wrong, remedy, name)


def _cross(settings: Settings) -> Iterator[Problem]:
    cross, messages = settings.features.cross, settings.messages
    if cross is None and settings.features.cross_shared:
        wrong, remedy = "features.cross is not set", "Set it to where the tenant is, or leave both out"
        yield Problem("features.cross_shared", wrong, remedy, True)
    if cross == messages.id:
        wrong, remedy = "is messages.id, and an id is of one example", "Point at what names the tenant"
        yield Problem("features.cross", wrong, remedy, cross)
    if cross == messages.features:
        wrong, remedy = "is messages.features, all features", f"Point at one, such as {cross}/tenant"
        yield Problem("features.cross", wrong, remedy, cross)


def _columns(settings: Settings) -> Iterator[Problem]:
    features = settings.features
    both = [one for one in features.include or () if one in (features.exclude or ())]
    if both:
        wrong = f"{both[0]!r} is in features.include, too, so that it is never read"
        yield Problem(
            "features.exclude", wrong, "Leave it out of one of the two", list(features.exclude or ())
        )


def _formats(settings: Settings) -> Iterator[Problem]:
    """What reads the inputs, and where schemas come from."""
    messages, registry = settings.messages, settings.registry
    labels = messages.labels_format or messages.format
    for key, form, schema, message in (
        ("format", messages.format, messages.examples_schema, messages.examples_message),
        ("labels_format", labels, messages.labels_schema, messages.labels_message),
    ):
        stream = "examples" if key == "format" else "labels"
        if lacking := missing(LIBRARIES.get(form, ())):
            remedy = f"Install `mistakebound[{EXTRA}]`"
            yield Problem(f"messages.{key}", f"needs {', '.join(lacking)}, which is missing", remedy, form)
        if form == "json" and schema is not None:
            remedy = f"Set messages.{key}, or leave messages.{stream}_schema out"
            yield Problem(
                f"messages.{stream}_schema", f"{stream} are in JSON, without a schema", remedy, "@..."
            )
        if form != "json" and schema is None and registry.url is None:
            remedy = f'Set registry.url, or messages.{stream}_schema = "@FILE" where records are not framed'
            yield Problem(f"messages.{key}", f"nothing says where the schemas of {stream} are", remedy, form)
        if message is not None and (form != "protobuf" or schema is None):
            wrong = f"messages.{stream}_schema names no Protobuf file"
            yield Problem(f"messages.{stream}_message", wrong, "Set it, or leave this out", message)
    yield from _registry(registry)


def _registry(registry: RegistrySettings) -> Iterator[Problem]:
    if registry.url is None:
        if given := ", ".join(f"registry.{name}" for name in sorted(registry.model_fields_set - {"url"})):
            yield Problem("registry.url", f"missing, but {given} is set", "Set it, or leave the others out")
        return
    if lacking := missing(CLIENT):
        remedy = f"Install `mistakebound[{EXTRA}]`"
        yield Problem("registry.url", f"needs {', '.join(lacking)}, which is missing", remedy, registry.url)
    for url in registry.url.split(","):
        if not url.strip().startswith(("http://", "https://")):
            remedy = "Write https://HOST:PORT, several separated by commas"
            yield Problem("registry.url", "is not the URL of a registry", remedy, registry.url)
        elif "@" in url:
            remedy = "Set registry.username and registry.password_file instead"
            yield Problem("registry.url", "credentials do not belong in the URL", remedy, registry.url)
    if registry.password is not None and registry.password_file is not None:
        yield Problem(
            "registry.password_file",
            "registry.password is set too",
            "Set one or the other",
            registry.password_file,
        )
    if registry.username is None and (registry.password is not None or registry.password_file is not None):
        yield Problem("registry.username", "missing: whose the password is", "Set it")
    if registry.username is not None and registry.token_file is not None:
        yield Problem(
            "registry.token_file", "registry.username is set too", "Log in in one way", registry.token_file
        )
    if not registry.timeout:
        yield Problem("registry.timeout", "leaves no time for an answer", "Write at least a few seconds", 0)


def _spans(settings: Settings) -> Iterator[Problem]:
    if not settings.worker.spans:
        return
    from mistakebound.worker import spans

    if lacking := missing((spans.EXPORTER,)):
        remedy = f"Install `mistakebound[{spans.EXTRA}]`, or leave it out"
        yield Problem("worker.spans", f"needs {lacking[0]}, which is missing", remedy, True)


def cautions(settings: Settings) -> list[Problem]:
    """What is allowed and hardly ever wanted; a worker runs with it."""
    from mistakebound.core.learners.requirements import cautions as of_learner

    return [
        *(_problem(settings, one) for one in of_learner(settings)),
        *_odd_columns(settings),
        *_no_delay(settings.labels),
    ]


def _no_delay(labels: LabelSettings) -> Iterator[Problem]:
    if labels.max_delay == timedelta(0):
        wrong, remedy = (
            "every example expires before its label comes",
            "Write how long labels take, such as P7D",
        )
        yield Problem("labels.max_delay", wrong, remedy, 0)


def _odd_columns(settings: Settings) -> Iterator[Problem]:
    """An id among the features, and a scale for what is not read."""
    from mistakebound.core.messages.columns import Columns
    from mistakebound.core.messages.inputs import pointer_keys

    messages, features = settings.messages, settings.features
    columns = Columns(features.include, features.exclude)
    if messages.id.startswith(messages.features + "/"):
        path = pointer_keys(messages.id)[len(pointer_keys(messages.features)) :]
        if columns.takes(path):
            name = path[0] if len(path) == 1 else messages.id.removeprefix(messages.features)
            wrong = "is one of the features, and differs in every example"
            remedy = f'Leave it out: features.exclude = ["{name}"]'
            yield Problem("messages.id", wrong, remedy, messages.id)
    for name in features.scale:
        if not columns.takes((name,)) and "/" not in name and "=" not in name:
            wrong = f"scales `{name}`, which features.include and features.exclude leave out"
            yield Problem("features.scale", wrong, "Leave it out of the one or the others", name)


def require_learner(settings: Settings, partitions: int) -> None:
    """Raise ConfigurationError unless the learner can run on this number of partitions."""
    if problems := list(_learner(settings, partitions)):
        raise ConfigurationError(problems)


def _learner(settings: Settings, partitions: int | None) -> Iterator[Problem]:
    # Imported late: the learners need numpy, and verbs that read no settings should answer at once.
    from mistakebound.core.learners import KINDS
    from mistakebound.core.learners.requirements import unmet

    kind = settings.learner.kind
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        yield Problem("learner.kind", "unknown learner", f"{hint}Known: {', '.join(KINDS)}", kind)
    for one in unmet(settings, partitions):
        yield _problem(settings, one)


def _problem(settings: Settings, one: "Unmet") -> Problem:
    section, _, name = one.key.partition(".")
    value = getattr(getattr(settings, section), name)
    return Problem(one.key, one.wrong, one.remedy, list(value) if isinstance(value, tuple) else value)


def _log_url(url: str) -> Problem | None:
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite" and rest:
        return None
    if scheme not in ("kafka", "kafka+confluent") or not rest.startswith("//"):
        return Problem("log.url", "is not the URL of a log", f"Write {_LOG_FORMS}", url)
    if "@" in rest:
        remedy = "Set kafka.sasl_plain_username and kafka.sasl_plain_password instead"
        return Problem("log.url", "credentials do not belong in the URL", remedy, url)
    servers = rest.removeprefix("//").rstrip("/").split(",")
    wrong = [f"{found} in {server!r}" for server in servers if (found := _host_port(server)) is not None]
    return Problem("log.url", "; ".join(wrong), f"Write {_LOG_FORMS}", url) if wrong else None


def _host_port(text: str) -> str | None:
    """What is wrong with `host:port` or `[v6]:port`; None where nothing is."""
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        return "host or port is missing"
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        return "an IPv6 address needs brackets"
    if not (port.isascii() and port.isdigit() and int(port) <= 65_535):
        return "the port is not a number up to 65535"
    return None
