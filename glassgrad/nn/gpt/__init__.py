"""GPT: language models of the GPT-2 and Llama families: training, loading and generation."""

from __future__ import annotations

from glassgrad.nn.gpt.config import CONFIGS, Config
from glassgrad.nn.gpt.decoder import Decoder
from glassgrad.nn.gpt.generate import generate, generate_ids
from glassgrad.nn.gpt.model import GPT
from glassgrad.nn.gpt.sampler import Sampler

__all__ = ["CONFIGS", "GPT", "Config", "Decoder", "Sampler", "generate", "generate_ids"]
