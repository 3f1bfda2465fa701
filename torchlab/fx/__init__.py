"""`torch.fx`: programs as graphs that one can read, change and run.

    traced = torch.fx.symbolic_trace(model)
    print(traced.graph)      # placeholders, calls, output
    print(traced.code)       # the same as Python

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from torchlab.fx.graph import Graph, PythonCode
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.interpreter import Interpreter, Transformer
from torchlab.fx.node import Node, has_side_effect, map_arg
from torchlab.fx.proxy import Proxy, TraceError
from torchlab.fx.subgraph_rewriter import Match, replace_pattern
from torchlab.fx.tracer import Tracer, symbolic_trace, wrap

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "Proxy",
    "PythonCode",
    "TraceError",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
