"""Files that are of another kind than their name or place says, known by their first bytes."""

from __future__ import annotations

FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"PK\x03\x04", "a zip archive (torch.save and spreadsheets write these)"),
    (b"GGUF", "a GGUF file"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself"),
    (b"<!doctype", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"RIFF", "a WebP picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"%PDF", "a PDF document"),
    (b"\x93NUMPY", "a NumPy array"),
)


def kind_of(start: bytes) -> str | None:
    """What a file seems to be, from its first bytes; None where they say nothing."""
    text = start.lstrip().lower()
    for magic, kind in FOREIGN:
        if start.startswith(magic) or text.startswith(magic):
            return kind
    return None


def kind_of_text(start: bytes) -> str | None:
    """The same of a file that should be text: a zero byte begins no text."""
    return kind_of(start) or ("a binary file" if start.startswith(b"\0") else None)
