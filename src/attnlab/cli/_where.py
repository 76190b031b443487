"""Where a command computes: the options that all commands with runs share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    from attnlab.sweeps import AbstractExecutor

_PANEL = "Where it is computed"


def _option(help: str, name: str, **more: Any) -> Any:
    return typer.Option(name, help=help, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True)
class Where:
    """Processes of this machine, or a Dask cluster, and which stored runs are used; each field is
    an option.
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
        _option("Stop a run after so many seconds; it counts as failed.", "--time-limit"),
    ] = None
    tls_ca: Annotated[
        Path | None, _option("Who vouches for the cluster (a .pem file).", "--cluster-tls-ca")
    ] = None
    tls_cert: Annotated[
        Path | None, _option("Your certificate there (.pem).", "--cluster-tls-cert")
    ] = None
    tls_key: Annotated[Path | None, _option("Your key there (.pem).", "--cluster-tls-key")] = None

    keep: Annotated[
        bool,
        _option(
            "Use stored runs that other code made too: work functions that were edited since.",
            "--keep",
        ),
    ] = False

    @contextmanager
    def executor(self, *, quiet: bool = False) -> Iterator[AbstractExecutor]:
        """The executor of these options; it keeps its processes until the end of the context."""
        from attnlab.sweeps import Cluster, InProcess, Processes

        self._check()
        if self.cluster is not None:
            security = self._security()
            with Cluster(
                self.cluster, time_limit=self.time_limit, security=security, quiet=quiet
            ) as cluster:
                yield cluster
        elif self.processes == 0:
            yield InProcess()
        else:
            with Processes(self.processes, time_limit=self.time_limit) as processes:
                yield processes

    def _check(self) -> None:
        if self.cluster is not None and self.processes is not None:
            raise AttnlabError(
                f"--cluster and --processes {self.processes}: a cluster's workers say themselves "
                "how many processes "
                "they take (their threads); leave one of the two out"
            )
        if self.processes == 0 and self.time_limit is not None:
            raise AttnlabError(
                "--time-limit with --processes 0: this process cannot stop itself; give 1 or more"
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
        """What connects with TLS; Dask's own configuration where no file is given."""
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


def anywhere(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of ``Where`` in the place of its parameter ``where``, so that they
    are written once.

    >>> @anywhere
    ... def command(seeds: int = 8, where: Where = HERE) -> None:
    ...     print(seeds, where.processes)
    >>> command(seeds=4, processes=2)
    4 2
    """
    hints = get_type_hints(Where, include_extras=True)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(Where)
    ]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        chosen = {option.name: given.pop(option.name) for option in options if option.name in given}
        command(**given, where=Where(**chosen))

    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += (
            options if parameter.name == "where" else [parameter.replace(kind=options[0].kind)]
        )
    # What typer reads.
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped
