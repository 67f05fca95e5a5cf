/* attention.h -- what attention and its gradient have in common: the heads of a call, and the
 * scores of a tile of 64 keys and as many queries as threads hold sums, which go through shared
 * memory from one product into the next. */

#include "../elementwise/maths.h"

#include "../blocks.h"
#include "../matmul/tile.h"

enum { MASK_NONE, MASK_SHOWN, MASK_ADDED }; /* `shown` of bytes, or numbers to be added */

/* Steps in elements: from batch to batch, head to head, row to row. */
struct Steps {
  uint batch, head, row;
};

struct Attention {
  uint heads, queries, keys, depth, width; /* width: of a row of v */
  Steps q, k, v, out, grad, mask;
  uint mask_column, mask_kind, causal; /* causal: query i sees keys 0..i */
  float scale;
};

FN uint head_at(Steps steps, uint batch, uint head) {
  return batch * steps.batch + head * steps.head;
}

/* The score of a query and a key from their product, -inf where it does not count; `at`: where this
 * head's mask begins. */
FN float score_of(VAL_REF(Attention) a, DEV(const uchar) shown, DEV(const float) added, uint at,
                  uint query, uint key, float product) {
  if (query >= a.queries || key >= a.keys || (a.causal && key > query))
    return -INFINITY;
  const uint place = at + query * a.mask.row + key * a.mask_column;
  const float score = a.scale * product;
  if (a.mask_kind == MASK_SHOWN)
    return shown[place] ? score : -INFINITY;
  return a.mask_kind == MASK_ADDED ? score + added[place] : score;
}

enum { KEYS = 64 };

/* A tile in shared memory as the left side of a product: `line` floats for each k. */
struct TileRows {
  SHP(float) from;
  uint line;
  bool along;

  float number(uint i, uint k) const { return from[k * line + i]; }
};

/* A thread's sums into shared memory: rows of a tile side by side, or its columns. */
template <uint DOWN, uint ACROSS>
FN void share_columns(Sums<DOWN, ACROSS> sums, SHP(float) to CTX_P) {
  const uint row = tile_row(TID.x) * tile_run<DOWN>();
  const uint column = tile_column(TID.x) * tile_run<ACROSS>();
  for (uint x = 0; x < ACROSS; x++)
    for (uint y = 0; y < DOWN; y++)
      to[(column + tile_place<ACROSS>(x)) * tile_line<DOWN>() + row + tile_place<DOWN>(y)] =
          sums.at[y][x];
}
template <uint DOWN, uint ACROSS> FN void share_rows(Sums<DOWN, ACROSS> sums, SHP(float) to CTX_P) {
  const uint row = tile_row(TID.x) * tile_run<DOWN>();
  const uint column = tile_column(TID.x) * tile_run<ACROSS>();
  for (uint y = 0; y < DOWN; y++)
    for (uint x = 0; x < ACROSS; x++)
      to[(row + tile_place<DOWN>(y)) * tile_line<ACROSS>() + column + tile_place<ACROSS>(x)] =
          sums.at[y][x];
}

FN uint fewer(uint a, uint b) {
  return a < b ? a : b;
}
