"""The parts of `torch.utils.benchmark`.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html
"""
