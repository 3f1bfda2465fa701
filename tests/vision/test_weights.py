"""Trained weights: their facts against torchvision's, how they are asked for, found and loaded."""

from __future__ import annotations

import copy
import hashlib
import http.server
import io
import json
import os
import pickle
import re
import threading
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.vision import models, ops
from torchlab.vision.models import Weights, WeightsEnum, _utils, densenet121, detection
from torchlab.vision.models._api import BUILTIN_MODELS, register_model
from torchlab.vision.models._weights import builder
from torchlab.vision.models.densenet import _renamed
from torchlab.vision.models.detection.backbone_utils import mobilenet_backbone, resnet_fpn_backbone
from torchlab.vision.transforms._presets import ImageClassification


@pytest.fixture(autouse=True)
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for weights, empty."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "_folder", None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


def _put(weights: Any, state: Any) -> str:
    """A file for `weights` as if it had been downloaded."""
    path = os.path.join(torch.hub.get_dir(), "checkpoints", weights.url.rpartition("/")[2])
    torch.save(state, path)
    return path


# --- facts

# Of all entries but the prose, as JSON: the beginning of the SHA-256 that torchvision 0.28 gives.
FACTS = {
    "alexnet": "c7bef3d4e6b039fa",
    "convnext_base convnext_large convnext_small convnext_tiny": "3f3ab2c03ae095e8",
    "densenet121 densenet161 densenet169 densenet201": "1f46d2c82deac9a6",
    "efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4"
    " efficientnet_b5 efficientnet_b6 efficientnet_b7 efficientnet_v2_l efficientnet_v2_m"
    " efficientnet_v2_s": "76c7b578383c6171",
    "fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_mobilenet_v3_large_fpn"
    " fasterrcnn_resnet50_fpn fasterrcnn_resnet50_fpn_v2": "32bb44829c29a3a4",
    "maskrcnn_resnet50_fpn maskrcnn_resnet50_fpn_v2": "bf4298b78c8636ef",
    "mobilenet_v2": "7cb1d7a226fdaa4d",
    "mobilenet_v3_large mobilenet_v3_small": "b4c3a27ee3f3fdb6",
    "resnet101 resnet152 resnet18 resnet34 resnet50 resnext101_32x8d resnext101_64x4d"
    " resnext50_32x4d wide_resnet101_2 wide_resnet50_2": "8789f32c07625669",
    "swin_b swin_s swin_t swin_v2_b swin_v2_s swin_v2_t": "680ad657cbd58f6a",
    "vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn": "cdde3c2011295c84",
    "vit_b_16 vit_b_32 vit_h_14 vit_l_16 vit_l_32": "541bccb965062319",
}


def _facts(name: str) -> list[Any]:
    made: list[Any] = []
    for key, w in models.get_model_weights(name).__members__.items():
        meta = {k: v for k, v in w.meta.items() if k != "_docs"}
        made.append([key, repr(w), w.url, repr(w.transforms()), meta])
    return made


@pytest.mark.parametrize("names", FACTS)
def test_all_facts(names: str) -> None:
    text = json.dumps([_facts(n) for n in names.split()], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == FACTS[names]


def test_some_facts() -> None:
    best = models.ResNet50_Weights.DEFAULT
    assert best is models.ResNet50_Weights.IMAGENET1K_V2
    assert best.url == "https://download.pytorch.org/models/resnet50-11ad3fa6.pth"
    assert best.meta["num_params"] == 25557032 and best.meta["min_size"] == (1, 1)
    assert best.meta["_metrics"] == {"ImageNet-1K": {"acc@1": 80.858, "acc@5": 95.434}}
    assert best.meta["categories"][::999] == ["tench", "toilet tissue"]
    assert best.transforms.keywords == {"crop_size": 224, "resize_size": 232}
    swag = models.ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1
    assert swag.meta["min_size"] == (384, 384) and swag.meta["license"].endswith("LICENSE")
    features = models.VGG16_Weights.IMAGENET1K_FEATURES
    assert features.meta["categories"] is None
    assert features.transforms().std == [0.00392156862745098] * 3
    found = detection.MaskRCNN_ResNet50_FPN_V2_Weights.COCO_V1.meta
    assert found["_metrics"] == {"COCO-val2017": {"box_map": 47.4, "mask_map": 41.8}}
    assert found["categories"][:3] == ["__background__", "person", "bicycle"]
    assert len(found["categories"]) == 91


def test_names_of_classes() -> None:
    from torchlab.vision.models import _meta

    lists = ("_IMAGENET_CATEGORIES", "_COCO_CATEGORIES", "_VOC_CATEGORIES")
    lists += ("_KINETICS400_CATEGORIES", "_COCO_PERSON_CATEGORIES", "_COCO_PERSON_KEYPOINT_NAMES")
    assert [len(getattr(_meta, n)) for n in lists] == [1000, 91, 21, 400, 2, 17]
    assert _meta._IMAGENET_CATEGORIES is models.ResNet18_Weights.DEFAULT.meta["categories"]
    assert _meta._VOC_CATEGORIES[-1] == "tvmonitor" and "_VOC_CATEGORIES" in dir(_meta)
    with pytest.raises(AttributeError, match="_ADE"):
        _ = _meta._ADE


@pytest.mark.parametrize("name", ["swin_t", "mobilenet_v3_large", "efficientnet_b1", "vgg11"])
def test_parameters_are_counted(name: str) -> None:
    with torch.device("meta"):
        model = models.get_model(name)
    (count,) = {w.meta["num_params"] for w in models.get_model_weights(name)}
    assert sum(p.numel() for p in model.parameters()) == count


# --- names


def test_weights_by_name() -> None:
    best = models.ResNet50_Weights.DEFAULT
    assert models.get_weight("ResNet50_Weights.DEFAULT") is best
    coco = models.get_weight("FasterRCNN_ResNet50_FPN_Weights.COCO_V1")
    assert repr(coco) == "FasterRCNN_ResNet50_FPN_Weights.COCO_V1" == str(coco)
    for name in ("DEFAULT", "IMAGENET1K_V2", "ResNet50_Weights.IMAGENET1K_V2", best):
        assert models.ResNet50_Weights.verify(name) is best
    assert models.ResNet50_Weights.verify(None) is None
    for name, error, message in (
        ("ResNet50_Weights", ValueError, "Invalid weight name provided: 'ResNet50_Weights'"),
        ("No_Weights.A", ValueError, "The weight enum 'No_Weights' for the specific method"),
        ("ResNet50_Weights.A", KeyError, "A"),
        ("resnet50.A", TypeError, "must be a class"),
    ):
        with pytest.raises(error, match=message):
            models.get_weight(name)
    with pytest.raises(TypeError, match="expected ResNet50_Weights but received ResNet18_Weights"):
        models.resnet50(weights=models.ResNet18_Weights.DEFAULT)
    with pytest.raises(KeyError, match="IMAGENET1K_V3"):
        models.resnet50(weights="IMAGENET1K_V3")


def test_weights_of_a_model() -> None:
    assert models.get_model_weights("ResNet18") is models.ResNet18_Weights
    assert models.get_model_weights(models.vgg16) is models.VGG16_Weights
    kind = detection.MaskRCNN_ResNet50_FPN_Weights
    assert models.get_model_weights(detection.maskrcnn_resnet50_fpn) is kind
    with pytest.raises(ValueError, match="Unknown model resnet19"):
        models.get_model_weights("resnet19")
    with pytest.raises(ValueError, match="missing the 'weights' argument"):
        models.get_model_weights(lambda x: x)
    with pytest.raises(ValueError, match="typing info"):
        models.get_model_weights(lambda weights=None: None)


def test_names_of_models() -> None:
    found = models.list_models(module=detection, include=["*fpn*", "x"], exclude="*v2")
    assert "fasterrcnn_resnet50_fpn" in found and "fasterrcnn_resnet50_fpn_v2" not in found
    assert found == sorted(found) and "resnet18" not in found
    with pytest.raises(ValueError, match="registered under the name 'resnet18'"):
        register_model("resnet18")(lambda: None)
    assert models.mobilenet.mobilenet_v2 is models.mobilenet_v2


def test_equality_and_copies() -> None:
    def facts(**keywords: Any) -> Weights:
        return Weights("u", partial(ImageClassification, **keywords), {"a": [1]})

    assert facts(crop_size=3) == facts(crop_size=3) != facts(crop_size=4)
    assert Weights("u", int, {}) == Weights("u", int, {}) != Weights("u", float, {})
    assert Weights("u", int, {}) != Weights("v", int, {}) and Weights("u", int, {}) != 3
    assert repr(Weights("u", int, {})) == "Weights(url='u', transforms=<class 'int'>, meta={})"
    with pytest.raises(TypeError, match="unhashable"):
        hash(facts(crop_size=3))
    for w in (models.ViT_H_14_Weights.DEFAULT, models.VGG16_Weights.IMAGENET1K_V1):
        assert copy.deepcopy(w) is w and pickle.loads(pickle.dumps(w)) is w


# --- loading


def test_a_file_that_is_there(checkpoints: Path) -> None:
    kind = models.MobileNet_V3_Small_Weights
    torch.manual_seed(3)
    saved = models.mobilenet_v3_small()
    path = _put(kind.DEFAULT, saved.state_dict())
    assert path == str(checkpoints / "mobilenet_v3_small-047dcff4.pth")
    for ask in (kind.DEFAULT, "IMAGENET1K_V1"):
        model = models.get_model("mobilenet_v3_small", weights=ask, progress=False)
        for mine, theirs in zip(model.parameters(), saved.parameters()):
            assert torch.equal(mine, theirs)
    with pytest.warns(UserWarning) as seen:
        models.mobilenet_v3_small(pretrained=True)
    assert [str(w.message) for w in seen] == [
        "The parameter 'pretrained' is deprecated since 0.13 and may be removed in the future,"
        " please use 'weights' instead.",
        "Arguments other than a weight enum or `None` for 'weights' are deprecated since 0.13 and"
        " may be removed in the future. The current behavior is equivalent to passing"
        " `weights=MobileNet_V3_Small_Weights.IMAGENET1K_V1`. You can also use"
        " `weights=MobileNet_V3_Small_Weights.DEFAULT` to get the most up-to-date weights.",
    ]
    assert {w.filename for w in seen} == {__file__}
    assert list(kind.DEFAULT.get_state_dict()) == list(saved.state_dict())


class _Runs:
    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)  # type: ignore[attr-defined]


def test_a_file_runs_no_code(tmp_path: Path) -> None:
    evil = _Runs()
    evil.path = str(tmp_path / "made")  # type: ignore[attr-defined]
    _put(models.AlexNet_Weights.DEFAULT, {"a": evil})
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        models.AlexNet_Weights.DEFAULT.get_state_dict(check_hash=True)
    assert not (tmp_path / "made").exists()


STATE: dict[str, bytes] = {}


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = STATE[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as s:
        thread = threading.Thread(target=s.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{s.server_address[1]}"
        s.shutdown()
        thread.join()


def test_download(server: str, checkpoints: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = io.BytesIO()
    torch.save(nn.Linear(2, 3).state_dict(), file)
    start = hashlib.sha256(file.getvalue()).hexdigest()[:8]
    names = f"net-{start}.pth", "net-00000000.pth"
    STATE.update({f"/{n}": file.getvalue() for n in names})
    meta = {"categories": ["a", "b", "c"]}
    members = {k: Weights(f"{server}/{n}", int, meta) for k, n in zip(("GOOD", "BAD"), names)}
    kind: Any = WeightsEnum("Small_Weights", {**members, "DEFAULT": members["GOOD"]})

    def make(num_classes: int = 5, width: int = 2) -> nn.Module:
        return nn.Linear(width, num_classes)

    try:
        small = builder("small_model", make, kind, "A small one.")
        assert small().out_features == 5 and small.__doc__ == "A small one."
        for _ in range(2):
            assert small(weights="DEFAULT").out_features == 3
        assert os.listdir(checkpoints) == [names[0]]
        place = checkpoints / names[0]
        assert capsys.readouterr().out == f'Downloading: "{server}/{names[0]}" to {place}\n'
        with pytest.raises(RuntimeError, match="invalid hash value"):
            models.get_model("small_model", weights="BAD")
        with pytest.raises(ValueError, match="'num_classes' expected value 3 but got 4 instead"):
            small(weights=kind.GOOD, num_classes=4)
        assert models.get_model_weights("small_model") is kind
    finally:
        BUILTIN_MODELS.pop("small_model", None)


def test_old_names_of_densenet() -> None:
    model = densenet121(num_classes=2)
    old = {
        re.sub(r"(denselayer\d+\.(?:norm|relu|conv))([12]\.)", r"\1.\2", k): v
        for k, v in model.state_dict().items()
    }
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    assert set(_renamed(old)) == set(model.state_dict())


def test_what_is_asked_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    state = models.mobilenet_v3_small().state_dict()
    monkeypatch.setattr(
        models._api, "load_state_dict_from_url", lambda *a, **k: asked.append((a, k)) or state
    )
    kind = models.MobileNet_V3_Small_Weights
    models.mobilenet_v3_small(weights="DEFAULT", progress=False)
    kind.DEFAULT.get_state_dict("folder", "cpu", weights_only=False)
    kind.DEFAULT.get_state_dict(None, None, True, False, None, False)
    assert [a[0] for a, _ in asked] == [kind.DEFAULT.url] * 3
    facts = {"progress": False, "check_hash": True, "weights_only": True}
    assert asked[0] == ((kind.DEFAULT.url,), facts)
    assert asked[1][0][1:] == ("folder", "cpu") and asked[1][1] == {"weights_only": False}
    assert asked[2] == ((kind.DEFAULT.url, None, None, True, False, None, False), {})


# --- models of a program's own, built by the families' functions


def _size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_families_with_other_shapes() -> None:
    from torchlab.vision.models import efficientnet, mobilenetv3, resnet, swin_transformer
    from torchlab.vision.models.convnext import CNBlockConfig, _convnext
    from torchlab.vision.models.densenet import _densenet
    from torchlab.vision.models.vision_transformer import _vision_transformer

    none: tuple[Any, ...] = (None, True)
    blocks = [CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)]
    setting, last = efficientnet._efficientnet_conf("efficientnet_b0", width_mult=1, depth_mult=1)
    small, channels = mobilenetv3._mobilenet_v3_conf(
        "mobilenet_v3_small", dilated=True, reduced_tail=True
    )
    assert (len(setting), last, len(small), channels) == (7, None, 11, 512)
    assert efficientnet._efficientnet_conf("efficientnet_v2_m")[1] == 1280
    swin = swin_transformer._swin_transformer
    made = [
        resnet._resnet(resnet.BasicBlock, [1] * 4, *none, num_classes=3),
        _vision_transformer(8, 2, 2, 16, 32, *none, image_size=32, num_classes=4),
        _vision_transformer(16, 1, 2, 16, 32, *none),
        efficientnet._efficientnet(setting[:2], 0.2, last, *none, num_classes=4),
        mobilenetv3._mobilenet_v3(small, channels, *none, num_classes=3),
        swin([4, 4], 12, [1, 1], [2, 2], [4, 4], 0.1, *none, num_classes=3),
        _convnext(blocks, 0.1, *none, num_classes=3),
        _densenet(8, (2, 2), 16, *none, num_classes=3),
    ]
    # the numbers of parameters that torchvision's have
    sizes = [4907331, 7924, 34728, 21974, 588211, 11287, 4987, 15315]
    assert [_size(m) for m in made] == sizes
    for conf in (efficientnet._efficientnet_conf, mobilenetv3._mobilenet_v3_conf):
        with pytest.raises(ValueError, match="Unsupported model type other"):
            conf("other")
    with torch.device("meta"):
        assert _size(models.vgg._vgg("A", True, *none, num_classes=3)) == 128784131
        half = models.mobilenet_v3_large(width_mult=0.5, reduced_tail=True, num_classes=3)
        assert _size(half) == 522187


def test_a_model_of_a_program() -> None:
    from torchlab.vision.models.resnet import BasicBlock, _resnet

    kind: Any = models.ResNet18_Weights

    @register_model()
    @_utils.handle_legacy_interface(weights=("pretrained", kind.IMAGENET1K_V1))
    def own_resnet(*, weights: kind | None = None, progress: bool = True, **kwargs: Any) -> Any:
        """Its own."""
        return _resnet(BasicBlock, [1, 1, 1, 1], kind.verify(weights), progress, **kwargs)

    try:
        assert models.get_model("own_resnet", num_classes=3).fc.out_features == 3
        assert own_resnet.__doc__ == "Its own." and "own_resnet" in models.list_models()
        with pytest.raises(ValueError, match="'num_classes' expected value 1000 but got 3"):
            own_resnet(weights="DEFAULT", num_classes=3)
    finally:
        BUILTIN_MODELS.pop("own_resnet", None)


# --- arguments


def test_arguments_by_position() -> None:
    with pytest.warns(UserWarning, match="Using 'weights' and 'progress' as positional param"):
        models.mobilenet_v3_small(None, True)
    with pytest.warns(UserWarning) as seen:
        models.mobilenet_v3_small(False)
    assert str(seen[0].message) == (
        "Using 'weights' as positional parameter(s) is deprecated since 0.13 and may be removed in"
        " the future. Please use keyword parameter(s) instead."
    )
    assert str(seen[1].message).endswith("equivalent to passing `weights=None`.")
    with pytest.raises(ValueError, match="No weights available for model vit_h_14"):
        models.vit_h_14(pretrained=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models.mobilenet_v3_small(weights=None, progress=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'pretrained'"):
        models.resnet18(weights=None, pretrained=False)


def test_values_that_weights_fix() -> None:
    with pytest.raises(ValueError, match="'image_size' expected value 384 but got 224 instead"):
        models.vit_b_16(weights="IMAGENET1K_SWAG_E2E_V1", image_size=224)
    with pytest.raises(ValueError, match="'groups' expected value 32 but got 2 instead"):
        models.resnext50_32x4d(groups=2)
    with pytest.raises(ValueError, match="'num_classes' expected value 91 but got 3 instead"):
        detection.maskrcnn_resnet50_fpn_v2(weights="DEFAULT", num_classes=3)
    given = {"a": 1}
    _utils._ovewrite_named_param(given, "b", 2)
    _utils._ovewrite_named_param(given, "a", 1)
    assert given == {"a": 1, "b": 2}
    assert _utils._ovewrite_value_param("a", None, 3) == 3
    with pytest.raises(ValueError, match="'a' expected value 2 but got None"):
        _utils._ovewrite_named_param({"a": None}, "a", 2)


def test_keyword_only_parameters_by_position() -> None:
    @_utils.kwonly_to_pos_or_kw
    def call(a: int, *, b: int, c: int = 3) -> tuple[int, ...]:
        return a, b, c

    assert call(1, b=2) == (1, 2, 3)
    with pytest.warns(UserWarning, match="Using 'b' and 'c' as positional"):
        assert call(1, 2, 4) == (1, 2, 4)
    with pytest.raises(TypeError, match="Found no keyword-only parameter on function 'f'"):

        @_utils.kwonly_to_pos_or_kw
        def f(x: int) -> None: ...

    with pytest.warns(UserWarning, match="Accessing the model URLs"):
        assert _utils._ModelURLs(a="b")["a"] == "b"


# --- backbones


def test_weights_of_a_backbone() -> None:
    torch.manual_seed(1)
    saved = models.mobilenet_v3_large()
    _put(models.MobileNet_V3_Large_Weights.IMAGENET1K_V1, saved.state_dict())
    model: Any = detection.fasterrcnn_mobilenet_v3_large_320_fpn(num_classes=4)
    body = model.backbone.body
    assert isinstance(body["0"][1], ops.FrozenBatchNorm2d)
    assert torch.equal(body["0"][0].weight, saved.features[0][0].weight)
    assert model.roi_heads.box_predictor.cls_score.out_features == 4
    trained = {n.split(".")[0] for n, p in body.named_parameters() if p.requires_grad}
    assert trained == {"7", "8", "9", "10", "11", "12", "13", "14", "15", "16"}
    model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights_backbone=None)
    assert isinstance(model.backbone.body["0"][1], nn.BatchNorm2d)
    assert model.roi_heads.box_predictor.cls_score.out_features == 91
    with pytest.warns(UserWarning, match="nor pretrained_backbone have been set to True"):
        detection.fasterrcnn_mobilenet_v3_large_fpn(
            weights_backbone=None, trainable_backbone_layers=2
        )
    with pytest.warns(UserWarning) as seen:
        bone = mobilenet_backbone(backbone_name="mobilenet_v3_large", pretrained=True, fpn=False)
    assert "weights=MobileNet_V3_Large_Weights.DEFAULT" in str(seen[1].message)
    assert torch.equal(bone[0][0][0].weight, saved.features[0][0].weight)
    with pytest.raises(TypeError, match="required keyword-only argument: 'weights'"):
        resnet_fpn_backbone(backbone_name="resnet18")
    with pytest.raises(KeyError, match="resnet19"):
        resnet_fpn_backbone(backbone_name="resnet19", weights=None)


def test_weights_of_a_detector() -> None:
    torch.manual_seed(1)
    saved: Any = detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights_backbone=None)
    _put(detection.FasterRCNN_MobileNet_V3_Large_320_FPN_Weights.DEFAULT, saved.state_dict())
    model: Any = detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights="COCO_V1")
    mine, theirs = model.state_dict(), saved.state_dict()
    assert all(torch.equal(v, theirs[k]) for k, v in mine.items())
    assert model.backbone.body["0"][1].eps == 1e-5
