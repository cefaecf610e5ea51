"""What ``dir()``, tab completion and the reference show of an object."""

from __future__ import annotations

from typing import ClassVar


class PublicNames:
    """An object whose ``dir()`` has no names that only this package uses.

    ``_internal`` lists those that a class adds to the ones of its bases.
    """

    _internal: ClassVar[tuple[str, ...]] = ()

    def __dir__(self) -> list[str]:
        internal = {name for kind in type(self).__mro__ for name in vars(kind).get("_internal", ())}
        return [name for name in super().__dir__() if name not in internal]


def internal_names(kind: type[PublicNames] = PublicNames) -> set[str]:
    """The names that a class and all those derived from it do not show."""
    return set(vars(kind).get("_internal", ())).union(*map(internal_names, kind.__subclasses__()))
