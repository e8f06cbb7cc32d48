"""The Kubernetes manifests are what they must be: by strict schemas, and by what the worker and its image are."""

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft202012Validator

from mistakebound.config.checks import require_for_run
from mistakebound.config.keys import keys
from mistakebound.config.load import load
from mistakebound.worker.http.server import parse_address
from mistakebound.worker.process import DRAIN_S
from tests.deploy.support.deployed import (
    GRAFANA,
    PROMETHEUS,
    ROOT,
    image,
    image_environment,
    image_exec,
    read_yaml,
)
from tests.deploy.support.pages import blocks

FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.37")
"""The oldest with all that the manifests use, and the newest that the schemas know."""
WORKLOADS = ("StatefulSet", "Job")
DASHBOARDS = "../grafana"
"""A kustomization of its own, since dashboards are once for each Grafana."""
TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "object", "additionalProperties": TEXT}
PROMETHEUS_RULE = Draft202012Validator(
    {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": "monitoring.coreos.com/v1"},
            "spec": {
                "required": ["groups"],
                "additionalProperties": False,
                "properties": {
                    "groups": {
                        "type": "array",
                        "items": {
                            "required": ["name", "rules"],
                            "additionalProperties": False,
                            "properties": {
                                "name": TEXT,
                                "interval": TEXT,
                                "rules": {
                                    "type": "array",
                                    "items": {
                                        "required": ["expr"],
                                        "additionalProperties": False,
                                        "properties": dict.fromkeys(
                                            ("alert", "record", "expr", "for", "keep_firing_for"), TEXT
                                        )
                                        | dict.fromkeys(("labels", "annotations"), TEXTS),
                                    },
                                },
                            },
                        },
                    }
                },
            },
        },
    }
)
"""What of the operator's kind is in use here, in words of our own; promtool checks the rules themselves."""


@cache
def kustomization() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(FOLDER / "kustomization.yaml")
    return found


@cache
def manifests() -> dict[str, dict[str, Any]]:
    """What the kustomization names, by kind; the ConfigMap as it generates it."""
    found = [read_yaml(FOLDER / name) for name in kustomization()["resources"] if name != DASHBOARDS]
    (generated,) = kustomization()["configMapGenerator"]
    content = {name: (FOLDER / name).read_text() for name in generated["files"]}
    found.append(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generated["name"]}, "data": content}
    )
    assert len({each["kind"] for each in found}) == len(found)
    return {each["kind"]: each for each in found}


def template(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = manifests()[kind]["spec"]["template"]
    return found


def container(kind: str) -> dict[str, Any]:
    (found,) = template(kind)["spec"]["containers"]
    return found


# --- schemas ----------------------------------------------------------------------------------------------


@cache
def service_monitor() -> Draft202012Validator:
    """The operator's own schema, with no field but those that it names."""
    path = Path(__file__).parent / "kubernetes-crds" / "servicemonitors.yaml"
    (version,) = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    return Draft202012Validator(_closed(version["schema"]["openAPIV3Schema"]))


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _closed(value) for key, value in schema.items()}
    if isinstance(inner.get("properties"), dict) and inner["properties"].keys() != {
        "apiVersion",
        "kind",
        "metadata",
    }:
        inner["additionalProperties"] = False
    if schema.get("type") == "object" and "metadata" in schema.get("properties", {}):
        inner["properties"]["metadata"] = {}  # every object's, and checked with the others
    return inner


def faults(manifest: dict[str, Any], version: str) -> list[str]:
    """What is wrong with a manifest by its schema."""
    if manifest["kind"] == "ServiceMonitor":
        return [each.message for each in service_monitor().iter_errors(manifest)]
    if manifest["kind"] == "PrometheusRule":
        return [each.message for each in PROMETHEUS_RULE.iter_errors(manifest)]
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [error.message]
    return []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", manifests())
def test_a_manifest_fits_its_schema(kind: str, version: str) -> None:
    """Kubernetes' own, in the strict form that knows every field."""
    assert faults(manifests()[kind], version) == []


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("StatefulSet", ("spec", "template", "spec", "containers", 0, "readinesProbe"), {}),
        (
            "StatefulSet",
            ("spec", "template", "spec", "containers", 0, "livenessProbe", "httpGet", "port"),
            [1],
        ),
        ("StatefulSet", ("spec", "replicas"), "two"),
        ("Job", ("spec", "backoff"), 3),
        ("PodDisruptionBudget", ("spec", "maxUnavailabel"), 1),
        ("NetworkPolicy", ("spec", "egress", 0, "ports", 0, "protocoll"), "TCP"),
        ("ServiceMonitor", ("spec", "endpoints", 0, "intervall"), "15s"),
        ("ServiceMonitor", ("spec", "endpoints", 0, "interval"), "15 seconds"),
        ("PrometheusRule", ("spec", "groups", 0, "rules", 0, "expression"), "1"),
    ],
)
def test_a_slip_is_found(kind: str, path: tuple[Any, ...], value: Any) -> None:
    """A field misspelt, or of another type, wherever it is."""
    manifest = copy.deepcopy(manifests()[kind])
    inner = manifest
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    assert faults(manifest, VERSIONS[-1]) != []


def test_every_file_is_used() -> None:
    """By the kustomization, which names no file that is not there."""
    used = {*kustomization()["resources"], "kustomization.yaml"} - {DASHBOARDS}
    for generated in kustomization()["configMapGenerator"]:
        used |= set(generated["files"])
    assert {path.name for path in FOLDER.iterdir()} == used
    assert kustomization().keys() <= {
        *("apiVersion", "kind", "namespace", "resources", "configMapGenerator", "images", "replicas")
    }


# --- the worker, its image and its configuration ---------------------------------------------------------------


def environment() -> dict[str, str]:
    """What the worker's process finds: the image's, and what the pod adds."""
    own = {each["name"]: each.get("value", "mistakebound-0") for each in container("StatefulSet")["env"]}
    return {**image_environment(), **own}


def test_the_configuration_is_complete() -> None:
    """As `config check` has it, with the pod's environment; every variable is a setting's."""
    settings = load(FOLDER / "mistakebound.toml", (), None, environment()).settings
    require_for_run(settings)
    assert settings.worker.slot == "mistakebound-0"
    names = {"MISTAKEBOUND_" + key.upper().replace(".", "__") for key in keys()}
    assert {each["name"] for each in container("StatefulSet")["env"]} <= names
    assert settings.log.partitions is not None
    (replicas,) = kustomization()["replicas"]
    assert replicas["count"] <= settings.log.partitions


def test_what_is_commented_out_is_right_too(tmp_path: Path) -> None:
    """Kafka's options, the secret's file where the pod has it, the store: when their marks are taken away."""
    lines = [line.removeprefix("# ") for line in (FOLDER / "mistakebound.toml").read_text().splitlines()]
    lines = [line for line in lines if line.startswith("[") or " = " in line]
    manifest = (FOLDER / "statefulset.yaml").read_text()
    mount = re.search(r"# - \{name: kafka, mountPath: (\S+),", manifest)
    variable = re.search(r"# - (\{name: MISTAKEBOUND_CHECKPOINT__URL, .*\})", manifest)
    assert mount is not None
    assert variable is not None
    secret, file = tmp_path / "password", tmp_path / "mistakebound.toml"
    secret.write_text("from the file\n")
    file.write_text("\n".join(lines).replace(mount[1], str(tmp_path)))
    added = yaml.safe_load(variable[1])
    settings = load(file, (), None, {**environment(), added["name"]: added["value"]}).settings
    assert settings.checkpoint.url == "s3://bucket/mistakebound"
    assert settings.kafka["sasl_plain_password"] == "from the file"


def test_the_file_sets_nothing_that_a_variable_of_the_image_sets() -> None:
    """It would have no effect."""
    origins = load(FOLDER / "mistakebound.toml", (), None, {}).origins
    from_file = {key for key, origin in origins.items() if origin.kind == "file"}
    assert from_file
    variables = {"MISTAKEBOUND_" + key.upper().replace(".", "__") for key in from_file}
    assert not variables & environment().keys()


def test_the_slot_outlives_the_pod() -> None:
    """It is the pod's name, which a StatefulSet gives again."""
    (slot,) = [
        each for each in container("StatefulSet")["env"] if each["name"] == "MISTAKEBOUND_WORKER__SLOT"
    ]
    assert slot["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert manifests()["StatefulSet"]["spec"]["podManagementPolicy"] == "Parallel"


def test_the_one_writable_place_is_the_images() -> None:
    """For checkpoints, one for each worker; the configuration is read where the image looks for it."""
    spec = manifests()["StatefulSet"]["spec"]
    (claim,) = spec["volumeClaimTemplates"]
    mounts = {each["name"]: each for each in container("StatefulSet")["volumeMounts"]}
    (volume,) = image_exec("VOLUME")
    (workdir,) = image("WORKDIR")
    assert mounts[claim["metadata"]["name"]]["mountPath"] == volume
    settings = load(FOLDER / "mistakebound.toml", (), None, environment()).settings
    assert settings.checkpoint.url == volume
    assert mounts["configuration"]["mountPath"] == workdir
    assert [name for name, mount in mounts.items() if not mount.get("readOnly")] == [
        claim["metadata"]["name"]
    ]


def test_ports_and_probes_are_the_workers() -> None:
    """The port is the image's; each probe asks what its answer means for the pod."""
    worker = container("StatefulSet")
    (port,) = worker["ports"]
    address = load(FOLDER / "mistakebound.toml", (), None, environment()).settings.http.address
    assert parse_address(address) == ("0.0.0.0", port["containerPort"])
    assert [str(port["containerPort"])] == image("EXPOSE")
    assert {name: probe["httpGet"] for name, probe in worker.items() if name.endswith("Probe")} == {
        "startupProbe": {"path": "/healthz", "port": port["name"]},
        "livenessProbe": {"path": "/healthz", "port": port["name"]},
        "readinessProbe": {"path": "/readyz", "port": port["name"]},
    }
    (served,) = manifests()["Service"]["spec"]["ports"]
    assert (served["name"], served["port"], served["targetPort"]) == (port["name"], 9464, port["name"])
    (endpoint,) = manifests()["ServiceMonitor"]["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == (served["name"], "/metrics")


def test_a_worker_is_given_time_to_end() -> None:
    """More than the drain takes, which ends by itself."""
    assert template("StatefulSet")["spec"]["terminationGracePeriodSeconds"] > DRAIN_S


def test_commands_are_the_programs() -> None:
    """The image's entry point is kept: signals reach the worker."""
    assert [container(kind)["args"] for kind in WORKLOADS] == [["run"], ["topics", "create"]]
    assert all("command" not in container(kind) for kind in WORKLOADS)
    assert image_exec("ENTRYPOINT") == ["mistakebound"]


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_pod_is_confined(kind: str) -> None:
    """As the namespace demands, and more: the image's user by number, a read-only root, no token, a memory limit."""
    pod, only = template(kind)["spec"], container(kind)
    user, group = (int(number) for number in image("USER")[0].split(":"))
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert (security["runAsUser"], security["runAsGroup"], security["fsGroup"]) == (user, group, group)
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False  # they are variables that look like settings
    assert "memory" in only["resources"]["limits"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()
    labels = manifests()["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


# --- what refers to what --------------------------------------------------------------------------------------


def selectors() -> Iterator[tuple[str, dict[str, str], str]]:
    """(who, labels, the kind of what they must find)."""
    found = manifests()
    yield "StatefulSet", found["StatefulSet"]["spec"]["selector"]["matchLabels"], "StatefulSet"
    yield "Service", found["Service"]["spec"]["selector"], "StatefulSet"
    yield (
        "PodDisruptionBudget",
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        "StatefulSet",
    )
    for kind in WORKLOADS:
        yield "NetworkPolicy", found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"], kind


def test_selectors_find_the_pods_that_they_mean() -> None:
    """And only those: the job's pods are no workers."""
    for who, labels, kind in selectors():
        assert labels.items() <= template(kind)["metadata"]["labels"].items(), who
    job = template("Job")["metadata"]["labels"]
    assert not manifests()["Service"]["spec"]["selector"].items() <= job.items()
    chosen = manifests()["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert chosen.items() <= manifests()["Service"]["metadata"]["labels"].items()


def test_two_models_of_a_namespace_do_not_find_each_others_pods() -> None:
    """Every selector asks for the instance, which a copy of these manifests or a release gives another name."""
    chosen = manifests()["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    for who, labels, _ in [*selectors(), ("ServiceMonitor", chosen, "")]:
        assert labels["app.kubernetes.io/instance"] == "mistakebound", who


def test_the_rules_are_those_of_prometheus() -> None:
    """As `deploy/prometheus` has them: no alert is lost on the way."""
    rules = read_yaml(PROMETHEUS / "rules.yml")
    assert manifests()["PrometheusRule"]["spec"] == rules
    assert manifests()["ServiceMonitor"]["spec"]["jobLabel"] == "app.kubernetes.io/name"
    labels = manifests()["Service"]["metadata"]["labels"]
    assert f'up{{job="{labels["app.kubernetes.io/name"]}"}}' in rules["groups"][1]["rules"][0]["expr"]


def test_the_dashboards_are_loaded_by_grafanas_sidecar() -> None:
    """All that there are, by the label for which it looks, in one ConfigMap, which may hold a mebibyte."""
    (generated,) = read_yaml(GRAFANA / "kustomization.yaml")["configMapGenerator"]
    files = [GRAFANA / name for name in generated["files"]]
    assert DASHBOARDS in kustomization()["resources"]
    assert (FOLDER / DASHBOARDS).resolve() == GRAFANA
    assert generated["options"]["labels"] == {"grafana_dashboard": "1"}
    assert files == sorted((GRAFANA / "dashboards").iterdir())
    # `kubectl apply` keeps the whole object in an annotation, which may have a quarter of that.
    assert len(json.dumps({path.name: path.read_text() for path in files})) < 250_000


def test_the_page_on_kubernetes_scales_what_there_is() -> None:
    """Its ScaledObject: the StatefulSet, the group and topic of the configuration, no more workers than partitions; its
    behaviour is checked as a HorizontalPodAutoscaler's, which KEDA makes of it."""
    (source,) = blocks(ROOT / "deploy" / "kubernetes.md", "yaml")
    scaled = yaml.safe_load(source)
    spec = scaled["spec"]
    settings = load(FOLDER / "mistakebound.toml", (), None, environment()).settings
    (trigger,) = spec["triggers"]
    stateful_set = manifests()["StatefulSet"]

    assert (scaled["apiVersion"], scaled["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert scaled["metadata"]["namespace"] == kustomization()["namespace"]
    target = {"kind": stateful_set["kind"], "name": stateful_set["metadata"]["name"]}
    assert spec.keys() == {
        *("scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "advanced", "triggers")
    }
    assert spec["scaleTargetRef"] == target
    assert 1 <= spec["minReplicaCount"] <= spec["maxReplicaCount"] == settings.log.partitions
    assert trigger["type"] == "kafka"
    assert all(isinstance(value, str) for value in trigger["metadata"].values()), "KEDA takes texts alone"
    assert trigger["metadata"] == {
        "bootstrapServers": (settings.log.url or "").partition("//")[2],
        "consumerGroup": settings.group,
        "topic": settings.topic_name("examples"),
        "lagThreshold": "300000",
    }
    made_of_it = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "mistakebound"},
        "spec": {
            "scaleTargetRef": {"apiVersion": stateful_set["apiVersion"]} | target,
            "minReplicas": spec["minReplicaCount"],
            "maxReplicas": spec["maxReplicaCount"],
            "behavior": spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"],
        },
    }
    assert faults(made_of_it, VERSIONS[-1]) == []


def test_names_are_those_of_what_is_there() -> None:
    """Service, account, configuration and image."""
    found = manifests()
    assert found["StatefulSet"]["spec"]["serviceName"] == found["Service"]["metadata"]["name"]
    assert found["Service"]["spec"]["clusterIP"] == "None"
    images = [each["name"] for each in kustomization()["images"]]
    for kind in WORKLOADS:
        pod = template(kind)["spec"]
        assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
        (volume,) = pod["volumes"]
        assert volume["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
        assert [container(kind)["image"]] == images
    assert list(found["ConfigMap"]["data"]) == ["mistakebound.toml"]
    assert kustomization()["namespace"] == found["Namespace"]["metadata"]["name"]
    (replicas,) = kustomization()["replicas"]
    assert replicas["name"] == found["StatefulSet"]["metadata"]["name"]
    assert found["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_the_network_lets_through_what_is_needed() -> None:
    """The metrics in; names and the configured brokers out; nothing from or to anywhere."""
    spec = manifests()["NetworkPolicy"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    rules = [*spec["ingress"], *spec["egress"]]
    assert all(rule.get("from") or rule.get("to") for rule in rules)
    (metrics,) = spec["ingress"]
    assert [each["port"] for each in metrics["ports"]] == ["http"]
    out = {(each["protocol"], each["port"]) for rule in spec["egress"] for each in rule["ports"]}
    url = load(FOLDER / "mistakebound.toml", (), None, environment()).settings.log.url or ""
    assert out == {("UDP", 53), ("TCP", 53), ("TCP", int(url.rpartition(":")[2]))}


def test_the_topics_job_can_be_applied_again() -> None:
    """It is gone when it is done; its failures are tried again, for a while."""
    spec = manifests()["Job"]["spec"]
    assert spec["ttlSecondsAfterFinished"] <= 300
    assert spec["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert json.dumps(spec["activeDeadlineSeconds"]).isdigit()
