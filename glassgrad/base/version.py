"""The version of the package, declared here only; pyproject.toml reads it from this file."""

__version__ = "0.1.0.dev0"
