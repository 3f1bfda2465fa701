"""`torchvision.datasets`: data sets of images.

Source: https://docs.pytorch.org/vision/0.28/datasets.html
"""

from torchlab.vision.datasets._wrapped import wrap_dataset_for_transforms_v2
from torchlab.vision.datasets.cifar import CIFAR10, CIFAR100
from torchlab.vision.datasets.fakedata import FakeData
from torchlab.vision.datasets.folder import DatasetFolder, ImageFolder
from torchlab.vision.datasets.mnist import KMNIST, MNIST, FashionMNIST
from torchlab.vision.datasets.vision import VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "KMNIST",
    "MNIST",
    "DatasetFolder",
    "FakeData",
    "FashionMNIST",
    "ImageFolder",
    "VisionDataset",
    "wrap_dataset_for_transforms_v2",
]
