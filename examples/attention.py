"""A transformer layer from plain operations, to look at its stages in the browser.

glassgrad viz examples/attention.py
"""

import numpy as np

from glassgrad import Tensor

TOKENS, WIDTH, HEADS = 256, 384, 6

random = np.random.default_rng(0)


def weights(*shape: int) -> Tensor:
    return Tensor(random.standard_normal(shape, np.float32) / shape[0] ** 0.5)


x = weights(TOKENS, WIDTH)
w_qkv, w_out = weights(WIDTH, 3 * WIDTH), weights(WIDTH, WIDTH)
w_up, w_down = weights(WIDTH, 4 * WIDTH), weights(4 * WIDTH, WIDTH)

qkv = x.layernorm() @ w_qkv
q, k, v = qkv.reshape(TOKENS, 3, HEADS, -1).permute(1, 2, 0, 3)
scores = (q @ k.transpose(-2, -1)) / 8
attended = scores.softmax() @ v
x = x + attended.permute(1, 0, 2).reshape(TOKENS, WIDTH) @ w_out
hidden = (x.layernorm() @ w_up).gelu()
x = x + hidden @ w_down
print(x.std().item())
