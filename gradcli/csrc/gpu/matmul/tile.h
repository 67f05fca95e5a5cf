/* tile.h -- a tile of a matrix product a b, which the 256 threads of a block hold in registers: 16
 * x 16 threads of DOWN x ACROSS sums each. Every sum has one accumulator that sees k in rising
 * order, so its bits do not depend on the size of the tile or on where in it an element lies.
 *
 * What a and b are is up to the caller: a has number(i, k), b number(j, k), and `along` says
 * whether neighbouring k lie side by side in memory (else neighbouring i or j do). Both must give
 * something for any i and j, and are asked only for k below their end. */

/* A side that is a matrix: rows of a, or columns of b; behind the last one that once more. */
struct Lines {
  DEV(const float) from;
  uint step, step_k, last;
  bool along;

  float number(uint i, uint k) const { return from[(i < last ? i : last) * step + k * step_k]; }
};

template <uint DOWN, uint ACROSS> struct Sums {
  float at[DOWN][ACROSS];
};

template <uint DOWN, uint ACROSS> FN Sums<DOWN, ACROSS> no_sums() {
  Sums<DOWN, ACROSS> sums;
  for (uint y = 0; y < DOWN; y++)
    for (uint x = 0; x < ACROSS; x++)
      sums.at[y][x] = 0.0f;
  return sums;
}

/* Sums of a thread lie in runs of up to 4, so that it reads them with few wide loads; the runs of
 * its neighbours lie between. Number i of thread 0, and how far thread 1 is from that. */
template <uint EACH> FN constexpr uint tile_run() {
  return EACH < 4 ? EACH : 4;
}
template <uint EACH> FN constexpr uint tile_place(uint i) {
  return i / tile_run<EACH>() * (16 * tile_run<EACH>()) + i % tile_run<EACH>();
}

/* A line of a tile in shared memory: a little longer than needed, to spread columns over banks. */
template <uint EACH> FN constexpr uint tile_line() {
  return 16 * EACH + tile_run<EACH>();
}

/* Floats of shared memory for one side of a tile: two slices of DEPTH lines. */
#define TILE_SHARED(each, depth) (2 * (depth) * (16 * (each) + ((each) < 4 ? (each) : 4)))

/* What tiles.py may choose from: make(name, DOWN, ACROSS, DEPTH of a slice). */
#define EACH_TILE(make) make(128, 8, 8, 8) EACH_SMALL_TILE(make)
#define EACH_SMALL_TILE(make) make(64, 4, 4, 16) make(32, 2, 2, 32) make(16, 1, 4, 16)

/* A thread's place among 16 x 16: a warp is 4 of them high and 8 wide. */
FN uint tile_row(uint tid) {
  return tid / 64 * 4 + tid % 32 / 8;
}
FN uint tile_column(uint tid) {
  return tid / 32 % 2 * 8 + tid % 8;
}

/* What one thread carries of a slice of one side into shared memory. */
template <uint EACH, uint DEPTH> struct Part {
  float at[EACH * DEPTH / 16];
};

template <uint EACH, uint DEPTH> FN uint part_line(uint e, bool along) {
  return along ? e / DEPTH : e % (16 * EACH);
}
template <uint EACH, uint DEPTH> FN uint part_depth(uint e, bool along) {
  return along ? e % DEPTH : e / (16 * EACH);
}

template <uint EACH, uint DEPTH, class Side>
FN Part<EACH, DEPTH> take_part(Side side, uint first, uint k, uint end, uint tid) {
  Part<EACH, DEPTH> part;
  for (uint n = 0; n < EACH * DEPTH / 16; n++) {
    const uint e = tid + 256 * n, at = k + part_depth<EACH, DEPTH>(e, side.along);
    part.at[n] = at < end ? side.number(first + part_line<EACH, DEPTH>(e, side.along), at) : 0.0f;
  }
  return part;
}

template <uint EACH, uint DEPTH>
FN void put_part(Part<EACH, DEPTH> part, bool along, SHP(float) slice, uint tid) {
  for (uint n = 0; n < EACH * DEPTH / 16; n++) {
    const uint e = tid + 256 * n;
    slice[part_depth<EACH, DEPTH>(e, along) * tile_line<EACH>() +
          part_line<EACH, DEPTH>(e, along)] = part.at[n];
  }
}

/* Adds what a slice in shared memory gives to the sums of one thread. */
template <uint DOWN, uint ACROSS, uint DEPTH>
FN Sums<DOWN, ACROSS> add_slice(Sums<DOWN, ACROSS> sums, SHP(float) left, SHP(float) right) {
  UNROLL for (uint d = 0; d < DEPTH; d++) {
    SHP(float) const down = left + d * tile_line<DOWN>();
    SHP(float) const across = right + d * tile_line<ACROSS>();
    float y_of[DOWN], x_of[ACROSS];
    for (uint y = 0; y < DOWN; y++)
      y_of[y] = down[tile_place<DOWN>(y)];
    for (uint x = 0; x < ACROSS; x++)
      x_of[x] = across[tile_place<ACROSS>(x)];
    for (uint y = 0; y < DOWN; y++)
      for (uint x = 0; x < ACROSS; x++)
        sums.at[y][x] = ffma(y_of[y], x_of[x], sums.at[y][x]);
  }
  return sums;
}

/* Adds the sums over k from `begin` to `end` of the tile whose first row is i and first column j.
 * While a slice is added, the next one is on its way. */
template <uint DOWN, uint ACROSS, uint DEPTH, class Left, class Right>
FN Sums<DOWN, ACROSS> add_tile(Sums<DOWN, ACROSS> sums, Left a, Right b, uint i, uint j, uint begin,
                               uint end, SHP(float) left, SHP(float) right CTX_P) {
  const uint tid = TID.x, slice_a = DEPTH * tile_line<DOWN>();
  const uint slice_b = DEPTH * tile_line<ACROSS>();
  SHP(float) const own_a = left + tile_row(tid) * tile_run<DOWN>();
  SHP(float) const own_b = right + tile_column(tid) * tile_run<ACROSS>();
  for (uint k = begin, odd = 0; k < end + DEPTH; k += DEPTH, odd ^= 1) {
    const Part<DOWN, DEPTH> part_a = take_part<DOWN, DEPTH>(a, i, k, end, tid);
    const Part<ACROSS, DEPTH> part_b = take_part<ACROSS, DEPTH>(b, j, k, end, tid);
    if (k > begin)
      sums = add_slice<DOWN, ACROSS, DEPTH>(sums, own_a + (odd ^ 1) * slice_a,
                                            own_b + (odd ^ 1) * slice_b);
    put_part<DOWN, DEPTH>(part_a, a.along, left + odd * slice_a, tid);
    put_part<ACROSS, DEPTH>(part_b, b.along, right + odd * slice_b, tid);
    BARRIER();
  }
  return sums;
}

template <uint DOWN, uint ACROSS, uint DEPTH, class Left, class Right>
FN Sums<DOWN, ACROSS> tile_sums(Left a, Right b, uint i, uint j, uint begin, uint end,
                                SHP(float) left, SHP(float) right CTX_P) {
  return add_tile<DOWN, ACROSS, DEPTH>(no_sums<DOWN, ACROSS>(), a, b, i, j, begin, end, left,
                                       right CTX_A);
}

/* Hands every sum to `to`.sum(row, column, sum): as they lie, or, where much is done to each, one
 * at a time through shared memory of 16 rows. */
template <bool ONE_BY_ONE, uint DOWN, uint ACROSS, class To>
FN void put_tile(Sums<DOWN, ACROSS> sums, To to, SHP(float) shared CTX_P) {
  constexpr uint columns = 16 * ACROSS, line = tile_line<ACROSS>();
  const uint own_row = tile_row(TID.x), own_column = tile_column(TID.x) * tile_run<ACROSS>();
  UNROLL for (uint y = 0; y < DOWN; y++) {
    const uint first = tile_place<DOWN>(y);
    if (ONE_BY_ONE) {
      for (uint x = 0; x < ACROSS; x++)
        shared[own_row * line + own_column + tile_place<ACROSS>(x)] = sums.at[y][x];
      BARRIER();
      ROLLED for (uint e = TID.x; e < 16 * columns; e += 256) {
        const uint row = e / columns, column = e % columns;
        to.sum(row * tile_run<DOWN>() + first, column, shared[row * line + column]);
      }
      BARRIER();
    } else {
      UNROLL for (uint x = 0; x < ACROSS; x++) {
        const uint column = own_column + tile_place<ACROSS>(x);
        to.sum(own_row * tile_run<DOWN>() + first, column, sums.at[y][x]);
      }
    }
  }
}
