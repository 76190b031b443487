"""Where runs are computed: in this process, in worker processes, on a Dask cluster.

``_executor`` says what an executor is, and computes in this process; ``_chunks`` decides which runs
are handed out together, and which again. ``_processes`` starts worker processes:
``_worker_process`` is one of them seen from its parent, ``_worker_main`` what it does,
``_environment`` what it runs in. ``_dask`` is a cluster, found by ``_dask_client``, whose workers
compute each task as ``Processes`` does (``_dask_worker``).
"""
