"""Test images above what a trained autoencoder makes of them, as a PNG file.

gradcli train configs/mnist_autoencoder.yaml
python examples/show_autoencoder.py last --out reconstructions.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import grey_png

from gradcli import engine
from gradcli.config.trained import open_trained
from gradcli.errors import GradcliError
from gradcli.train.run_name import find


def pairs(run: Path, checkpoint: str | None, across: int, rows: int) -> engine.Tensor:
    """(2 * rows * across, H, W): a row of images, a row of their reconstructions, and so on."""
    job = open_trained(run, checkpoint, "cpu").job
    images, _ = job.dataset.splits["test"].batch(engine.arange(across * rows))
    job.model.eval()
    with engine.no_grad():
        made = job.model(images)
    height, width = images.shape[-2:]
    both = [x.reshape(rows, 1, across, height, width) for x in (images, made)]
    return engine.cat(both, dim=1).reshape(-1, height, width)


def main() -> None:
    """Read the options, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="a path, a run's name or `last`, with @STEP")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--checkpoint", help="`best`, `last` or a step")
    parser.add_argument("--out", type=Path, default=Path("reconstructions.png"))
    parser.add_argument("--across", type=int, default=12, help="images in a row")
    parser.add_argument("--rows", type=int, default=2, help="rows of images")
    options = parser.parse_args()
    try:
        run, checkpoint = find(options.runs, options.run, options.checkpoint)
        shown = pairs(run, checkpoint, options.across, options.rows)
    except GradcliError as error:
        parser.error(str(error))
    grey_png.save(options.out, shown, options.across)


if __name__ == "__main__":
    main()
