"""Tokenizer: text <-> numbers by byte pairs, trained here or read from GPT-2's and HF's files."""

from __future__ import annotations

from glassgrad.nn.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer"]
