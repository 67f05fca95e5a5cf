/* rows.h -- short rows (rows, n) that lie in one piece: `members` threads a row, a power of two,
 * keep it in registers and share what they found by shuffles, or through the block where they are
 * more than a warp. */

#define EACH_KEPT 8 /* elements that a thread keeps */

/* A row beyond the last is read as the last one, and is not written. */
#define ROW_OF(number)                                                                             \
  const uint row = number, member = TID.x % members;                                               \
  const bool inside = row < rows;                                                                  \
  const uint begin = (inside ? row : rows - 1) * n

#define ROW_BEGIN                                                                                  \
  SHARED(float, part, 32);                                                                         \
  ROW_OF(BID.x *(BDIM.x / members) + TID.x / members)

#define EACH_KEPT_OF(k, i)                                                                         \
  for (uint k = 0, i = member; k < EACH_KEPT; k++, i += members)                                   \
    if (i < n)

#define KEEP(name, x)                                                                              \
  float name[EACH_KEPT];                                                                           \
  EACH_KEPT_OF(k, i) {                                                                             \
    name[k] = x[begin + i];                                                                        \
  }

#define WRITE_ROW(out, value)                                                                      \
  EACH_KEPT_OF(k, i) {                                                                             \
    if (inside)                                                                                    \
      out[begin + i] = value;                                                                      \
  }
