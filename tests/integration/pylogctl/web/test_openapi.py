"""The API against its own description, with requests that the description allows or forbids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.specs.openapi.checks import positive_data_acceptance

from pylogctl.web.app import DESCRIBED
from pylogctl.web.openapi import description
from tests.support.web_site import Served, served_site

DESCRIPTION = description(DESCRIBED)
schema = schemathesis.openapi.from_dict(DESCRIPTION).exclude(path_regex=r"/(live|events)$")


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served_site(allow_changes=True) as found:
        yield found


# of schemathesis' own use of hypothesis
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
@schema.parametrize()
@settings(
    max_examples=5,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=[Phase.generate],  # to shrink takes minutes
)
def test_api_when_asked_by_its_description_then_it_responds_by_it(
    case: Case[Any], site: Served
) -> None:
    response = case.call(base_url=site.url, timeout=60)
    if response.status_code != 431:  # longer than a head may be, whatever it says
        # places, shifts and cursors are text with a grammar that no schema has
        case.validate_response(response, excluded_checks=[positive_data_acceptance])
