/* channels.h -- pairs of sums over each channel of (N, C, L): a line is a channel, and its numbers
 * are counted through all samples; the parts of a chunk are rows of (chunks, C), in two floats. */

/* This thread's numbers of a channel: `sample` and `l` go on without a division. */
#define CHANNEL_BEGIN                                                                              \
  LINE_BEGIN;                                                                                      \
  const uint channel = inside ? result : 0, samples = lines.members / L;                           \
  const uint places = lines.members % L, start = BID.y * lines.chunk + member;                     \
  uint sample = start / L, l = start % L;                                                          \
  (void)begin

#define EACH_OF_CHANNEL(at)                                                                        \
  for (uint i = start; i < end;                                                                    \
       i += lines.members, l += places, sample += samples + (l >= L), l -= l >= L ? L : 0)         \
    for (uint at = (sample * C + channel) * L + l, once = 1; once; once = 0)

/* The parts of two sums, (4, chunks, C); the kernel begins with SHARED_EXACT. */
#define WRITE_PARTS(first, second)                                                                 \
  const Exact one = LINE_EXACT(first), two = LINE_EXACT(second);                                   \
  if (inside && member == 0) {                                                                     \
    const uint to = BID.y * C + result, apart = GDIM.y * C;                                        \
    parts[to] = one.high;                                                                          \
    parts[apart + to] = one.low;                                                                   \
    parts[2 * apart + to] = two.high;                                                              \
    parts[3 * apart + to] = two.low;                                                               \
  }

/* Puts the parts (4, n, C) of a channel together. */
#define SUM_OF_PARTS                                                                               \
  SHARED_EXACT;                                                                                    \
  LINE_BEGIN;                                                                                      \
  const uint apart = lines.n * lines.results;                                                      \
  Exact sum = {0.0f, 0.0f}, product = {0.0f, 0.0f};                                                \
  EACH_OF_LINE(i) {                                                                                \
    const uint at = begin + i * lines.inner;                                                       \
    const Exact one = {parts[at], parts[apart + at]};                                              \
    const Exact two = {parts[2 * apart + at], parts[3 * apart + at]};                              \
    sum = exact_join(sum, one);                                                                    \
    product = exact_join(product, two);                                                            \
  }                                                                                                \
  sum = LINE_EXACT(sum);                                                                           \
  product = LINE_EXACT(product)
