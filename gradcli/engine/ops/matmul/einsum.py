"""Einsum: sums of products named by letters, contracted two operands at a time through matmul."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from gradcli.dataclass import dataclass
from gradcli.engine.argument import unpack_list
from gradcli.engine.composite import function
from gradcli.engine.ops.elementwise.arithmetic import mul
from gradcli.engine.ops.matmul.matmul import matmul
from gradcli.engine.ops.reduce.sum import sum as sum_over
from gradcli.engine.ops.shape.diagonal import diagonal
from gradcli.engine.ops.shape.permute import permute
from gradcli.engine.ops.shape.reshape import own_memory, reshape
from gradcli.engine.sample import sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity


@dataclass(frozen=True)
class _Term:
    """A tensor whose dimensions have letters, all different.

    The dimensions under an ellipsis are the numbers ..., -2, -1, counted from the right.
    """

    tensor: Tensor
    letters: tuple[str | int, ...]

    def size(self, letter: str | int) -> int:
        return self.tensor.shape[self.letters.index(letter)]

    def sizes(self, letters: Sequence[str | int]) -> tuple[int, ...]:
        return tuple(self.size(letter) for letter in letters)

    def ordered(self, letters: Sequence[str | int]) -> Tensor:
        """A view with the dimensions in this order."""
        order = [self.letters.index(letter) for letter in letters]
        return self.tensor if order == sorted(order) else permute(self.tensor, order)

    def without(self, letters: Sequence[str | int]) -> _Term:
        """Summed over these; a sum over one element is a view."""
        removed = [self.letters.index(letter) for letter in letters]
        if not removed:
            return self
        remaining = [d for d in range(len(self.letters)) if d not in removed]
        if all(self.tensor.shape[d] == 1 for d in removed):
            rest = reshape(self.tensor, tuple(self.tensor.shape[d] for d in remaining))
        else:
            rest = sum_over(self.tensor, dim=tuple(removed))
        return _Term(rest, tuple(self.letters[d] for d in remaining))


def _split(equation: str, count: int) -> tuple[list[str], str | None]:
    """The operands' letters, and those of the result where they are given."""
    text = equation.replace(" ", "")
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", text):
        raise OptionError(f"einsum: '{equation:.60}' may hold letters, '...', ',' and one '->'")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise OptionError(
            f"einsum: '{equation:.60}' names {quantity(len(terms), 'operand')}, got {count}"
        )
    for term in (*terms, right):
        if "." in term.replace("...", "", 1):
            raise OptionError(f"einsum: '{term}' has dots that are no single ellipsis")
    return terms, right if arrow else None


def _letters(term: str, x: Tensor, equation: str) -> tuple[str | int, ...]:
    """One name a dimension."""
    before, dots, after = term.partition("...")
    hidden = x.ndim - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise ShapeError(f"einsum: '{term}' of '{equation:.60}' does not fit shape {x.shape}")
    return (*before, *range(-hidden, 0), *after)


def _label(term: str, x: Tensor, equation: str) -> _Term:
    """An operand under its letters; a letter that stands twice walks the diagonal."""
    letters = list(_letters(term, x, equation))
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            a = letters.index(letter)
            b = letters.index(letter, a + 1)
            if x.shape[a] != x.shape[b]:
                raise ShapeError(
                    f"einsum: '{letter}' is {x.shape[a]} and {x.shape[b]} in shape {x.shape}"
                )
            x = diagonal(x, dim1=a, dim2=b)
            letters = [name for d, name in enumerate(letters) if d not in (a, b)] + [letter]
    return _Term(x, tuple(letters))


def _result(right: str | None, terms: Sequence[str], parts: Sequence[_Term]) -> list[str | int]:
    """The result's letters: as given, or the ellipsis and then those that stand once, sorted."""
    hidden = max((sum(isinstance(n, int) for n in part.letters) for part in parts), default=0)
    dots = list(range(-hidden, 0))
    if right is None:
        every = "".join(terms).replace(".", "")
        return [*dots, *sorted(letter for letter in set(every) if every.count(letter) == 1)]
    before, dotted, after = right.partition("...")
    return [*before, *(dots if dotted else ()), *after]


def _sizes(parts: Sequence[_Term]) -> dict[str | int, int]:
    """The size of each letter; a size of 1 is repeated to the others'."""
    sizes: dict[str | int, int] = {}
    for part in parts:
        for letter, size in zip(part.letters, part.tensor.shape, strict=True):
            common = sizes.setdefault(letter, size)
            if common == 1:
                sizes[letter] = size
            elif size not in (1, common):
                name = f"'{letter}'" if isinstance(letter, str) else "the ellipsis"
                raise ShapeError(f"einsum: {name} is {common} in one operand and {size} in another")
    return sizes


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """In most calls the shape is the tensor's own."""
    return x if x.shape == shape else reshape(x, shape)


def _pair(a: _Term, b: _Term, keep: set[str | int]) -> _Term:
    """Two operands contracted over all letters but those to `keep`."""
    both = set(a.letters) & set(b.letters)
    # A dimension of 1 repeats to the other's: it adds nothing to the product and is left out.
    a = a.without([n for n in a.letters if n in both and a.size(n) == 1 != b.size(n)])
    b = b.without([n for n in b.letters if n in a.letters and b.size(n) == 1 != a.size(n)])
    a = a.without([n for n in a.letters if n not in keep and n not in b.letters])
    b = b.without([n for n in b.letters if n not in keep and n not in a.letters])
    shared = [n for n in a.letters if n in b.letters]
    batch, summed = [n for n in shared if n in keep], [n for n in shared if n not in keep]
    left = [n for n in a.letters if n not in shared]
    right = [n for n in b.letters if n not in shared]
    names = (*batch, *left, *right)
    sizes = (*a.sizes(batch), *a.sizes(left), *b.sizes(right))
    lots, rows, columns, n = (
        prod(part) for part in (a.sizes(batch), a.sizes(left), b.sizes(right), a.sizes(summed))
    )
    if summed and a.tensor.is_floating_point():
        front = (lots,) if batch else ()
        x = _shaped(a.ordered([*batch, *left, *summed]), (*front, rows, n))
        y = _shaped(b.ordered([*batch, *summed, *right]), (*front, n, columns))
        return _Term(_shaped(matmul(x, y), sizes), names)
    x = reshape(a.ordered([*batch, *left, *summed]), (lots, rows, 1, n))
    y = reshape(b.ordered([*batch, *right, *summed]), (lots, 1, columns, n))
    product = mul(x, y)
    return _Term(reshape(sum_over(product, dim=-1) if summed else product, sizes), names)


@function(
    shares="either",
    method=False,
    samples=[
        sample((3, 4), (4, 2), equation="ij,jk->ik"),
        sample((2, 3, 4), equation="bij -> jb"),
        sample((4, 4), equation="ii"),
        sample((3, 3, 2), equation="iij->ji"),
        sample((2, 1, 3), (3, 4), equation="...i,ij"),
        sample((3,), (2, 3), (2,), equation="j,ij,i->"),
        sample((1, 3), (2, 4), equation="ij,ik->jk"),
        sample((2, 0), (0, 3), equation="ij,jk->ik"),
    ],
    wrong=[
        wrong(sample((2, 3), (4, 2), equation="ij,jk->ik"), "'j' is 3 in one operand and 4"),
        wrong(sample((2, 3), equation="ii"), "'i' is 2 and 3 in shape (2, 3)"),
    ],
)
def einsum(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Sums of products: 'ij,jk->ik' multiplies matrices; letters not in the result are summed over.

    A letter twice in one operand is a diagonal, '...' stands for dimensions that broadcast, and
    without '->' the letters that stand once are the result's, in alphabetical order. Operands are
    contracted from left to right.
    """
    tensors = unpack_list("einsum", "operands", operands)
    terms, right = _split(equation, len(tensors))
    parts = [_label(term, x, equation) for term, x in zip(terms, tensors, strict=True)]
    sizes = _sizes(parts)
    output = _result(right, terms, parts)
    if len(set(output)) != len(output) or not set(output) <= set(sizes):
        raise OptionError(
            f"einsum: '{equation:.60}': the result names a letter twice or an unknown one"
        )
    total = parts[0]
    for i, part in enumerate(parts[1:], 1):
        later = {letter for following in parts[i + 1 :] for letter in following.letters}
        total = _pair(total, part, later | set(output))
    summed = [letter for letter in total.letters if letter not in output]
    result = total.without(summed).ordered(output)
    return own_memory(result, tensors[0]) if summed else result
