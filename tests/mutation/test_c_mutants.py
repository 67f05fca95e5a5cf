"""Each operator makes C of C, and of nothing but code."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest
from c_mutants import OPERATORS, code, mutants_of

needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="mutants are compiled with gcc")

TINY = """\
/* A comment: a < b, x != x. */
#include <stdbool.h>
#define LENGTH (3 + 4)
#define GC_REQUIRE(condition, tensor, expected) if (!(condition)) return tensor
#define TWICE(x) \\
  ((x) * 2 + 1)
struct view { int shape[2], stride[2]; };
int gc_min(int a, int b);
int gc_max(int a, int b);
static const char *name = "a < b";
int f(struct view *v, float x, int n) {
  GC_REQUIRE(n >= 0 && v, 0, "a size");
  int sum = -1;
  if (!n || x != x)
    return name[0] == 'a';
  for (int i = 0; i < n; i++)
    sum += v->stride[0] * gc_min(i, n - 1);
  sum = gc_max(sum, TWICE(n) / 2);
  return sum;
}
"""


def test_every_operator_makes_a_mutant_of_a_tiny_text() -> None:
    assert {one.operator for one in mutants_of("tiny.c", TINY)} == set(OPERATORS)


def test_comments_strings_and_the_preprocessor_make_none() -> None:
    lines = {one.line(TINY) for one in mutants_of("tiny.c", TINY)}
    assert lines & {1, 2, 3, 10} == set()
    assert len(code(TINY)) == len(TINY)
    assert (
        mutants_of("tiny.c", '/* a < b */ // a + b\nchar *c = "a < b";\n#define N (3 + 4)\n') == []
    )


def test_the_body_of_a_macro_makes_some() -> None:
    assert {one.operator for one in mutants_of("tiny.c", TINY) if one.line(TINY) == 6} == {
        "product",
        "sum",
        "number",
    }


@needs_gcc
@pytest.mark.parametrize("operator", OPERATORS)
def test_mutants_of_every_operator_are_c(operator: str) -> None:
    made = [one.applied(TINY) for one in mutants_of("tiny.c", TINY) if one.operator == operator]
    assert TINY not in made
    assert len(set(made)) == len(made)
    for text in random.Random(operator).sample(made, min(3, len(made))):
        command = ["gcc", "-w", "-fsyntax-only", "-x", "c", "-"]
        subprocess.run(command, input=text.encode(), check=True)


@pytest.mark.parametrize(
    ("operator", "old", "new"),
    [
        ("order", "for (int64_t i = 0; i < n; i++)", "for (int64_t i = 0; i <= n; i++)"),
        ("order", "if (from < 0 || from >= n)", "if (from < 0 || from > n)"),
        ("equality", "k == 0", "k != 0"),
        ("sum", "x + row * n", "x - row * n"),
        ("product", "x + row * n", "x + row + n"),
        ("logic", "a && b", "a || b"),
        ("update", "total += part;", "total -= part;"),
        ("number", "lane_[4]", "lane_[5]"),
        ("number", "R(0.5) * x", "R((0.5 + 1)) * x"),
        ("negation", "return !same(a, b);", "return same(a, b);"),
        ("negation", "y = -x;", "y = x;"),
        ("extreme", "gc_min(a, b)", "gc_max(a, b)"),
        ("stride", "t->stride[1]", "t->shape[1]"),
        ("NaN", "return v != v || w;", "return false || w;"),
        ("guard", "if (n == 0)\n  return;", "if (false)\n  return;"),
        ("guard", "if (v > y)\n  y = v;", "if (true)\n  y = v;"),
        ("guard", 'GC_REQUIRE(f(n) > 0, 1, "n");', "(void)0;"),
        ("statement", "{ y[i] = x[i]; }", "{ ; }"),
        ("statement", "{ gc_bad_index(job, 1, at, n); }", "{ ; }"),
    ],
)
def test_an_operator_changes_this_to_that(operator: str, old: str, new: str) -> None:
    made = [one.applied(old) for one in mutants_of("a.c", old) if one.operator == operator]
    assert new in made


def test_a_declaration_is_no_statement_to_delete() -> None:
    text = "void f(void) {\n  const int64_t n = g(3);\n  int k = 2;\n  return h(k);\n}\n"
    assert not [one for one in mutants_of("a.c", text) if one.operator == "statement"]
