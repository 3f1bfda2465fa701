"""Parts that passes are made of."""
