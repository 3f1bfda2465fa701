"""The one place of the versions: torchlab's, and that of the PyTorch whose names and meanings it
has."""

__version__ = "0.1.0"
PYTORCH = "2.13.0"
