"""Tokens as kafka-python asks for them: at each connection, and before a session's life at the broker is over."""

from kafka.net.sasl.oauth import AbstractTokenProvider

from mistakebound.log.kafka.oauth import TokenSource


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Of one cluster's clients."""

    def __init__(self, source: TokenSource) -> None:
        super().__init__()
        self._source = source

    def token(self) -> str:
        """Raises TokenUnavailable, TokenRefused: the connection fails, and the reason is kept."""
        return self._source.token().text

    def extensions(self) -> dict[str, str]:
        return dict(self._source.extensions)
