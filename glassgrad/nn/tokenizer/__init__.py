"""Tokenizer: byte-pair encoding, trained here or read from files of GPT-2 and Hugging Face."""

from __future__ import annotations

from glassgrad.nn.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer"]
