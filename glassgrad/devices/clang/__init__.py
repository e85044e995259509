"""CLANG: Programs as C, compiled by clang or gcc into shared objects."""
