"""Claims by name, by group and in order."""

from __future__ import annotations

import pytest

from attnlab import AttnlabError
from attnlab.papers import claims, resolve


def ids(*names: str) -> list[str]:
    return [claim.id for claim in resolve(names)]


def test_names_and_groups_stand_for_claims_each_once_in_order():
    assert ids() == list(claims())
    assert ids("laws") == [
        "laws.score_sum",
        "laws.balance",
        "laws.query_balance",
        "laws.identity",
        "laws.optimizers",
    ]
    assert ids("lu2021.sen", "laws.identity", "lu2021.sen") == ["laws.identity", "lu2021.sen"]
    assert ids("lu2021.sen", "lu2021").count("lu2021.sen") == 1


def test_a_misspelt_name_is_met_with_a_suggestion():
    with pytest.raises(AttnlabError, match=r"did you mean 'laws.identity'"):
        resolve(["laws.identiy"])
