"""The checkpoint store that a URL names."""

from mistakebound.worker.checkpoints.store import CheckpointStore, place_of


def open_store(url: str, timeout_s: float) -> CheckpointStore:
    """Nothing is asked of it yet. `timeout_s` bounds each call to an object store.

    Raises ValueError as `place_of`.
    """
    place = place_of(url)
    if place.bucket is None:
        from mistakebound.worker.checkpoints.local import LocalCheckpointStore

        return LocalCheckpointStore(place.path)
    from mistakebound.worker.checkpoints.s3 import S3CheckpointStore

    return S3CheckpointStore(place.bucket, place.path, timeout_s)
