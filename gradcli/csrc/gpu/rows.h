/* rows.h -- short rows (rows, n) that lie in one piece: `members` threads a row, a power of two,
 * keep it in registers and share what they found by shuffles, or through the block where they are
 * more than a warp. */

#define EACH_KEPT 8 /* elements that a thread keeps */

struct Row {
  uint number, member, members, begin, n;
  bool inside; /* a row beyond the last is read as the last one, and is not written */
};

FN Row row_of(uint number, uint rows, uint n, uint members CTX_P) {
  Row row;
  row.number = number;
  row.member = TID.x % members;
  row.members = members;
  row.n = n;
  row.inside = number < rows;
  row.begin = (row.inside ? number : rows - 1) * n;
  return row;
}

/* The row of a thread where each has one. */
FN Row own_row(uint rows, uint n, uint members CTX_P) {
  return row_of(BID.x * (BDIM.x / members) + TID.x / members, rows, n, members CTX_A);
}

/* Element i of a row is number k of those that the thread keeps. */
#define EACH_OF_ROW(row, k, i)                                                                     \
  for (uint k = 0, i = row.member; k < EACH_KEPT; k++, i += row.members)                           \
    if (i < row.n)

#define KEEP(row, name, x)                                                                         \
  float name[EACH_KEPT];                                                                           \
  EACH_OF_ROW(row, k, i) {                                                                         \
    name[k] = x[row.begin + i];                                                                    \
  }

#define WRITE_ROW(row, k, i, out, value)                                                           \
  EACH_OF_ROW(row, k, i) {                                                                         \
    if (row.inside)                                                                                \
      out[row.begin + i] = value;                                                                  \
  }
