/* lines.h -- how blocks share the reductions of (outer, n, inner) along n. A result has `members`
 * threads, which take every so many-th element of one chunk of n (chunks are blocks in y). Where
 * inner is 1 they lie side by side; else `apart`, so that neighbours read neighbouring columns. */

struct Lines {
  uint results, n, inner, chunk, members, apart;
};

/* What a thread does of a line: its elements `first`, first + members, ... before `end`. */
struct Line {
  uint result, member, members, apart;
  bool inside, leads; /* there is such a result; and this is the first of its members */
  uint begin, inner, first, end;
};

FN Line line_of(VAL_REF(Lines) lines CTX_P) {
  Line line;
  const bool side_by_side = lines.apart == 1;
  line.members = lines.members;
  line.apart = lines.apart;
  line.inner = lines.inner;
  line.result = side_by_side ? BID.x * (BDIM.x / lines.members) + TID.x / lines.members
                             : BID.x * lines.apart + TID.x % lines.apart;
  line.member = side_by_side ? TID.x % lines.members : TID.x / lines.apart;
  line.inside = line.result < lines.results;
  line.leads = line.inside && line.member == 0;
  const uint outer = line.result / lines.inner, end = (BID.y + 1) * lines.chunk;
  line.begin = line.inside ? outer * lines.n * lines.inner + line.result % lines.inner : 0;
  line.first = BID.y * lines.chunk + line.member;
  line.end = !line.inside ? 0 : end < lines.n ? end : lines.n;
  return line;
}

/* Where element i lies. */
FN uint line_at(Line line, uint i) {
  return line.begin + i * line.inner;
}

/* Where the first of the members puts what it shares; all may read there after a barrier. */
FN uint line_first(Line line CTX_P) {
  return TID.x - line.member * line.apart;
}

#define EACH_OF_LINE(line, i) for (uint i = line.first; i < line.end; i += line.members)

/* Joins what the members put at their TID.x of shared memory: the statement puts what lies at
 * `other` to what lies at TID.x. Member 0 then has it all. */
#define LINE_JOIN(line, other, ...)                                                                \
  for (uint step = line.members / 2; step > 0; step /= 2) {                                        \
    BARRIER();                                                                                     \
    if (line.member < step) {                                                                      \
      const uint other = TID.x + step * line.apart;                                                \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
  }
