"""What is made from other files: {path: content}. One source for `kubectl apply -k` and for Helm.

A template of the chart is a manifest of `deploy/kubernetes`, comments included, with the replacements below. Each old text
must be there as often as is said, so a manifest that changes where it is replaced is noticed. By hand are only the chart's
values and their schema, and the templates that no manifest has.
"""

from pathlib import Path
from typing import NamedTuple

from tests.support.project import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARDS = ROOT / "deploy" / "grafana" / "dashboards"
CHART = ROOT / "deploy" / "helm"


class Replacement(NamedTuple):
    """Of a text that a manifest has so many times."""

    old: str
    new: str
    times: int = 1


NAME = Replacement(
    "metadata:\n  name: mistakebound\n", 'metadata:\n  name: {{ include "mistakebound.fullname" . }}\n'
)
ACCOUNT = Replacement(
    "serviceAccountName: mistakebound\n",
    'serviceAccountName: {{ include "mistakebound.fullname" . }}\n',
)
CONFIGURATION = Replacement(
    "configMap: {name: mistakebound}\n", 'configMap: {name: {{ include "mistakebound.fullname" . }}}\n'
)
IMAGE = Replacement(
    "image: mistakebound\n",
    'image: {{ include "mistakebound.image" . }}\n'
    "          {{- with .Values.image.pullPolicy }}\n          imagePullPolicy: {{ . }}\n          {{- end }}\n",
)
SPEC_OF_POD = Replacement(
    "      enableServiceLinks: false\n",
    "      enableServiceLinks: false\n"
    "      {{- with .Values.imagePullSecrets }}\n      imagePullSecrets: {{- toYaml . | nindent 8 }}\n      {{- end }}\n"
    "      {{- with .Values.nodeSelector }}\n      nodeSelector: {{- toYaml . | nindent 8 }}\n      {{- end }}\n"
    "      {{- with .Values.tolerations }}\n      tolerations: {{- toYaml . | nindent 8 }}\n      {{- end }}\n",
)
MOUNT = Replacement(
    "            - {name: configuration, mountPath: /etc/mistakebound, readOnly: true}\n",
    "            - {name: configuration, mountPath: /etc/mistakebound, readOnly: true}\n"
    "            {{- if .Values.kafkaSecret }}\n"
    "            - {name: kafka, mountPath: /run/secrets/kafka, readOnly: true}\n"
    "            {{- end }}\n",
)
VOLUME = Replacement(
    CONFIGURATION.new,
    CONFIGURATION.new + "        {{- if .Values.kafkaSecret }}\n"
    "        - name: kafka\n"
    "          secret: {secretName: {{ .Values.kafkaSecret }}, defaultMode: 0440}\n"
    "        {{- end }}\n",
)
ENVIRONMENT = (
    "            {{- with .Values.env }}\n            {{- toYaml . | nindent 12 }}\n            {{- end }}\n"
)

INSTANCE = ("app.kubernetes.io/instance: mistakebound\n", "app.kubernetes.io/instance: {{ .Release.Name }}\n")
"""In every manifest, as often as it is there: two releases must not find each other's pods."""

TEMPLATES: dict[str, tuple[str, tuple[Replacement, ...]]] = {
    "networkpolicy": (
        ".Values.networkPolicy.enabled",
        (
            NAME,
            Replacement(
                "metadata.name: monitoring\n",
                "metadata.name: {{ .Values.networkPolicy.prometheusNamespace }}\n",
            ),
            Replacement(
                "metadata.name: kafka\n", "metadata.name: {{ .Values.networkPolicy.kafkaNamespace }}\n"
            ),
            Replacement("port: 9092}\n", "port: {{ .Values.networkPolicy.kafkaPort }}}\n"),
            Replacement(
                "    # With checkpoints in",
                "    {{- with .Values.networkPolicy.egress }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n"
                "    # With checkpoints in",
            ),
        ),
    ),
    "poddisruptionbudget": (".Values.podDisruptionBudget.enabled", (NAME,)),
    "service": ("", (NAME,)),
    "serviceaccount": (
        "",
        (
            Replacement(
                NAME.old,
                NAME.new
                + "  {{- with .Values.serviceAccount.annotations }}\n  annotations: {{- toYaml . | nindent 4 }}\n  {{- end }}\n",
            ),
        ),
    ),
    "servicemonitor": (
        ".Values.monitoring.serviceMonitor",
        (
            Replacement(
                NAME.old,
                NAME.new
                + "  {{- with .Values.monitoring.labels }}\n  labels: {{- toYaml . | nindent 4 }}\n  {{- end }}\n",
            ),
            Replacement("interval: 15s\n", "interval: {{ .Values.monitoring.interval }}\n"),
        ),
    ),
    "statefulset": (
        "",
        (
            NAME,
            Replacement(
                "serviceName: mistakebound\n", 'serviceName: {{ include "mistakebound.fullname" . }}\n'
            ),
            Replacement(
                "  replicas: 2\n",
                "  {{- if not .Values.autoscaling }}\n  replicas: {{ .Values.replicas }}\n  {{- end }}\n",
            ),
            Replacement(
                "  template:\n    metadata:\n",
                "  template:\n    metadata:\n      annotations:\n"
                "        # Another configuration rolls the workers.\n"
                '        checksum/configuration: {{ include "mistakebound.configuration" . | sha256sum }}\n'
                "        {{- with .Values.podAnnotations }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n",
            ),
            ACCOUNT,
            SPEC_OF_POD,
            IMAGE,
            Replacement("          ports:\n", ENVIRONMENT + "          ports:\n"),
            Replacement(
                "            requests: {cpu: 500m, memory: 512Mi}\n            limits: {memory: 512Mi}\n",
                "            {{- toYaml .Values.resources | nindent 12 }}\n",
            ),
            MOUNT,
            CONFIGURATION,
            VOLUME,
            Replacement(
                "        accessModes: [ReadWriteOncePod]\n",
                "        accessModes: [{{ .Values.checkpoints.accessMode }}]\n"
                "        {{- with .Values.checkpoints.storageClassName }}\n        storageClassName: {{ . }}\n        {{- end }}\n",
            ),
            Replacement("storage: 1Gi\n", "storage: {{ .Values.checkpoints.size }}\n"),
        ),
    ),
    "topics": (
        ".Values.topics.create",
        (
            # A job cannot be changed: each revision of a release has its own.
            Replacement(
                "name: mistakebound-topics\n",
                'name: {{ include "mistakebound.fullname" . }}-topics-{{ .Release.Revision }}\n',
            ),
            ACCOUNT,
            SPEC_OF_POD,
            IMAGE,
            MOUNT,
            CONFIGURATION,
            VOLUME,
        ),
    ),
}
"""A manifest's name -> under which condition it is part of a release (empty: always), and what is replaced in it."""


def made() -> dict[Path, str]:
    """{where it goes: what is written there}. Raises ValueError for a replacement that does not fit its manifest."""
    rules = (PROMETHEUS / "rules.yml").read_text()
    found = {KUBERNETES / "prometheusrule.yaml": prometheus_rule(rules)}
    for name, (condition, replacements) in TEMPLATES.items():
        found[CHART / "templates" / f"{name}.yaml"] = template(name, condition, replacements)
    copied = [PROMETHEUS / "rules.yml", KUBERNETES / "mistakebound.toml", *sorted(DASHBOARDS.glob("*.json"))]
    # A chart must be whole: what is outside its folder is not part of it, and links to there are refused by some tools.
    return found | {CHART / "files" / path.name: path.read_text() for path in copied}


def prometheus_rule(rules: str) -> str:
    """The rules as the Prometheus operator takes them."""
    comment, _, groups = rules.partition("groups:\n")
    return (
        "# Made from deploy/prometheus/rules.yml by `python -m tests.manifests`.\n"
        f"{comment}apiVersion: monitoring.coreos.com/v1\n"
        "kind: PrometheusRule\nmetadata:\n  name: mistakebound\nspec:\n  groups:\n"
        + "".join(f"  {line}" if line.strip() else line for line in groups.splitlines(keepends=True))
    )


def template(name: str, condition: str, replacements: tuple[Replacement, ...]) -> str:
    """A manifest as a template of the chart."""
    text = (KUBERNETES / f"{name}.yaml").read_text().replace(*INSTANCE)
    for old, new, times in replacements:
        if text.count(old) != times:
            raise ValueError(f"{name}.yaml has {old!r} {text.count(old)} times, not {times}")
        text = text.replace(old, new)
    head = f"{{{{- /* Made from deploy/kubernetes/{name}.yaml by `python -m tests.manifests`. */}}}}\n"
    return head + (f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text)
