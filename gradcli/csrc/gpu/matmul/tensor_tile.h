/* tensor_tile.h -- a tile of a matrix product on tensor cores: bfloat16 numbers, or float32 ones
 * rounded to TF32, with sums in float32 that see k in rising order. 128 threads, 2 x 2 warps; a
 * warp has DOWN x ACROSS pieces of 16 x 8 sums.
 *
 * A side of the product comes through shared memory in slices of 64 bytes of k: three of them, so
 * that two are on their way while one is multiplied. In memory and in a slice either neighbouring k
 * lie side by side (ALONG) or neighbouring lines do. Slices are seen as words of 32 bits, in chunks
 * of 4, and chunks change places by their line or k, so that neither copies nor ldmatrix meet in a
 * bank. For 128 x 128 sums a slice takes 16 KiB and 64 mma.sync of a warp, for which it reads 16
 * KiB of shared memory; with two blocks on a processor that keeps its tensor cores busy.
 *
 * A side has lines(), how many there are; number(i, k), an element; and where chunks() is true,
 * bring(to, i, k, bytes), which begins to copy elements that lie side by side from an address that
 * is a multiple of 16 bytes where i and k are of EACH_CHUNK. All are asked only for what there is.
 */

#include "../element.h"

#ifdef GC_IS_BF16
#define EACH_WORD 2 /* elements */
#define MMA(c, a, b0, b1) mma_bf16(c, a, b0, b1)
#define AS_FACTOR(word) (word)
#else
#define EACH_WORD 1
#define MMA(c, a, b0, b1) mma_tf32(c, a, b0, b1)
#define AS_FACTOR(word) round_tf32(word)
#endif
#define EACH_CHUNK (4 * EACH_WORD)
#define EACH_SLICE (16 * EACH_WORD) /* k */
#define SLICES 3

/* Words of shared memory for one side of so many lines. */
#define TENSOR_SHARED(lines) (SLICES * 16 * (lines))

/* What tiles.py may choose from: make(name, DOWN, ACROSS of a warp, blocks that
 * shall fit on a processor at once). */
#define EACH_TENSOR_TILE(make) make(128, 4, 8, 2) make(64, 2, 4, 4)

template <uint DOWN, uint ACROSS> struct TensorSums {
  Quad at[DOWN][ACROSS];
};

/* Where the chunk of line `line` and number `k` begins, both of the slice. */
template <bool ALONG, uint LINES> FN uint chunk_place(uint line, uint k) {
  if (ALONG)
    return line * 16 + ((k / EACH_CHUNK) ^ (line / 2 % 4)) * 4;
  return k * (LINES / EACH_WORD) + ((line / EACH_CHUNK) ^ (EACH_WORD == 2 ? k % 8 : k % 4 * 2)) * 4;
}

/* Lines of a matrix: rows of a, or columns of b. `aligned`: its chunks begin at 16 bytes. */
struct TensorLines {
  DEV(const REAL) from;
  uint step, step_k, count;
  bool aligned;

  uint lines() const { return count; }
  bool chunks() const { return aligned; }
  REAL number(uint i, uint k) const { return from[i * step + k * step_k]; }
  void bring(SHP(uint) to, uint i, uint k, uint bytes) const {
    copy_async(to, from + (i * step + k * step_k), bytes);
  }
};

template <bool ALONG>
FN TensorLines tensor_lines(DEV(const REAL) from, uint step, uint step_k, uint count) {
  const uint beside = ALONG ? step_k : step, apart = ALONG ? step : step_k;
  const TensorLines side = {from, step, step_k, count,
                            beside == 1 && apart % EACH_CHUNK == 0 && aligned16(from)};
  return side;
}

/* A side of tile.h's kind, whose elements are looked for one by one. */
template <class Side> struct Looked {
  Side side;
  uint count;

  uint lines() const { return count; }
  bool chunks() const { return false; }
  REAL number(uint i, uint k) const { return side.number(i, k); }
  void bring(SHP(uint), uint, uint, uint) const {}
};

/* One word of elements that stand side by side: two halves, or one. */
template <bool ALONG, class Side> FN uint looked_word(Side side, uint i, uint k, uint end) {
#ifdef GC_IS_BF16
  const uint i1 = ALONG ? i : i + 1, k1 = ALONG ? k + 1 : k;
  const uint low = i < side.lines() && k < end ? side.number(i, k) : 0;
  const uint high = i1 < side.lines() && k1 < end ? side.number(i1, k1) : 0;
  return low | high << 16;
#else
  return f2u(i < side.lines() && k < end ? side.number(i, k) : 0.0f);
#endif
}

/* Begins to bring a slice, from line i and number k on; what lies behind the last is 0. */
template <bool ALONG, uint LINES, class Side>
FN void bring_slice(Side side, uint i, uint k, uint end, SHP(uint) slice, uint tid) {
  constexpr uint chunks = LINES / EACH_CHUNK, words = LINES / EACH_WORD; /* of a k */
  if (side.chunks()) {
    UNROLL for (uint n = 0; n < LINES / 32; n++) {
      const uint e = tid + 128 * n;
      const uint line = ALONG ? e / 4 : e % chunks * EACH_CHUNK;
      const uint deep = ALONG ? e % 4 * EACH_CHUNK : e / chunks;
      const bool inside = i + line < side.lines() && k + deep < end;
      const uint left = !inside ? 0 : (ALONG ? end - (k + deep) : side.lines() - (i + line));
      const uint count = left < EACH_CHUNK ? left : EACH_CHUNK;
      side.bring(slice + chunk_place<ALONG, LINES>(line, deep), inside ? i + line : 0,
                 inside ? k + deep : 0, count * (4 / EACH_WORD));
    }
  } else {
    for (uint n = 0; n < LINES / 8; n++) {
      const uint e = tid + 128 * n;
      const uint line = ALONG ? e / 16 : e % words * EACH_WORD;
      const uint deep = ALONG ? e % 16 * EACH_WORD : e / words;
      slice[chunk_place<ALONG, LINES>(line, deep) + e % 4] =
          looked_word<ALONG>(side, i + line, k + deep, end);
    }
  }
}

/* What a lane holds of 16 lines and the 8 words number `step` of k: matrices of 8 lines and 4
 * words. In a they are counted down the lines first, in b along k first. */
template <bool ALONG, uint LINES, bool LINES_FIRST>
FN Words4 factors(SHP(uint) slice, uint line, uint step CTX_P) {
  const uint matrix = LANE / 8, row = LANE % 8;
  const uint line_half = LINES_FIRST ? matrix % 2 : matrix / 2;
  const uint k_half = LINES_FIRST ? matrix / 2 : matrix % 2;
  Words4 w;
  if (ALONG) {
    const uint k = (2 * step + k_half) * EACH_CHUNK;
    SHP(uint) const at = slice + chunk_place<true, LINES>(line + 8 * line_half + row, k);
    w = load_matrices(at);
  } else if (EACH_WORD == 2) {
    const uint k = 16 * step + 8 * k_half + row;
    SHP(uint) const at = slice + chunk_place<false, LINES>(line + 8 * line_half, k);
    w = load_turned(at);
  } else {
    for (uint j = 0; j < 4; j++) {
      const uint l = line + 8 * (LINES_FIRST ? j % 2 : j / 2) + LANE / 4;
      const uint k = 8 * step + 4 * (LINES_FIRST ? j / 2 : j % 2) + LANE % 4;
      w.at[j] = slice[chunk_place<false, LINES>(l, k) + l % 4];
    }
  }
  for (uint j = 0; j < 4; j++)
    w.at[j] = AS_FACTOR(w.at[j]);
  return w;
}

/* The first line of a warp, on each side. */
template <uint DOWN> FN uint warp_row(uint warp) {
  return warp / 2 * (16 * DOWN);
}
template <uint ACROSS> FN uint warp_column(uint warp) {
  return warp % 2 * (8 * ACROSS);
}

/* Adds what a slice gives. */
template <bool ALONG_A, bool ALONG_B, uint DOWN, uint ACROSS>
FN TensorSums<DOWN, ACROSS> add_factors(TensorSums<DOWN, ACROSS> sums, SHP(uint) left,
                                        SHP(uint) right CTX_P) {
  UNROLL for (uint step = 0; step < 2; step++) {
    Words4 a[DOWN], b[ACROSS / 2];
    UNROLL for (uint y = 0; y < DOWN; y++) {
      const uint line = warp_row<DOWN>(WARP) + 16 * y;
      a[y] = factors<ALONG_A, 32 * DOWN, true>(left, line, step CTX_A);
    }
    UNROLL for (uint x = 0; x < ACROSS / 2; x++) {
      const uint line = warp_column<ACROSS>(WARP) + 16 * x;
      b[x] = factors<ALONG_B, 16 * ACROSS, false>(right, line, step CTX_A);
    }
    UNROLL for (uint y = 0; y < DOWN; y++) {
      UNROLL for (uint x = 0; x < ACROSS; x++) {
        const uint first = x % 2 * 2;
        sums.at[y][x] = MMA(sums.at[y][x], a[y], b[x / 2].at[first], b[x / 2].at[first + 1]);
      }
    }
  }
  return sums;
}

/* The sums over k from `begin` to `end` of the tile whose first row is i and first column j. */
template <bool ALONG_A, bool ALONG_B, uint DOWN, uint ACROSS, class Left, class Right>
FN TensorSums<DOWN, ACROSS> tensor_sums(Left a, Right b, uint i, uint j, uint begin, uint end,
                                        SHP(uint) left, SHP(uint) right CTX_P) {
  constexpr uint size_a = 16 * 32 * DOWN, size_b = 16 * 16 * ACROSS;
  TensorSums<DOWN, ACROSS> sums;
  UNROLL for (uint y = 0; y < DOWN; y++) {
    UNROLL for (uint x = 0; x < ACROSS; x++) {
      UNROLL for (uint q = 0; q < 4; q++) sums.at[y][x].at[q] = 0.0f;
    }
  }
  uint bring = begin, to = 0, from = 0;
  for (uint ahead = 0; ahead < SLICES - 1; ahead++) {
    if (bring < end) {
      bring_slice<ALONG_A, 32 * DOWN>(a, i, bring, end, left + to * size_a, TID.x);
      bring_slice<ALONG_B, 16 * ACROSS>(b, j, bring, end, right + to * size_b, TID.x);
    }
    copies_end();
    bring += EACH_SLICE;
    to++;
  }
  for (uint k = begin; k < end; k += EACH_SLICE) {
    COPIES_LEFT(SLICES - 2);
    BARRIER();
    if (bring < end) { /* where the slice lies that all are done with */
      bring_slice<ALONG_A, 32 * DOWN>(a, i, bring, end, left + to * size_a, TID.x);
      bring_slice<ALONG_B, 16 * ACROSS>(b, j, bring, end, right + to * size_b, TID.x);
    }
    copies_end();
    sums = add_factors<ALONG_A, ALONG_B, DOWN, ACROSS>(sums, left + from * size_a,
                                                       right + from * size_b CTX_A);
    bring += EACH_SLICE;
    to = to + 1 < SLICES ? to + 1 : 0;
    from = from + 1 < SLICES ? from + 1 : 0;
  }
  return sums;
}

/* Hands every sum of the tile to `to`.sum(row, column, sum), 32 rows at a time through shared
 * memory: then neighbouring threads have neighbouring columns. */
template <uint DOWN, uint ACROSS, class To>
FN void put_sums(TensorSums<DOWN, ACROSS> sums, To to, SHP(uint) shared CTX_P) {
  constexpr uint columns = 16 * ACROSS, line = columns + 8;
  UNROLL for (uint y = 0; y < DOWN; y++) {
    BARRIER(); /* what lay there has been read */
    UNROLL for (uint x = 0; x < ACROSS; x++) {
      UNROLL for (uint q = 0; q < 4; q++) {
        const uint row = WARP / 2 * 16 + LANE / 4 + q / 2 * 8;
        const uint column = warp_column<ACROSS>(WARP) + 8 * x + LANE % 4 * 2 + q % 2;
        shared[row * line + column] = f2u(sums.at[y][x].at[q]);
      }
    }
    BARRIER();
    ROLLED for (uint e = TID.x; e < 32 * columns; e += 128) {
      const uint row = e / columns, column = e % columns;
      to.sum(row / 16 * (16 * DOWN) + 16 * y + row % 16, column, u2f(shared[row * line + column]));
    }
  }
}
