"""The private core: layers 0-4 of torchlab. Import public names from `torchlab`, not from here."""
