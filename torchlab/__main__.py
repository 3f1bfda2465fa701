"""`python -m torchlab` is the command `torchlab`."""

from __future__ import annotations

import sys

from torchlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
