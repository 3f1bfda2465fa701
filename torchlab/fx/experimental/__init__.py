"""`torch.fx.experimental`: tracing below autograd, and optimisations of graphs."""
