"""`torch._functorch`: where libraries reach into `vmap`."""

from __future__ import annotations

import torchlab.func  # the steps of vmap need its neighbours, and it needs the steps
