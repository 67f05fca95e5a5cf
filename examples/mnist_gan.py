"""Two networks that learn from each other to draw digits: a GAN (Goodfellow et al. 2014).

The generator makes images of 28 x 28 from 128 random numbers, the discriminator tells them from
MNIST's. Batches and losses are those of dlgrad's example; but where that has perceptrons we have
convolutions (Radford et al. 2015), which need a tenth of the passes. Each network is trained
with Adam on what the other does, the generator on the loss that does not saturate. After each pass
64 drawings of the same numbers are written.

    python examples/mnist_gan.py --epochs 6 --out drawings.png
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import grey_png

from gradcli import data, engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F

NOISE, BATCH, SIDE, SHOWN = 128, 100, 28, 64
DATASET = Path(__file__).resolve().parents[1] / "datasets" / "mnist"


class Generator(nn.Module):
    """Numbers (N, 128) to images (N, 1, 28, 28) from -1 to 1."""

    def __init__(self) -> None:
        super().__init__()
        self.spread = nn.Linear(NOISE, 64 * 7 * 7)
        self.draw = nn.Sequential(
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
            nn.Tanh(),
        )

    def forward(self, numbers: engine.Tensor) -> engine.Tensor:
        """Seven by seven pixels of 64 channels first, then twice as many, then four times."""
        return self.draw(self.spread(numbers).reshape(-1, 64, 7, 7))


class Discriminator(nn.Module):
    """Images (N, 1, 28, 28) to numbers (N, 1): positive for one of MNIST's."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 32, 4, stride=2, padding=1)
        self.second = nn.Conv2d(32, 64, 4, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(64)
        self.verdict = nn.Linear(64 * 7 * 7, 1)

    def forward(self, images: engine.Tensor) -> engine.Tensor:
        """Logits."""
        seen = F.leaky_relu(self.first(images), 0.2)
        seen = F.leaky_relu(self.norm(self.second(seen)), 0.2)
        return self.verdict(seen.flatten(1))


class Gan:
    """Both networks, and the step in which they learn."""

    def __init__(self) -> None:
        self.generator, self.discriminator = Generator(), Discriminator()
        betas = (0.5, 0.999)
        self.draw_better = optim.Adam(self.generator.parameters(), lr=5e-4, betas=betas)
        self.judge_better = optim.Adam(self.discriminator.parameters(), lr=2e-4, betas=betas)
        self.step = engine.capture(self._step)

    def _step(self, images: engine.Tensor) -> engine.Tensor:
        """One update of each on images from -1 to 1; the losses, the discriminator's first."""
        real, fake = engine.ones(len(images), 1), engine.zeros(len(images), 1)
        drawn = self.generator(noise(len(images)))
        self.judge_better.zero_grad()
        told = (
            F.binary_cross_entropy_with_logits(self.discriminator(images), real)
            + F.binary_cross_entropy_with_logits(self.discriminator(drawn.detach()), fake)
        ) / 2
        told.backward()
        self.judge_better.step()
        self.draw_better.zero_grad()
        fooled = F.binary_cross_entropy_with_logits(self.discriminator(drawn), real)
        fooled.backward()
        self.draw_better.step()
        return engine.stack([told.detach(), fooled.detach()])

    def epoch(self, images: data.Split, steps: int) -> list[float]:
        """The mean losses of so many steps on batches in a new order."""
        order = engine.randperm(images.size)
        total = engine.zeros(2)
        for number in range(steps):
            start = number * BATCH % (images.size - BATCH + 1)
            batch, _ = images.batch(order[start : start + BATCH])
            total += self.step(batch * 2.0 - 1.0)
        return (total / steps).tolist()

    @engine.no_grad()
    def drawings(self, numbers: engine.Tensor) -> engine.Tensor:
        """What is made of these numbers: (N, 28, 28) from 0 to 1."""
        return (self.generator(numbers).reshape(-1, SIDE, SIDE) + 1.0) / 2.0


def noise(count: int) -> engine.Tensor:
    """What drawings are made of: numbers from -1 to 1."""
    return engine.rand(count, NOISE) * 2.0 - 1.0


def main() -> None:
    """Read the options, train, write the drawings after each epoch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--steps", type=int, default=600, help="steps of an epoch")
    parser.add_argument("--out", type=Path, default=Path("drawings.png"))
    options = parser.parse_args()
    engine.manual_seed(1)
    images = data.DATASETS["mnist"](dir=str(DATASET)).load().splits["train"]
    gan, numbers = Gan(), noise(SHOWN)
    for epoch in range(1, options.epochs + 1):
        began = time.monotonic()
        told, fooled = gan.epoch(images, options.steps)
        grey_png.save(options.out, gan.drawings(numbers), across=16)
        sys.stderr.write(
            f"epoch {epoch}: discriminator {told:.3f}, generator {fooled:.3f}, "
            f"{time.monotonic() - began:.1f} s\n"
        )


if __name__ == "__main__":
    main()
