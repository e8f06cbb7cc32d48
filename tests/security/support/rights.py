"""The rights that deploy/security.md tells to grant, read out of its own commands."""

import itertools
import re
import shlex
from dataclasses import dataclass

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from tests.support.project import ROOT

DOCUMENT = ROOT / "deploy" / "security.md"
OPERATIONS = {
    "Read": ACLOperation.READ,
    "Write": ACLOperation.WRITE,
    "Create": ACLOperation.CREATE,
    "Describe": ACLOperation.DESCRIBE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
}
RESOURCES = {
    "--topic": ("topic", ResourceType.TOPIC),
    "--group": ("group", ResourceType.GROUP),
    "--transactional-id": ("transactional id", ResourceType.TRANSACTIONAL_ID),
}
PREFIX = "fraud."
"""As the document spells it."""


@dataclass(frozen=True, slots=True)
class Right:
    """One operation of one user on one resource."""

    user: str
    operation: str
    kind: str
    name: str
    prefixed: bool

    @property
    def acl(self) -> ACL:
        types = dict(RESOURCES.values())
        pattern = ACLResourcePatternType.PREFIXED if self.prefixed else ACLResourcePatternType.LITERAL
        return ACL(
            principal=f"User:{self.user}",
            host="*",
            operation=OPERATIONS[self.operation],
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePattern(types[self.kind], self.name, pattern),
        )

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}"


def commands(user: str) -> list[list[str]]:
    """The words of each `kafka-acls` line of the document that grants something to `user`."""
    text = re.sub(r"\\\n\s*", "", DOCUMENT.read_text())
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("kafka-acls ")]
    return [words for words in lines if f"User:{user}" in words]


def rights(user: str, prefix: str) -> list[Right]:
    """All that the document grants to `user`, for topics and group of this prefix."""
    found: list[Right] = []
    for words in commands(user):
        pairs = list(itertools.pairwise(words))
        operations = [value for option, value in pairs if option == "--operation"]
        prefixed = ("--resource-pattern-type", "prefixed") in pairs
        found += [
            Right(user, operation, RESOURCES[option][0], name.replace(PREFIX, prefix, 1), prefixed)
            for option, name in pairs
            if option in RESOURCES
            for operation in operations
        ]
    return found
