"""The claim about the entropy bound, judged on made-up measurements."""

import xarray as xr

from attnlab.claims._guidelines import ENTROPY_CLAIMS

CLAIMS = {claim.id: claim for claim in ENTROPY_CLAIMS}


def verdict(name: str, data: dict[str, xr.Dataset]) -> str:
    return CLAIMS[name].judge(data)["verdict"]


def test_one_row_below_the_bound_refutes_it():
    def rows(least: float, tight: float, wrong: float) -> dict[str, xr.Dataset]:
        values = {"least": least, "tight": tight, "wrong": wrong}
        return {
            "entropy bound": xr.Dataset(
                {k: ("seed", [v] * 8) for k, v in values.items()}, {"seed": range(8)}
            )
        }

    assert verdict("beyond.entropy_bound", rows(-2e-16, 1e-12, -0.7)) == "holds"
    assert verdict("beyond.entropy_bound", rows(-1e-3, 1e-12, -0.7)) == "fails"
    assert verdict("beyond.entropy_bound", rows(-2e-16, 1e-3, -0.7)) == "fails"
    assert verdict("beyond.entropy_bound", rows(-2e-16, 1e-12, 0.0)) == "inconclusive"
