"""The tables of the Delta matrix by what they are about; every public function of these modules makes one table."""
from . import changes, deletes, features, log, mapping, partitions, schema, types, upkeep

MODULES = (types, partitions, deletes, mapping, changes, log, schema, features, upkeep)


def tables() -> dict:
    """Name to builder, in the order of the modules' text."""
    found = {}
    for module in MODULES:
        for name, builder in vars(module).items():
            if callable(builder) and builder.__module__ == module.__name__ and not name.startswith("_"):
                assert name not in found, f"two tables named {name}"
                found[name] = builder
    return found
