"""Where a command computes: the options of processes and clusters that all commands with runs
share.
"""

from __future__ import annotations

import json

import pytest
import typer
from distributed import LocalCluster

from attnlab._errors import AttnlabError
from attnlab.cli._main import app
from attnlab.cli._where import Where
from attnlab.sweeps import InProcess, Processes

pytestmark = pytest.mark.slow

COMMANDS = (
    "reproduce",
    "check",
    "study",
    "samples",
    "digits",
    "landscape",
    "compare",
    "advise",
    "dynamics",
)
TINY = ["landscape", "--model", "known-attention", "--samples", "32", "--starts", "3", "--json"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_runs_takes_a_cluster(command):
    parameters = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    names = {name for parameter in parameters for name in parameter.opts}
    wanted = {
        "--processes",
        "--cluster",
        "--time-limit",
        "--cluster-tls-ca",
        "--cluster-tls-cert",
        "--cluster-tls-key",
    }
    assert wanted | {"--keep"} <= names


def test_a_cluster_gives_what_a_process_gives(run):
    code, alone, err = run(*TINY, "--processes", "1", "--out", "alone")
    assert code == 0, err
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    )
    with cluster:
        code, far, err = run(
            *TINY, "--cluster", cluster.scheduler_address, "--out", "far", "--time-limit", "300"
        )
    assert code == 0, err
    assert json.loads(far)["points"] == json.loads(alone)["points"]
    assert "dashboard" not in err, "with --json nothing but JSON is told"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--cluster tcp://127.0.0.1:9 --processes 2", "--cluster and --processes 2"),
        ("--processes 0 --time-limit 5", "--time-limit with --processes 0"),
        ("--time-limit -1", "time_limit=-1.0: expected seconds"),
        (
            "--cluster tls://127.0.0.1:9 --cluster-tls-ca ca.pem",
            "--cluster-tls-ca: expected --cluster and all of",
        ),
    ],
)
def test_mistakes_are_named(run, options, message):
    code, _, err = run(*TINY, *options.split())
    assert code == 2
    assert message in err


def test_processes_by_default_and_none_on_request():
    with Where().executor() as executor:
        assert isinstance(executor, Processes)
    with Where(processes=0).executor() as executor:
        assert isinstance(executor, InProcess)


def test_certificates_are_handed_on_to_dask(tmp_path, monkeypatch):
    given: dict = {}

    class Heard(Exception):
        """Enough was heard."""

    def cluster(scheduler, **options):
        given.update(options, scheduler=scheduler)
        raise Heard

    monkeypatch.setattr("attnlab.sweeps.Cluster", cluster)
    files = {name: tmp_path / f"{name}.pem" for name in ("tls_ca", "tls_cert", "tls_key")}
    where = Where(cluster="tls://there:8786", **files)
    with pytest.raises(AttnlabError, match="there is no such file"), where.executor():
        pass
    for file in files.values():
        file.touch()
    with pytest.raises(Heard), where.executor(quiet=True):
        pass
    assert (given["scheduler"], given["quiet"]) == ("tls://there:8786", True)
    security = given["security"]
    assert (security.tls_ca_file, security.tls_client_cert) == (
        str(files["tls_ca"]),
        str(files["tls_cert"]),
    )
    assert security.require_encryption
