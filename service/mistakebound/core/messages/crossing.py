"""A model for each tenant out of one learner: each feature is learned under its tenant's name.

A feature crossed is `tenant|name`. No two tenants share a coordinate then, so what one tenant's labels teach moves no
other's score. With the shared features beside them, each feature counts as itself, too: what all tenants teach
together is what a tenant that nobody has seen begins with.

In both forms `\\` and `|` inside a tenant or name are written `\\\\` and `\\|`. So the first bare `|` ends the tenant, a
shared name has none, and no two pairs of tenant and name, nor a pair and a shared name, are spelled alike.
"""

from typing import Any

from mistakebound.core.faults import BadRecord

TENANT_BYTES = 128
"""Most bytes of a tenant's name, in UTF-8."""
SHORT_TENANT = TENANT_BYTES // 4
"""So many characters never take more than `TENANT_BYTES`, which need not be counted then; nearly every tenant has fewer."""


def tenant_of(found: Any, pointer: str) -> str:
    """The tenant as text: text or an integer, as ids are. `pointer`: where it was found. Raises BadRecord."""
    if type(found) is str and 0 < len(found) <= SHORT_TENANT:
        return found
    if found is None or found == "":
        raise BadRecord("missing-tenant", f"no tenant at {pointer}; send one there, or change features.cross")
    if type(found) not in (str, int):
        kind = {bool: "a truth value", float: "a number with a fraction or exponent", list: "an array"}
        what = kind.get(type(found), "an object")
        raise BadRecord("bad-tenant", f"the tenant at {pointer} is {what}; send text or an integer")
    tenant = str(found)
    size = len(tenant.encode())
    if size > TENANT_BYTES:
        raise BadRecord(
            "bad-tenant", f"the tenant at {pointer} takes {size} bytes; at most {TENANT_BYTES} are allowed"
        )
    return tenant


def crossed(pairs: list[tuple[str, float]], tenant: str, shared: bool) -> list[tuple[str, float]]:
    """`(tenant|name, value)` for each pair, in their order; if `shared` is true, the pairs themselves behind them."""
    prefix = bare(tenant) + "|"
    found = [(prefix + bare(name), value) for name, value in pairs]
    if shared:
        found += [(bare(name), value) for name, value in pairs]
    return found


def bare(name: str) -> str:
    """The name, in which no `|` is bare."""
    if "|" in name or "\\" in name:
        return name.replace("\\", "\\\\").replace("|", "\\|")
    return name
