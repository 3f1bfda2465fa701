"""How fast a loader's workers deliver images, beside PyTorch with torchvision.

    python tests/benchmarks/loader.py rate [ours|theirs ...]     batches of FakeData a second
    python tests/benchmarks/loader.py handover [ours|theirs]     a batch of 20 MB, worker to loader
    python tests/benchmarks/loader.py memory                     resident memory over 1000 batches
    python tests/benchmarks/loader.py persistent                 what a pass costs before it reads

`rate` runs the two in turn, each in a process of its own, and gives seconds, seconds of all
processors (`user`) and batches a second. Where torchvision's compiled part is missing, give a
module that makes it importable in TORCHVISION_SETUP. Where there is no torchvision, the same data
set and transforms in NumPy stand for it.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCHES = 24
MEGABYTES = 20
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def library(which: str) -> Any:
    return importlib.import_module({"ours": "torchlab", "theirs": "torch"}[which])


def image_data(which: str, n: int) -> Any:
    """Noise, cropped, flipped and normalized."""
    if which == "ours":
        vision = importlib.import_module("torchlab.vision")
    else:
        if setup := os.environ.get("TORCHVISION_SETUP"):
            importlib.import_module(setup)
        try:
            vision = importlib.import_module("torchvision")
        except ImportError:
            return StandIn(n)
    transforms = vision.transforms
    change = transforms.Compose(
        [
            transforms.RandomCrop(224, padding=8),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )
    return vision.datasets.FakeData(n, (3, 224, 224), transform=change)


class StandIn:
    """For torchvision: what its data set and transforms do, in PyTorch and NumPy."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.torch = library("theirs")
        self.mean, self.std = (np.array(v, np.float32).reshape(3, 1, 1) for v in (MEAN, STD))

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[Any, int]:
        torch = self.torch
        state = torch.get_rng_state()
        torch.manual_seed(i)
        noise = torch.randn(3, 224, 224)
        label = int(torch.randint(0, 10, (1,)))
        torch.set_rng_state(state)
        image = np.pad(noise.mul(255).byte().numpy(), ((0, 0), (8, 8), (8, 8)))
        y, x = (int(torch.randint(0, 17, (1,))) for _ in range(2))
        image = image[:, y : y + 224, x : x + 224]
        if torch.rand(1) < 0.5:
            image = image[:, :, ::-1]
        made = image.astype(np.float32)
        made /= 255
        made -= self.mean
        made /= self.std
        return torch.from_numpy(made), label


def image_loader(which: str, batches: int, **arguments: Any) -> Any:
    torch = library(which)
    data = importlib.import_module(torch.__name__ + ".utils.data")
    return data.DataLoader(image_data(which, 32 * batches), 32, num_workers=2, **arguments)


def rate(which: str) -> None:
    """One pass; the first batches, which wait for the workers to start, are not counted."""
    loader = image_loader(which, BATCHES + 4)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    began = time.perf_counter()
    for x, _ in batches:
        assert x.shape == (32, 3, 224, 224)
    took = time.perf_counter() - began
    del batches
    user = sum(
        resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(
        f"{which:6s} {took:6.2f} s  {user:6.2f} s user  {BATCHES / took:6.2f} batches/s", flush=True
    )


class Rows:
    """Samples that cost nothing to read, 32 of which make a batch of 20 MB."""

    def __init__(self, torch: Any) -> None:
        self.row = torch.zeros(MEGABYTES << 13)

    def __len__(self) -> int:
        return 32 * 30

    def __getitem__(self, i: int) -> Any:
        return self.row


class Timed:
    """Collates, and says when it had done so."""

    def __init__(self, torch: Any, data: Any) -> None:
        self.torch = torch
        self.collate = data.default_collate

    def __call__(self, samples: list[Any]) -> Any:
        time.sleep(0.05)  # the loader waits already
        began = time.perf_counter()
        batch = self.collate(samples)
        return batch, [began, time.perf_counter()]


def handover(which: str) -> None:
    """From the moment at which a worker has a batch to the moment at which the loader has it; and
    what it takes to put the batch together."""
    torch = library(which)
    data = importlib.import_module(torch.__name__ + ".utils.data")
    loader = data.DataLoader(
        Rows(torch), 32, num_workers=1, prefetch_factor=1, collate_fn=Timed(torch, data)
    )
    took, collated = [], []
    for batch, (began, made) in loader:
        took.append(time.perf_counter() - made)
        collated.append(made - began)
        assert batch.shape[0] == 32
        del batch  # or the next measurement has the freeing of 20 MB in it
    print(which.ljust(6), end="")
    for what, times in (("handed over", took), ("collated", collated)):
        times = sorted(times[5:])
        middle, best = 1e3 * statistics.median(times), 1e3 * times[0]
        print(f"  {what} in {middle:.2f} ms, {best:.2f} at best", end="")
    print(flush=True)


def resident(pid: Any) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4 // 1024


class Noise:
    def __len__(self) -> int:
        return 32 * 1000

    def __getitem__(self, i: int) -> Any:
        torch = library("ours")
        return torch.full((3, 64, 64), float(i)), i


def memory() -> None:
    data = importlib.import_module("torchlab.utils.data")
    batches = iter(data.DataLoader(Noise(), 32, num_workers=2))
    pids = ["self", *(w.process.pid for w in batches._workers)]
    for i, _ in enumerate(batches):
        if i in (50, 500, 990):
            print(
                f"after {i:4d} batches: {[resident(pid) for pid in pids]} MB (loader, workers)",
                flush=True,
            )


def persistent() -> None:
    for stay in (False, True):
        loader = image_loader("ours", 2, persistent_workers=stay)
        took = []
        for _ in range(4):
            began = time.perf_counter()
            batches = iter(loader)
            took.append(time.perf_counter() - began)
            list(batches)
        print(f"persistent_workers={stay}: " + " ".join(f"{1e3 * t:.1f}" for t in took), "ms")


def main() -> None:
    what, *which = sys.argv[1:] or ["rate"]
    if what == "one":
        {"rate": rate, "handover": handover}[which[0]](which[1])
    elif what == "memory":
        memory()
    elif what == "persistent":
        persistent()
    else:
        env = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        for _ in range(3):
            for name in which or ["ours", "theirs"]:
                subprocess.run([sys.executable, __file__, "one", what, name], check=True, env=env)


if __name__ == "__main__":
    main()
