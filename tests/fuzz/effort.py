"""How many examples a test tries: a share of what the profile in force allows."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_STEADY_EXAMPLES = 100
# The server outlives the examples on purpose: what one leaves behind is there for the next.
_CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def examples(count: int) -> settings:
    """`count` examples in `make test`; as many times more as the profile has more than 100."""
    given = settings.default
    assert given is not None
    scaled = count * given.max_examples // _STEADY_EXAMPLES
    return settings(max_examples=max(1, scaled), suppress_health_check=_CHECKS)
