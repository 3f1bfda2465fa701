"""How long the processes of a group wait for one another.

Source: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.init_process_group
"""

from __future__ import annotations

from datetime import timedelta

default_pg_timeout = timedelta(minutes=30)
default_pg_nccl_timeout: timedelta | None = None
"""None, as where there is no NCCL."""

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
