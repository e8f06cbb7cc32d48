"""Every setting, its default, its check and its one-line meaning. Read once, at the edge.

`config/load.py` gathers the values from flags, environment and file; nothing here does I/O.
"""

from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    field_validator,
    model_validator,
)


def _duration(value: object) -> object:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta(0):
        raise ValueError("a duration cannot be negative")
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    AfterValidator(_not_negative),
    PlainSerializer(lambda value: value.total_seconds(), return_type=float),
]
"""Seconds (`3600`) or ISO 8601 (`PT1H`, `P7D`)."""

Pointer = Annotated[str, Field(pattern=r"^(/[^/]*)+$")]
PointerOrWhole = Annotated[str, Field(pattern=r"^(/[^/]*)*$")]
"""Empty: the whole message."""
Patterns = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
Scale = tuple[float, Annotated[float, Field(gt=0)]]
"""Centre and width."""
INITIAL: Literal["initial"] = "initial"
"""Winnow's default threshold: what the initial weights score on the example."""
LabelValue = bool | int | str
OF_EPOCH = ("learner", "features", "labels", "predictions")
"""The sections that are fixed with an epoch."""
Cost = Annotated[float, Field(ge=0, le=1e12)]
CostOrRow = Annotated[
    Annotated[Cost, Tag("number")] | Annotated[dict[str, Cost], Tag("table")],
    Discriminator(lambda value: "table" if isinstance(value, dict) else "number"),
]
"""Told apart beforehand, so that an error is only about the one that was meant."""


Format = Literal["json", "avro", "protobuf", "json-schema"]
POINTERS = ("id", "features", "label", "prediction")
"""Of the fields of `[messages]` those that every log records."""
OF_FILE = "sha256:"
"""Begins the id of a schema that a file, not a registry, gave."""


def schema_id(value: str) -> str:
    """The id by which a log knows the schema that a setting holds: the digest of its content."""
    return value if value.startswith(OF_FILE) else OF_FILE + sha256(value.encode()).hexdigest()


class Section(BaseModel):
    """A table of the configuration file. Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LogSettings(Section):
    url: str | None = Field(
        None,
        description="`kafka://host:9092` (or `kafka+confluent://...`), `sqlite:FILE` or `sqlite::memory:`; required for `run`",
    )
    prefix: str = Field(
        "",
        description="put in front of the name of each topic that `[topics]` does not name, and of the group's",
    )
    partitions: Positive | None = Field(None, description="for `topics create`: 4 on Kafka, 1 on sqlite")


class TopicSettings(Section):
    examples: str | None = Field(None, description="name of the topic; default `<prefix>examples`")
    labels: str | None = Field(None, description="name of the topic; default `<prefix>labels`")
    predictions: str | None = Field(None, description="name of the topic; default `<prefix>predictions`")
    outcomes: str | None = Field(None, description="name of the topic; default `<prefix>outcomes`")
    updates: str | None = Field(None, description="name of the topic; default `<prefix>updates`")
    dead_letters: str | None = Field(None, description="name of the topic; default `<prefix>dead-letters`")


class MessageSettings(Section):
    id: Pointer = Field(
        "/id",
        description="JSON pointer to the id in examples and labels; a message without one has its record's key as id",
    )
    features: PointerOrWhole = Field(
        "/features",
        description="JSON pointer to the features in examples; empty for the whole message, of which features.include and features.exclude choose",
    )
    label: Pointer = Field("/label", description="JSON pointer to the label in labels")
    prediction: Pointer = Field(
        "/prediction",
        description="JSON pointer to the prediction in very late labels, which carry it and the features",
    )
    format: Format = Field(
        "json",
        description="how examples and labels are written: `json`; or `avro`, `protobuf` or `json-schema` in a registry's framing, or plain by the schemas below; pointers then go into the decoded message",
    )
    labels_format: Format | None = Field(
        None, description="how labels are written, where that is another way; default as `format`"
    )
    examples_schema: str | None = Field(
        None,
        description="`@FILE`: the schema of all examples, which are then plain, without framing; default the one that each record names",
    )
    labels_schema: str | None = Field(None, description="`@FILE`: the same for labels")
    examples_message: str | None = Field(
        None,
        description="with `examples_schema`, Protobuf: the message's full name; default the file's first",
    )
    labels_message: str | None = Field(None, description="the same for labels")

    def of_rows(self) -> Self:
        """The same for messages that are made of labelled data, which are JSON."""
        return type(self).model_validate(self.model_dump(include=set(POINTERS)))

    def recorded(self) -> dict[str, str]:
        """As a log records how its inputs are read: of a schema the id alone, and nothing that is at its default
        and that earlier versions did not have."""
        pointers: dict[str, str] = self.model_dump(include=set(POINTERS))
        later = self.model_dump(exclude=set(POINTERS), exclude_defaults=True)
        return pointers | {
            name: schema_id(value) if name.endswith("_schema") else value for name, value in later.items()
        }


class RegistrySettings(Section):
    url: str | None = Field(
        None,
        description="`https://HOST:PORT`: the schema registry, by the interface of Confluent's; several, separated by commas, are tried in turn",
    )
    username: str | None = Field(None, description="log in with this name, and the password")
    password: str | None = Field(
        None, description="the password; better in `password_file`, or in MISTAKEBOUND_REGISTRY__PASSWORD"
    )
    password_file: str | None = Field(
        None, description="file that holds the password; read again for each new schema"
    )
    token_file: str | None = Field(
        None, description="file that holds a bearer token; read again for each new schema"
    )
    ca: str | None = Field(
        None,
        description="PEM file with the authority that signed the registry's certificate; default those that Python ships",
    )
    certificate: str | None = Field(
        None, description="PEM file with this client's certificate, and its key unless `key` names it"
    )
    key: str | None = Field(None, description="PEM file with the certificate's key")
    timeout: Duration = Field(
        timedelta(seconds=5), description="how long the registry may take for one answer"
    )
    cache: Duration = Field(
        timedelta(minutes=1),
        description="how long its answer is believed that it has no schema of an id; schemas themselves are kept for good",
    )


class LearnerSettings(Section):
    kind: str = Field("perceptron", description="the learner")
    learning_rate: float = Field(1.0, gt=0, description="perceptrons: r, in w = r theta")
    eta: float = Field(0.1, gt=0, description="Winnow kinds: the exponent's rate")
    initial_weight: float = Field(
        1.0, gt=0, description="Winnow kinds: w0, the weight of a feature never updated"
    )
    threshold: float | Literal["initial"] | None = Field(
        None,
        description='Winnow: score = w.x - threshold; `"initial"`, the default of `winnow`, is what the initial weights score on the example, w0 times the sum of its features; littlestone-winnow needs a number, about half of its variables',
    )
    margin: float = Field(0.0, ge=0, description="margin-perceptron: update while y w.x is below it")
    variant: Literal["PA", "PA-I", "PA-II"] | None = Field(
        None,
        description="passive-aggressive: `PA` makes the loss 0, `PA-I` goes at most as far as C, `PA-II` is damped by 1/(2C); default PA-I",
    )
    aggressiveness: float | None = Field(
        None, gt=0, description="passive-aggressive: C of PA-I and PA-II; default 1"
    )
    gamma: float | None = Field(
        None,
        gt=0,
        description="the margin that you declare a unit separator has; bounds are shown for it, the normalised margin learner asks for it",
    )
    alpha: float = Field(2.0, gt=1, description="littlestone-winnow: the factor of a promotion")
    demotion: Literal["divide", "zero"] = Field(
        "divide", description="littlestone-winnow: divide by alpha, or set to zero (disjunctions only)"
    )
    relevant: Positive | None = Field(
        None,
        description="littlestone-winnow: the literals k that you declare a disjunction has, for its bound",
    )
    kernel: Literal["polynomial", "rbf"] = Field(
        "polynomial", description="kernel-perceptron: (x.z + 1)^degree, or exp(-|x - z|^2 / (2 width^2))"
    )
    degree: Positive = Field(2, description="kernel-perceptron: the polynomial's degree")
    width: float = Field(1.0, gt=0, description="kernel-perceptron: the width of rbf")
    budget: Positive | None = Field(
        None,
        description="kernel- and voted-perceptron: mistakes kept per partition, the oldest go; default 10,000 for voted, none for kernel",
    )
    variables: Annotated[int, Field(ge=1, le=1_000_000)] | tuple[str, ...] | None = Field(
        None,
        description='Boolean learners: the variables, by name, or how many (named "0", "1" ... as in an array)',
    )
    concepts: str | None = Field(
        None, description="elimination, con, halving: the class, see `mistakebound learners --concepts`"
    )
    ranking_seed: int | None = Field(
        None, description="con: shuffle the class by this seed; default its own order"
    )
    tie: Literal["mistake", "positive", "negative"] = Field(
        "mistake",
        description="score 0: `mistake` predicts negative and updates whatever the label; else that class, update when it differs",
    )
    window: Positive | None = Field(
        None,
        description="linear perceptrons and Winnow kinds: only this many of the newest updates of each partition count, left out by tenths; default all",
    )
    on_refuted: Literal["restart"] | None = Field(
        None,
        description="`restart`: start from zero in every worker once the updates prove that no separator of margin gamma fits them; by default such proofs are only counted",
    )
    delay_policy: Literal["rescore", "issued"] = Field(
        "rescore",
        description="`rescore`: update if the current model errs when the label comes; `issued`: if the published prediction did",
    )

    cost_sensitive: bool | None = Field(
        None,
        description="perceptron and averaged-perceptron: an update adds the cost of its mistake times y*x, as labels.costs says; the costs are then part of the epoch",
    )

    @field_validator("cost_sensitive")
    @classmethod
    def _said_or_not(cls, learns: bool | None) -> bool | None:
        """An epoch that was begun before there was one holds none, which is no."""
        return learns or None

    @model_validator(mode="after")
    def _default_threshold(self) -> Self:
        """Winnow's, where none is given. An epoch that was begun before there was one holds null, which is 0."""
        if self.kind == "winnow" and "threshold" not in self.model_fields_set:
            object.__setattr__(self, "threshold", INITIAL)
        return self


class FeatureSettings(Section):
    bias: bool = Field(True, description="add the constant feature BIAS, last")
    normalize: Literal["none", "unit"] = Field(
        "none", description="`unit` divides by the length, BIAS included"
    )
    missing: Literal["reject", "skip"] = Field(
        "reject", description="a null feature value: reject the example, or skip the feature"
    )
    scale: dict[str, Scale] = Field(
        default_factory=dict,
        description="feature to `[centre, width]`: x becomes (x - centre)/width, before normalising; an absent feature stays absent, BIAS is not scaled; `mistakebound replay FILE --fit-scale` prints it",
    )
    include: Patterns | None = Field(
        None,
        description="read only these features: names, in which `*` stands for any text, or JSON pointers from the features on, as `/after/*`, which also reach into nested objects; default all",
    )
    exclude: Patterns | None = Field(
        None,
        description='do not read these, whatever they hold; patterns as in `include`: `["id", "*_at"]`',
    )
    cross: Pointer | None = Field(
        None,
        description="JSON pointer to the tenant in examples: each feature, BIAS included, is learned as `tenant|name`, so that each tenant has a model of its own; default one model for all",
    )
    cross_shared: bool | None = Field(
        None,
        description="with `cross`: learn each feature as itself, too, for tenants that nobody has seen; default false",
    )

    @field_validator("scale")
    @classmethod
    def _not_bias(cls, scale: dict[str, Scale]) -> dict[str, Scale]:
        if "BIAS" in scale:
            raise ValueError("BIAS is constant and is not scaled")
        return scale

    @field_validator("cross_shared")
    @classmethod
    def _said_or_not(cls, shared: bool | None) -> bool | None:
        """An epoch that was begun before there was one holds none, which is no."""
        return shared or None


class LabelSettings(Section):
    positive: LabelValue = Field(True, description="the positive class as predictions and labels spell it")
    negative: LabelValue = Field(False, description="the negative class")
    classes: tuple[LabelValue, ...] | Literal["open"] | None = Field(
        None,
        description="two or more classes, in the order that breaks ties; or `open`: any text is a class",
    )
    max_classes: Annotated[int, Field(ge=1, le=1_000)] = Field(
        1_000, description="open classes: how many at most, per partition"
    )
    costs: dict[str, CostOrRow] | None = Field(
        None,
        description="what mistakes cost: of two classes `{false_positive = 1, false_negative = 25}`, of more a table for each true class, such as `{cat = {dog = 5}}`; 1 where nothing is said; counted, and learned from only with `learner.cost_sensitive`",
    )
    max_delay: Duration | None = Field(
        None, description="how long an example waits for its label; required for `run`"
    )
    parking: Duration = Field(timedelta(hours=1), description="how long a label waits for its example")
    max_parked: Positive = Field(100_000, description="labels waiting for their example, per partition")
    max_waiting: Positive = Field(1_000_000, description="examples waiting for their label, per partition")
    remember: Positive = Field(100_000, description="resolved ids remembered, per partition")
    ask: float | None = Field(
        None,
        gt=0,
        description="b: ask for the label of an example with score s with probability b/(b + |s|), and learn from no other; default every label",
    )
    ask_seed: int | None = Field(
        None, description="with `ask`: which labels are asked for at equal scores; default 0"
    )


class PredictionSettings(Section):
    probability: bool = Field(
        False,
        description="publish beside each score the probability of the positive class, from the partition's own labels; linear perceptrons and passive-aggressive",
    )


class BatchSettings(Section):
    max_records: Annotated[int, Field(ge=1, le=100_000)] = Field(
        16_000, description="a step closes after this many records, expiries and unparkings"
    )
    max_bytes: Positive = Field(
        16_000_000,
        description="a step closes after this many bytes to write; at most four times as much input is buffered",
    )
    max_delay: Duration = Field(timedelta(milliseconds=50), description="a step closes after this long")


class CheckpointSettings(Section):
    url: str = Field(
        "./checkpoints",
        description="where checkpoints are kept: a folder, `file:///path` or `s3://bucket/prefix`; empty for nowhere",
    )
    timeout: Duration = Field(
        timedelta(seconds=30),
        description="how long an object store may take for one answer; after that the work goes on without it",
    )
    every_updates: Positive = Field(10_000, description="write a checkpoint after this many updates")
    every: Duration = Field(
        timedelta(seconds=60), description="write a checkpoint after this long, if there was an update"
    )


class HttpSettings(Section):
    address: str = Field(
        "127.0.0.1:9464",
        description="where the status page, /metrics, /healthz and /readyz are served; empty for nowhere",
    )
    tls_certificate: str | None = Field(
        None, description="PEM file: serve over TLS with this certificate; default without TLS"
    )
    tls_key: str | None = Field(
        None, description="PEM file with the certificate's key; default in the certificate's file"
    )
    tls_client_authority: str | None = Field(
        None,
        description="PEM file: serve all but the probes only to clients whose certificate this authority signed",
    )


class WorkerSettings(Section):
    group: str | None = Field(None, description="consumer group; default `<prefix>mistakebound`")
    slot: str | None = Field(
        None, description="this worker's stable name in the group; default the full host name"
    )

    spans: bool = Field(
        False,
        description="send a span for each step by OpenTelemetry, to where `OTEL_EXPORTER_OTLP_ENDPOINT` says; needs the extra `otel`",
    )
    misplaced_labels: Literal["refuse", "warn"] = Field(
        "refuse",
        description="where a sample proves that labels lie in other partitions than their examples: `refuse` to start, or `warn` and start",
    )


class Settings(Section):
    """The whole configuration."""

    log: LogSettings = LogSettings()
    topics: TopicSettings = TopicSettings()
    messages: MessageSettings = MessageSettings()
    registry: RegistrySettings = RegistrySettings()
    learner: LearnerSettings = LearnerSettings()
    features: FeatureSettings = FeatureSettings()
    labels: LabelSettings = LabelSettings()
    predictions: PredictionSettings = PredictionSettings()
    batch: BatchSettings = BatchSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    http: HttpSettings = HttpSettings()
    worker: WorkerSettings = WorkerSettings()
    kafka: dict[str, Any] = Field(
        default_factory=dict, description="any kafka-python client option (TLS, SASL ...)"
    )

    def topic_name(self, topic: str) -> str:
        """The name on the log of a logical topic."""
        named: str | None = getattr(self.topics, topic.replace("-", "_"))
        return named if named is not None else self.log.prefix + topic

    @property
    def group(self) -> str:
        """The consumer group's name."""
        return self.worker.group or f"{self.log.prefix}mistakebound"

    def of_epoch(self) -> Mapping[str, Any]:
        """What an epoch fixes: every setting of these sections, as JSON values.

        `predictions` is left out where it asks for nothing: earlier versions did not have it. Costs count only where they are
        learned from: else they are applied as they are set now.
        """
        whole = self.model_dump(mode="json", include=set(OF_EPOCH))
        if not self.predictions.probability:
            del whole["predictions"]
        if not self.learner.cost_sensitive:
            whole["labels"]["costs"] = None
        return whole
