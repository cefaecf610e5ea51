"""Tasks on the workers of a Dask cluster: samples and duals stay there; only kernel weights and cuts are sent."""

from ._inputs import Site
from ._training import RemoteTasks, SiteModel, Sites

__all__ = ["RemoteTasks", "Site", "SiteModel", "Sites"]
