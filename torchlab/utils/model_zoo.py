"""`torch.utils.model_zoo`: the older name of `torch.hub.load_state_dict_from_url`.

Source: https://docs.pytorch.org/docs/2.13/model_zoo.html
"""

from torchlab.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
