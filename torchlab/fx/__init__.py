"""`torch.fx`: programs as graphs that one can read, change and run.

    traced = torch.fx.symbolic_trace(model)
    print(traced.graph)      # placeholders, calls, output
    print(traced.code)       # the same as Python

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from torchlab.fx import immutable_collections, traceback
from torchlab.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from torchlab.fx.graph import CodeGen, Graph, PythonCode
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.interpreter import Interpreter, Transformer
from torchlab.fx.node import Node, has_side_effect, map_arg
from torchlab.fx.proxy import Proxy, TraceError
from torchlab.fx.subgraph_rewriter import Match, replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "PythonCode",
    "TraceError",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "traceback",
    "wrap",
]
