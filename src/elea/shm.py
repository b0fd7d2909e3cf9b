"""The API of shared memory of eclipse-zenoh (`zenoh.shm`), which is not built: importing this says so."""

raise ModuleNotFoundError(
    "elea.shm is not built: there is no API of shared memory; payloads from 16 KiB on between nodes of one machine go "
    "through shared memory by themselves (transport/shared_memory)",
    name="elea.shm",
)
