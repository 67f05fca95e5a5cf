"""A text whose tokens are those of a tokenizer: what `data: {name: text, unit: bpe}` does."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data.bpe.documents import Advance, Part, documents
from gradcli.data.bpe.encoding import code_of, encoded
from gradcli.data.bpe.tokenizer import (
    FILE,
    Tokenizer,
    require_library,
    tokenizer_at,
    trained_tokenizer,
)
from gradcli.data.dataset import DataSpec, Labelled, LoadedData, Unseen
from gradcli.data.facts import DataFacts
from gradcli.data.files import expanded, gzip_notes, load, locate, path_text, regular_size
from gradcli.data.prepared.cache import cache_folder
from gradcli.data.samples import imagined
from gradcli.data.split import cut, parts_of
from gradcli.data.tabular.table_files import by_role, files_of, locate_files, text_size
from gradcli.data.text import DEFAULT_SPLIT, too_few, windows_of
from gradcli.data.token_windows import Shard, TokenWindows, pieces_of, stored_as, whole
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor

if TYPE_CHECKING:
    from gradcli.data.prepared.writer import Writer
    from gradcli.data.text import TextSource

_SHARES = 10**6  # into which a text is thought to be cut
SMALL = 1 << 20  # bytes of texts that are encoded at each start
TRAINED_FROM, READER, VERSION = "tokenizer", "bpe", 1  # of prepared data
ROLE = "tokenizer"  # of its hash


@dataclass(frozen=True)
class EncodedText:
    """A text as tokens, `rows` as `stored_as` says; `sha256` of its files by their roles."""

    rows: Tensor
    sha256: Mapping[str, str]
    mapped: bool


class BpeText:
    """The files of a source, read once by whoever asks first."""

    def __init__(self, source: TextSource) -> None:
        self.source = source

    @cached_property
    def files(self) -> dict[str, Path]:
        """The file of each role."""
        return dict(by_role("train", files_of(self.source.file)))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the config names, or one trained on the training split."""
        setting = self.source.tokenizer
        if isinstance(setting, str):
            return tokenizer_at(Path(setting), self.source.end)
        assert setting is not None, "a text of bpe has a tokenizer"
        return self._train(setting["train"])

    @property
    def file(self) -> tuple[str, str]:
        """Name and text of what a run keeps of the tokenizer."""
        return FILE, self.tokenizer.text

    # -- reading ---------------------------------------------------------------------------------

    def _parts(self, files: Iterable[Path], advance: Advance | None = None) -> Iterator[Part]:
        for path in files:
            yield from documents(path, self.source.key, advance)

    @property
    def _is_small(self) -> bool:
        size = text_size(list(self.files.values()))
        return size is not None and size <= SMALL

    @cached_property
    def sha256(self) -> dict[str, str]:
        """The hash of each file by its role."""
        if self._is_small:
            return {role: load(path).sha256 for role, path in self.files.items()}
        from gradcli.data.prepared.identity import sha256_of_all
        from gradcli.data.prepared.progress import Progress

        paths, cache = list(self.files.values()), cache_folder(self.source.cache)
        with Progress(
            f"hashing {path_text(paths[0].name)}", sum(map(regular_size, paths)), "B"
        ) as bar:
            hashes = sha256_of_all(paths, bar.advance, cache)
        return {role: hashes[path] for role, path in self.files.items()}

    def _train(self, size: int) -> Tokenizer:
        if self._is_small:
            return trained_tokenizer(self._training_texts(), size)
        from gradcli.data.prepared.sets import Recipe, prepared

        def write(writer: Writer) -> dict[str, Any]:
            progress = writer.progress(text_size(list(self.files.values())), "B")
            return {"json": trained_tokenizer(self._training_texts(progress.advance), size).text}

        keys = {"size": size, "key": self.source.key, "share": self._training_share}
        content = prepared(
            Recipe(TRAINED_FROM, VERSION, keys, self._sources()),
            write,
            cache_folder(self.source.cache),
        )
        return Tokenizer(content.facts["json"], "the tokenizer that was trained")

    @property
    def _training_share(self) -> float:
        """The training split's of the text, which has no tokens yet that could be counted."""
        split = parts_of(self.source.split or DEFAULT_SPLIT)
        counts = sum(size for size in split.values() if isinstance(size, int))
        parts = cut(split, counts or _SHARES)
        return len(parts["train"]) / (counts or _SHARES)

    def _training_texts(self, advance: Advance | None = None) -> Iterator[str]:
        """The first bytes of the text, as many as the training split's share."""
        paths = list(self.files.values())
        total = text_size(paths) if self.source.key is None else None
        if total is None:  # known once all is read
            total = sum(len(text.encode()) for text, _ in self._parts(paths))
        rest = int(self._training_share * total)
        for text, _ in self._parts(paths, advance):
            content = text.encode()
            yield text if len(content) <= rest else content[:rest].decode(errors="ignore")
            rest -= len(content)
            if rest <= 0:
                return

    def _sources(self) -> dict[str, tuple[Path, str]]:
        return {role: (path, self.sha256[role]) for role, path in self.files.items()}

    @cached_property
    def text(self) -> EncodedText:
        """All tokens, in memory or mapped."""
        tokenizer = self.tokenizer
        if self._is_small:
            return EncodedText(self._rows(self.files.values()), self.sha256, mapped=False)
        from gradcli.data.prepared.sets import Recipe, prepared

        dtype, inner = stored_as(array(code_of(tokenizer.vocab)).itemsize)

        def write(writer: Writer) -> dict[str, Any]:
            paths = list(self.files.values())
            progress = writer.progress(text_size(paths), "B")
            tokens = writer.array("tokens", dtype, inner)
            for some in encoded(self._parts(paths, progress.advance), tokenizer):
                tokens.append(some)
            return {}

        keys = {"tokenizer": tokenizer.sha256, "key": self.source.key, "end": tokenizer.end}
        content = prepared(
            Recipe(READER, VERSION, keys, self._sources()), write, cache_folder(self.source.cache)
        )
        return EncodedText(content.tensor("tokens"), content.sha256, mapped=True)

    def _rows(self, files: Iterable[Path]) -> Tensor:
        """The tokens of files, in memory."""
        code = code_of(self.tokenizer.vocab)
        tokens = array(code)
        for some in encoded(self._parts(files), self.tokenizer):
            tokens.extend(some)
        dtype, inner = stored_as(tokens.itemsize)
        return engine.frombuffer(tokens.tobytes(), dtype=dtype).reshape(len(tokens), *inner)

    # -- what a source does ----------------------------------------------------------------------

    def facts(self) -> DataSpec:
        """From the whole text."""
        vocab, context = self.tokenizer.vocab, self.source.context
        splits = self._splits(self.text.rows)
        return DataSpec(
            input=(context,),
            input_kind="index",
            target=(context,),
            classes=vocab,
            vocab=vocab,
            labels=(),
            sizes={name: split.size for name, split in splits.items()},
        )

    def outline(self, facts: DataSpec) -> dict[str, TokenWindows]:
        """The splits as `load` makes them, on "meta"."""
        with engine.device("meta"):
            if "text" in vars(self):
                rows = imagined(self.text.rows.shape, self.text.rows.dtype, mapped=self.text.mapped)
                return self._splits(rows)
            splits = {}
            for name, size in facts.sizes.items():
                step = self.source.step(name)
                count = (size - 1) * step + self.source.context + 1
                dtype, inner = stored_as(2 if (facts.vocab or 0) <= 1 << 16 else 4)
                rows = engine.empty(count, *inner, dtype=dtype)
                splits[name] = self._windows(rows, range(count), step, facts.vocab or 1)
            return splits

    def _splits(self, rows: Tensor) -> dict[str, TokenWindows]:
        source, vocab = self.source, self.tokenizer.vocab
        parts = cut(source.split or DEFAULT_SPLIT, rows.shape[0])
        for name, part in parts.items():
            if len(part) <= source.context:
                raise too_few(len(part), source.context, path_text(source.file), name)
        return {
            name: self._windows(rows, part, source.step(name), vocab)
            for name, part in parts.items()
        }

    def _windows(self, rows: Tensor, part: range, step: int, vocab: int) -> TokenWindows:
        shards = (Shard(Path(self.source.file), 0, rows.shape[0]),)
        pieces = pieces_of(shards, part, self.source.context, step)
        return TokenWindows(rows, pieces, shards, self.source.context, step, vocab)

    def load(self) -> LoadedData:
        """All tokens, in memory or mapped."""
        text = self.text
        return LoadedData(
            source=self.source,
            facts=DataFacts.of(self.facts(), unit="bpe", tokenizer=self.tokenizer.sha256),
            splits=dict(self._splits(text.rows)),
            sha256={**text.sha256, ROLE: self.tokenizer.sha256},
            files={role: str(path) for role, path in self.files.items()},
            notes=(*self._notes(), *(n for path in self.files.values() for n in gzip_notes(path))),
        )

    def _notes(self) -> Iterator[str]:
        if self.tokenizer.end is None and (self.source.key is not None or len(self.files) > 1):
            yield (
                "documents follow each other without a token between them: the tokenizer has none "
                "of a usual name; data.end names one"
            )

    def misfits(self, facts: DataFacts) -> Iterator[tuple[str, str]]:
        """Fields of facts that are not of this tokenizer, each with what is expected."""
        if facts.tokenizer != self.tokenizer.sha256:
            yield "tokenizer", f"expected {self.tokenizer.sha256}, the sha256 of {FILE}"
        if facts.vocab != self.tokenizer.vocab:
            yield "vocab", f"expected {self.tokenizer.vocab}"

    def new_inputs(self, path: Path, facts: DataFacts) -> Unseen:
        """Windows of another text, end to end; the last one ends where the text ends."""
        tokens = whole(self._rows([path])).tolist()
        inputs, starts = windows_of(tokens, facts, path_text(path))
        return Unseen(inputs, [f"{path.name}:{at}" for at in starts], range(len(starts)))

    def new_split(self, path: Path, facts: DataFacts) -> Labelled:
        """Windows of another text, end to end, as far as they are whole."""
        rows = self._rows([path])
        (width,) = facts.input
        if rows.shape[0] <= width:
            raise too_few(rows.shape[0], width, path_text(path))
        return Labelled(self._windows(rows, range(rows.shape[0]), width, self.tokenizer.vocab))


def located(
    file: str, tokenizer: str | dict[str, Any] | None, root: Path
) -> tuple[str, str | dict[str, Any] | None]:
    """The paths of a config made absolute."""
    require_library()
    if isinstance(tokenizer, str):
        folder = root / expanded(tokenizer)
        tokenizer = str(folder.absolute() if folder.is_dir() else locate(tokenizer, root))
    return locate_files(file, root), tokenizer
