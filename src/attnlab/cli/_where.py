"""Where a command computes: options that all commands with runs share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import attnlab as al
from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    from attnlab.sweeps import AbstractExecutor

_PANEL = "Where it is computed"


def _option(help: str, name: str, **more: Any) -> Any:
    return typer.Option(name, help=help, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True)
class Where:
    """Processes on this machine or a Dask cluster, and which stored runs to use.

    Each field is an option.
    """

    processes: Annotated[
        int | None,
        _option("Worker processes; one per core by default, 0 for none.", "--processes", min=0),
    ] = None
    cluster: Annotated[
        str | None,
        _option(
            "A Dask scheduler: tcp://host:8786, or its scheduler file.",
            "--cluster",
            metavar="PLACE",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        _option("Stop a run after this many seconds; it counts as failed.", "--time-limit"),
    ] = None
    tls_ca: Annotated[
        Path | None, _option("The cluster's CA certificate (.pem).", "--cluster-tls-ca")
    ] = None
    tls_cert: Annotated[
        Path | None, _option("Your client certificate (.pem).", "--cluster-tls-cert")
    ] = None
    tls_key: Annotated[Path | None, _option("Your client key (.pem).", "--cluster-tls-key")] = None

    keep: Annotated[
        bool,
        _option(
            "Also use stored runs that were made by other code, before an edit.",
            "--keep",
        ),
    ] = False

    @contextmanager
    def executor(self, *, quiet: bool = False) -> Iterator[AbstractExecutor]:
        """The executor for these options; its processes live until the context ends."""
        self._check()
        if self.cluster is not None:
            security = self._security()
            with al.sweeps.Cluster(
                self.cluster, time_limit=self.time_limit, security=security, quiet=quiet
            ) as cluster:
                yield cluster
        elif self.processes == 0:
            yield al.sweeps.InProcess()
        else:
            with al.sweeps.Processes(self.processes, time_limit=self.time_limit) as processes:
                yield processes

    def _check(self) -> None:
        if self.cluster is not None and self.processes is not None:
            raise AttnlabError(
                f"--cluster and --processes {self.processes}: a cluster's workers decide how many "
                "runs they take at once (their threads); omit one of the two"
            )
        if self.processes == 0 and self.time_limit is not None:
            raise AttnlabError(
                "--time-limit with --processes 0: a run in this process cannot be stopped; give "
                "--processes 1 or more"
            )
        tls = {
            "--cluster-tls-ca": self.tls_ca,
            "--cluster-tls-cert": self.tls_cert,
            "--cluster-tls-key": self.tls_key,
        }
        given = [name for name, file in tls.items() if file is not None]
        if given and (self.cluster is None or len(given) < len(tls)):
            raise AttnlabError(
                f"{', '.join(given)}: expected --cluster and all of {', '.join(tls)}, or none of "
                "them"
            )
        for name, file in tls.items():
            if file is not None and not file.is_file():
                raise AttnlabError(f"{name} {file}: there is no such file")

    def _security(self) -> Any:
        """TLS credentials, or ``None`` for Dask's own configuration."""
        if self.tls_ca is None:
            return None
        try:
            from distributed import Security
        except ImportError as error:
            raise AttnlabError(
                f"--cluster needs `pip install 'attnlab[cluster]'` ({error})"
            ) from None
        return Security(
            tls_ca_file=str(self.tls_ca),
            tls_client_cert=str(self.tls_cert),
            tls_client_key=str(self.tls_key),
            require_encryption=True,
        )


HERE = Where()
