"""torchvision's public names on torchlab: `torchlab.vision`."""
