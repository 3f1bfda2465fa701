"""The three messages that make a run comparable by its hyperparameters."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.metadata import (
    EXPERIMENT_TAG,
    PLUGIN_DATA_VERSION,
    PLUGIN_NAME,
    SESSION_END_INFO_TAG,
    SESSION_START_INFO_TAG,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)

from torchlab._core.tensor import Tensor
from torchlab.utils.tensorboard.arrays import to_array

_FIELDS = {str: "string_value", bool: "bool_value"}
_KINDS = {str: "DATA_TYPE_STRING", bool: "DATA_TYPE_BOOL"}


def hparams(parameters: Any, metrics: Any, domains: Any = None) -> tuple[Summary, ...]:
    """(experiment, start, end) for {name: number, str, bool or tensor of one number} and the names
    of the metrics. `domains`: {name: all values that it takes}. TypeError for what is no
    dictionary or no known name, ValueError for other values."""
    if not isinstance(parameters, dict) or not isinstance(metrics, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    domains = {} if domains is None else domains
    if not isinstance(domains, dict):
        raise TypeError("hparam_domain_discrete should be dictionary.")
    for name, values in domains.items():
        kind = type(parameters.get(name))
        if name not in parameters or not isinstance(values, list):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type"
            )
        if not all(isinstance(v, kind) for v in values):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type"
            )
    start = SessionStartInfo()
    infos = []
    for name, value in parameters.items():
        if value is None:
            continue
        if isinstance(value, Tensor):
            value = float(to_array(value).reshape(-1)[0])
            start.hparams[name].number_value = value
            infos.append(
                api_pb2.HParamInfo(name=name, type=api_pb2.DataType.Value("DATA_TYPE_FLOAT64"))
            )
            continue
        if not isinstance(value, (int, float, str)):
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        kind = str if isinstance(value, str) else float
        setattr(start.hparams[name], _FIELDS.get(kind, "number_value"), value)
        domain = None
        if name in domains:
            domain = struct_pb2.ListValue(values=[_coded(v, kind) for v in domains[name]])
        infos.append(
            api_pb2.HParamInfo(
                name=name,
                type=api_pb2.DataType.Value(_KINDS.get(kind, "DATA_TYPE_FLOAT64")),
                domain_discrete=domain,
            )
        )
    named = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metrics]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=named)
    end = SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))
    return (
        _message(EXPERIMENT_TAG, experiment=experiment),
        _message(SESSION_START_INFO_TAG, session_start_info=start),
        _message(SESSION_END_INFO_TAG, session_end_info=end),
    )


def _coded(value: Any, kind: type) -> Any:
    return struct_pb2.Value(**{_FIELDS.get(kind, "number_value"): value})


def _message(tag: str, **content: Any) -> Summary:
    data = HParamsPluginData(version=PLUGIN_DATA_VERSION, **content)
    plugin = SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME, content=data.SerializeToString())
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])


__all__ = ["hparams"]
