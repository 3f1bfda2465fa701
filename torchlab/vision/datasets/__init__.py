"""`torchvision.datasets`: data sets of images.

Source: https://docs.pytorch.org/vision/0.28/datasets.html
"""

from torchlab.vision.datasets.caltech import Caltech101, Caltech256
from torchlab.vision.datasets.celeba import CelebA
from torchlab.vision.datasets.cifar import CIFAR10, CIFAR100
from torchlab.vision.datasets.cityscapes import Cityscapes
from torchlab.vision.datasets.coco import CocoCaptions, CocoDetection
from torchlab.vision.datasets.country211 import Country211
from torchlab.vision.datasets.dtd import DTD
from torchlab.vision.datasets.emnist import EMNIST
from torchlab.vision.datasets.eurosat import EuroSAT
from torchlab.vision.datasets.fakedata import FakeData
from torchlab.vision.datasets.fgvc_aircraft import FGVCAircraft
from torchlab.vision.datasets.flowers102 import Flowers102
from torchlab.vision.datasets.folder import DatasetFolder, ImageFolder
from torchlab.vision.datasets.food101 import Food101
from torchlab.vision.datasets.gtsrb import GTSRB
from torchlab.vision.datasets.imagenet import ImageNet
from torchlab.vision.datasets.imagenette import Imagenette
from torchlab.vision.datasets.kitti import Kitti
from torchlab.vision.datasets.mnist import KMNIST, MNIST, FashionMNIST
from torchlab.vision.datasets.moving_mnist import MovingMNIST
from torchlab.vision.datasets.omniglot import Omniglot
from torchlab.vision.datasets.oxford_iiit_pet import OxfordIIITPet
from torchlab.vision.datasets.qmnist import QMNIST
from torchlab.vision.datasets.rendered_sst2 import RenderedSST2
from torchlab.vision.datasets.semeion import SEMEION
from torchlab.vision.datasets.stanford_cars import StanfordCars
from torchlab.vision.datasets.stl10 import STL10
from torchlab.vision.datasets.svhn import SVHN
from torchlab.vision.datasets.usps import USPS
from torchlab.vision.datasets.vision import VisionDataset
from torchlab.vision.datasets.voc import VOCDetection, VOCSegmentation
from torchlab.vision.datasets.wrapping import wrap_dataset_for_transforms_v2

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "Caltech101",
    "Caltech256",
    "CelebA",
    "Cityscapes",
    "CocoCaptions",
    "CocoDetection",
    "Country211",
    "DTD",
    "DatasetFolder",
    "EMNIST",
    "EuroSAT",
    "FGVCAircraft",
    "FakeData",
    "FashionMNIST",
    "Flowers102",
    "Food101",
    "GTSRB",
    "ImageFolder",
    "ImageNet",
    "Imagenette",
    "KMNIST",
    "Kitti",
    "MNIST",
    "MovingMNIST",
    "Omniglot",
    "OxfordIIITPet",
    "QMNIST",
    "RenderedSST2",
    "SEMEION",
    "STL10",
    "SVHN",
    "StanfordCars",
    "USPS",
    "VOCDetection",
    "VOCSegmentation",
    "VisionDataset",
    "wrap_dataset_for_transforms_v2",
]
