"""The chart, rendered by Helm's own engine: it is what `kubectl apply -k` makes, and what its values say."""

import json
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.support.deployed import GRAFANA, PROMETHEUS, alerts, read_yaml
from tests.deploy.test_kubernetes import DASHBOARDS, FOLDER, VERSIONS, faults, kustomization, manifests
from tests.manifests.made import CHART, TEMPLATES, Replacement, made, template
from tests.support.project import ROOT

BY_HAND = {"_names.tpl", "NOTES.txt", "configuration.yaml", "dashboards.yaml", "prometheusrule.yaml"}
CHECKED_BY_US = {"Service", "ServiceAccount", "StatefulSet", "Job", "NetworkPolicy", "PodDisruptionBudget"}
INSTANCE = "app.kubernetes.io/instance"
Objects = dict[tuple[str, str], dict[str, Any]]
"""By kind and name."""

helm: Any = import_module("helm_python.chart")  # without types of its own


@cache
def chart() -> Any:
    """Helm's chart, from the folder."""
    return helm.Chart.load(str(CHART))


def rendered(release: str = "mistakebound", revision: int = 1, **values: Any) -> Objects:
    """What a release is made of."""
    files = chart().render(values, name=release, namespace="models", revision=revision)
    found = [
        document
        for name, text in files.items()
        if name.endswith(".yaml")
        for document in yaml.load_all(text, yaml.CSafeLoader)
        if document
    ]
    objects = {(each["kind"], each["metadata"]["name"]): each for each in found}
    assert len(objects) == len(found)
    return objects


# --- one source -------------------------------------------------------------------------------------------------


def test_what_is_made_from_the_manifests_is_up_to_date() -> None:
    """After a change: `python -m tests.manifests`. Nothing else is in the folders that it fills."""
    assert [str(path) for path, content in made().items() if path.read_text() != content] == []
    assert set((CHART / "files").iterdir()) == {path for path in made() if path.parent.name == "files"}
    assert {path.name for path in (CHART / "templates").iterdir()} == BY_HAND | {
        f"{name}.yaml" for name in TEMPLATES
    }


def test_every_manifest_is_in_the_chart() -> None:
    """But the namespace, which Helm makes, and the dashboards, which are a template."""
    names = {name.removesuffix(".yaml") for name in kustomization()["resources"]}
    assert names - {"namespace", "prometheusrule", DASHBOARDS} == TEMPLATES.keys()


def test_a_manifest_that_changed_where_it_is_replaced_is_noticed() -> None:
    """A replacement that finds nothing would leave a value without effect."""
    with pytest.raises(ValueError, match=r"service.yaml has 'clusterIp' 0 times, not 1"):
        template("service", "", (Replacement("clusterIp", "clusterIP"),))


def test_a_release_is_what_kubectl_makes() -> None:
    """Object by object; but names that end in a digest there are without here, and a digest is an annotation."""
    found = rendered()
    job = found.pop(("Job", "mistakebound-topics-1"))
    job["metadata"]["name"] = "mistakebound-topics"
    stateful_set = found["StatefulSet", "mistakebound"]
    (checksum,) = stateful_set["spec"]["template"]["metadata"].pop("annotations").items()
    assert checksum[0] == "checksum/configuration"
    del found["ConfigMap", "mistakebound-dashboards"]

    wanted = {kind: each for kind, each in manifests().items() if kind != "Namespace"}
    (image,) = kustomization()["images"]
    (replicas,) = kustomization()["replicas"]
    text = json.dumps(wanted).replace(
        f'"image": "{image["name"]}"', f'"image": "{image["newName"]}:{image["newTag"]}"'
    )
    wanted = json.loads(text)
    wanted["StatefulSet"]["spec"]["replicas"] = replicas["count"]
    assert {each["kind"]: each for each in found.values()} | {"Job": job} == wanted


def test_the_dashboards_are_the_files() -> None:
    """Unchanged, although their legends have braces as templates do."""
    generated = read_yaml(GRAFANA / "kustomization.yaml")["configMapGenerator"][0]
    found = rendered()["ConfigMap", "mistakebound-dashboards"]
    assert found["metadata"]["labels"] == generated["options"]["labels"]
    assert {name: json.loads(text) for name, text in found["data"].items()} == {
        Path(name).name: json.loads((GRAFANA / name).read_text()) for name in generated["files"]
    }


def test_its_version_is_the_projects() -> None:
    """And that of the image which it asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = read_yaml(CHART / "Chart.yaml")
    assert (about["version"], about["appVersion"]) == (project["version"], project["version"])
    assert about["description"] == project["description"]
    assert about["kubeVersion"] == f">={VERSIONS[0]}.0-0"


# --- values -----------------------------------------------------------------------------------------------------


def test_helm_finds_nothing_in_the_chart() -> None:
    """`helm lint --strict`; a chart may do without an icon."""
    found = helm.lint(str(CHART), strict=True, kube_version=f"v{VERSIONS[0]}.0")
    assert found["errors"] == []
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


def test_every_value_is_in_the_schema_and_every_one_of_the_schema_in_the_values() -> None:
    """With a description each; what is given by hand is checked as much as what is there."""

    def keys(schema: dict[str, Any], at: str = "") -> set[str]:
        assert schema["description"], at
        if "properties" not in schema or at.startswith(".resources"):
            return {at}
        assert schema["additionalProperties"] is False, at
        return {each for key, inner in schema["properties"].items() for each in keys(inner, f"{at}.{key}")}

    def given(values: Any, known: set[str], at: str = "") -> set[str]:
        if at in known or not isinstance(values, dict):
            return {at}
        return {each for key, inner in values.items() for each in given(inner, known, f"{at}.{key}")}

    known = keys(json.loads((CHART / "values.schema.json").read_text()))
    assert given(read_yaml(CHART / "values.yaml"), known) == known - {".global"}


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"replicas": "two"}, "/replicas"),
        ({"replica": 2}, "replica"),
        ({"image": {"repository": ""}}, "/image/repository"),
        ({"monitoring": {"lables": {}}}, "lables"),
        ({"monitoring": {"runbook": "wiki/runbook"}}, "/monitoring/runbook"),
        ({"resources": {"limits": {"memory": "512 MiB"}}}, "/resources/limits/memory"),
        ({"checkpoints": {"accessMode": "ReadWriteMost"}}, "/checkpoints/accessMode"),
    ],
)
def test_a_value_that_is_wrong_is_refused_by_its_name(values: dict[str, Any], where: str) -> None:
    """Before anything is applied."""
    with pytest.raises(Exception, match=where):
        rendered(**values)


def test_two_releases_in_one_namespace_do_not_touch_each_other() -> None:
    """No name is the same, and every selector asks for the release."""
    one, two = rendered("fraud"), rendered("mistakebound-spam")
    assert {name for _, name in one} & {name for _, name in two} == set()
    assert {name for _, name in one} >= {"mistakebound-fraud"}
    assert {name for _, name in two} >= {"mistakebound-spam"}
    for found, release in ((one, "fraud"), (two, "mistakebound-spam")):
        asked = json.dumps(
            [each["spec"] for each in found.values() if each["kind"] in CHECKED_BY_US - {"ServiceAccount"}]
        )
        assert asked.count(f'"{INSTANCE}": "{release}"') == asked.count(INSTANCE) > 5


def test_everything_that_can_be_set_is_valid() -> None:
    """Where a value goes, and by Kubernetes' strict schemas."""
    found = rendered(
        "fraud",
        revision=7,
        image={"repository": "r.example/m", "tag": "5", "pullPolicy": "Always"},
        imagePullSecrets=[{"name": "registry"}],
        configuration='[log]\nurl = "kafka://b:9092"\n',
        kafkaSecret="login",
        autoscaling=True,
        env=[{"name": "MISTAKEBOUND_CHECKPOINT__URL", "value": "s3://bucket/fraud"}],
        resources={"limits": {"memory": "1Gi"}},
        checkpoints={"size": "2Gi", "storageClassName": "fast", "accessMode": "ReadWriteOnce"},
        serviceAccount={"annotations": {"role": "r"}},
        podAnnotations={"team": "risk"},
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "spot", "operator": "Exists"}],
        networkPolicy={
            "prometheusNamespace": "watch", "kafkaNamespace": "brokers", "kafkaPort": 9093,
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"protocol": "TCP", "port": 443}]}],
        },
        monitoring={"labels": {"release": "kps"}, "interval": "30s", "runbook": "https://wiki.example/runbook"},
    )  # fmt: skip
    for each in found.values():
        for version in VERSIONS:
            assert faults(each, version) == [], each["kind"]

    workers = found["StatefulSet", "mistakebound-fraud"]["spec"]
    pod = workers["template"]["spec"]
    (worker,) = pod["containers"]
    assert "replicas" not in workers
    assert (worker["image"], worker["imagePullPolicy"]) == ("r.example/m:5", "Always")
    assert [each["name"] for each in worker["env"]] == [
        "MISTAKEBOUND_WORKER__SLOT",
        "MISTAKEBOUND_CHECKPOINT__URL",
    ]
    assert {"name": "kafka", "mountPath": "/run/secrets/kafka", "readOnly": True} in worker["volumeMounts"]
    assert {"name": "kafka", "secret": {"secretName": "login", "defaultMode": 0o440}} in pod["volumes"]
    assert (pod["nodeSelector"], pod["tolerations"][0]["key"]) == ({"disk": "ssd"}, "spot")
    assert worker["resources"]["limits"] == {"memory": "1Gi"}
    (claim,) = workers["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert ("Job", "mistakebound-fraud-topics-7") in found
    text = found["ConfigMap", "mistakebound-fraud"]["data"]["mistakebound.toml"]
    assert tomllib.loads(text) == {"log": {"url": "kafka://b:9092"}}
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert found[kind, "mistakebound-fraud"]["metadata"]["labels"] == {"release": "kps"}
    rules = [
        rule
        for group in found["PrometheusRule", "mistakebound-fraud"]["spec"]["groups"]
        for rule in group["rules"]
    ]
    links = [rule["annotations"]["runbook_url"] for rule in rules if "alert" in rule]
    assert links == [f"https://wiki.example/runbook#{name.lower()}" for name in alerts()]
    out = found["NetworkPolicy", "mistakebound-fraud"]["spec"]
    assert out["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "watch"
    }
    assert [each["ports"][0]["port"] for each in out["egress"]] == [53, 9093, 443]


def test_another_configuration_rolls_the_workers() -> None:
    """A file that is mounted changes by itself, and a worker reads it once."""

    def digest(**values: Any) -> str:
        metadata = rendered(**values)["StatefulSet", "mistakebound"]["spec"]["template"]["metadata"]
        found: str = metadata["annotations"]["checksum/configuration"]
        return found

    assert (
        digest()
        == digest(configuration=(FOLDER / "mistakebound.toml").read_text())
        != digest(configuration="a = 1")
    )


def test_what_is_switched_off_is_not_there() -> None:
    """One release of several has the rules and the dashboards."""
    monitoring = {"serviceMonitor": False, "rules": False, "dashboards": False}
    off = {"enabled": False}
    found = rendered(
        monitoring=monitoring, networkPolicy=off, podDisruptionBudget=off, topics={"create": False}
    )
    assert {kind for kind, _ in found} == {"ServiceAccount", "ConfigMap", "Service", "StatefulSet"}
    assert ("ConfigMap", "mistakebound-dashboards") not in found


def test_the_rules_are_not_read_as_templates() -> None:
    """Their `{{ $labels.instance }}` is Prometheus', and reaches it."""
    assert rendered()["PrometheusRule", "mistakebound"]["spec"] == read_yaml(PROMETHEUS / "rules.yml")
