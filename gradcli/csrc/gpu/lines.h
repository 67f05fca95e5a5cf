/* lines.h -- how blocks share the reductions of (outer, n, inner) along n. A result has `members`
 * threads, which take every so many-th element of one chunk of n (chunks are blocks in y). Where
 * inner is 1 they lie side by side; else `apart`, so that neighbours read neighbouring columns. */

struct Lines {
  uint results, n, inner, chunk, members, apart;
};

/* Which result this thread works for; from `results` on there is none. */
FN uint line_result(VAL_REF(Lines) lines CTX_P) {
  if (lines.apart == 1)
    return BID.x * (BDIM.x / lines.members) + TID.x / lines.members;
  return BID.x * lines.apart + TID.x % lines.apart;
}

/* Which of the members it is. */
FN uint line_member(VAL_REF(Lines) lines CTX_P) {
  return lines.apart == 1 ? TID.x % lines.members : TID.x / lines.apart;
}

/* Where the line of a result begins. */
FN uint line_at(VAL_REF(Lines) lines, uint result) {
  return result / lines.inner * lines.n * lines.inner + result % lines.inner;
}

/* Where the chunk of this block ends. */
FN uint line_end(VAL_REF(Lines) lines CTX_P) {
  const uint end = (BID.y + 1) * lines.chunk;
  return end < lines.n ? end : lines.n;
}

/* What most kernels over lines begin with. */
#define LINE_BEGIN                                                                                 \
  const uint result = line_result(lines CTX_A), member = line_member(lines CTX_A);                 \
  const bool inside = result < lines.results;                                                      \
  const uint begin = inside ? line_at(lines, result) : 0;                                          \
  const uint end = inside ? line_end(lines CTX_A) : 0

/* A loop over the elements of this thread: number i of the line lies at begin + i * inner. */
#define EACH_OF_LINE(i) for (uint i = BID.y * lines.chunk + member; i < end; i += lines.members)

/* Joins what the members put at their TID.x of shared memory: the statement puts what lies at
 * `other` to what lies at TID.x. Member 0 then has it all. */
#define LINE_JOIN(...)                                                                             \
  for (uint step = lines.members / 2; step > 0; step /= 2) {                                       \
    BARRIER();                                                                                     \
    if (member < step) {                                                                           \
      const uint other = TID.x + step * lines.apart;                                               \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
  }

/* Where member 0 put it; all may read there after a barrier. */
#define LINE_FIRST (TID.x - member * lines.apart)
