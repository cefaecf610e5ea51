"""Tasks at the workers of a Dask cluster: samples and duals stay there, kernel weights and cuts travel."""

from ._crew import Site
from ._remote import RemoteTasks, SiteModel, Sites

__all__ = ["RemoteTasks", "Site", "SiteModel", "Sites"]
