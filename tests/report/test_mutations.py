"""The short form of tools/mutate.py."""

import json

import pytest
from tools.mutate import judge, make_subjects, run

from attnlab._json import checksum_of

pytestmark = pytest.mark.slow


def test_sixty_mutations_of_stored_results(tmp_path):
    counts, wrong = run(60, 0, tmp_path)
    assert not wrong, wrong[0]
    assert sum(found["refused in words"] for found in counts.values()) > 20
    assert sum(found["counted as not done"] for found in counts.values()) > 5


@pytest.mark.parametrize("sealed", [True, False])
def test_other_data_are_noticed_by_the_tool(tmp_path, sealed):
    """So that the test above can fail: with right checksums an edit is read as other data, without
    it is refused.
    """
    edits = {
        "sweep": ("plan.json", "changed"),
        "record": ("record.json", "about"),
        "model": ("model.json", "n_iter"),
    }
    for subject in make_subjects(tmp_path):
        file, key = edits[subject.name]
        record = json.loads(subject.files[file])
        record[key] = {"n_iter": 5, "about": {**record.get("about", {}), "date": "later"}}.get(
            key, "later"
        )
        record["plan"] = record.get("plan", {}) | {"name": "other"}
        if sealed:
            record["sha256"] = checksum_of(record)
        (subject.folder / file).write_text(json.dumps(record))
        assert judge(subject)[0] == ("other data" if sealed else "refused in words")
        subject.restore()
        assert judge(subject)[0] == "as before"
