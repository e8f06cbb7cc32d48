"""Tokens of Amazon MSK: a connection request, signed with AWS credentials from wherever AWS's own tools find them.

The brokers take it by the mechanism OAUTHBEARER, so both clients log in the same way. The signing is AWS's own library,
an extra.
"""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mistakebound.log.kafka.oauth import Token, TokenSource, TokenUnavailable

MECHANISM = "AWS_MSK_IAM"
REGION = "sasl_aws_region"
LIBRARY, EXTRA = "aws_msk_iam_sasl_signer", "msk"


def problems(given: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """What is missing, each with its remedy."""
    if find_spec(LIBRARY) is None:
        yield f"{MECHANISM} needs AWS's signer, which is missing; install `mistakebound[{EXTRA}]`"
    if given.get("security_protocol") != "SASL_SSL":
        yield f"{MECHANISM} is offered over TLS only; set kafka.security_protocol to SASL_SSL"
    if _region(given, environ) is None:
        yield f"kafka.{REGION} is missing; write the cluster's region there, or in AWS_REGION"


def source_of(given: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> TokenSource:
    """The source that checked options describe."""
    region = str(_region(given, environ))
    return TokenSource(lambda: _signed(region), {})


def _signed(region: str) -> Token:
    signer: Any = import_module(f"{LIBRARY}.MSKAuthTokenProvider")
    try:
        text, expires_ms = signer.generate_auth_token(region)
    except Exception as error:  # credentials come from many places, each with errors of its own
        raise TokenUnavailable(
            f"no AWS credentials that could sign for {region} ({error!r}); give the process a role, a profile or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from error
    return Token(text, MECHANISM, expires_ms / 1000)


def _region(given: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    found = given.get(REGION) or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return str(found) if found else None
