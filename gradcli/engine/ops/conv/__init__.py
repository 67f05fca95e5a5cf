"""Windows on images and lines: convolution, pooling, resizing, affine maps."""
