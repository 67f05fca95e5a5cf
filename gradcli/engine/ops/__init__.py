"""The declared ops, a folder for each kind. Importing this package fills the table of ops."""

from importlib import import_module
from pkgutil import walk_packages

# What stands beside the folders comes last: forms in place are made of their ops.
_modules = walk_packages(__path__, f"{__name__}.")
for _module in sorted(_modules, key=lambda module: module.name.count("."), reverse=True):
    import_module(_module.name)
