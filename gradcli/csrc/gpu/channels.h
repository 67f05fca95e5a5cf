/* channels.h -- pairs of sums over each channel of (N, C, L): a line is a channel, and its numbers
 * are counted through all samples; the parts of a chunk are rows of (chunks, C), in two floats. */

/* A thread on its way through a channel: `sample` and `l` go on without a division. */
struct Channel {
  uint number, i, end, step;
  uint sample, l, samples, places; /* where it is, and how far it steps */
  uint C, L;
};

FN Channel channel_of(Line line, uint C, uint L) {
  const Channel channel = {line.inside ? line.result : 0,
                           line.first,
                           line.end,
                           line.members,
                           line.first / L,
                           line.first % L,
                           line.members / L,
                           line.members % L,
                           C,
                           L};
  return channel;
}

FN Channel channel_next(Channel channel) {
  channel.i += channel.step;
  channel.l += channel.places;
  channel.sample += channel.samples + (channel.l >= channel.L);
  channel.l -= channel.l >= channel.L ? channel.L : 0;
  return channel;
}

/* Where its number lies. */
FN uint channel_at(Channel channel) {
  return (channel.sample * channel.C + channel.number) * channel.L + channel.l;
}

#define EACH_OF_CHANNEL(channel) for (; channel.i < channel.end; channel = channel_next(channel))

/* Two sums. */
struct Sums {
  Exact first, second;
};

/* The parts of two sums, (4, chunks, C). `high` and `low` are shared, of BDIM.x floats. */
FN void write_parts(DEV(float) parts, Sums sums, Line line, uint C, SHP(float) high,
                    SHP(float) low CTX_P) {
  const Exact first = line_exact(sums.first, line, high, low CTX_A);
  const Exact second = line_exact(sums.second, line, high, low CTX_A);
  if (line.leads) {
    const uint to = BID.y * C + line.result, apart = GDIM.y * C;
    parts[to] = first.high;
    parts[apart + to] = first.low;
    parts[2 * apart + to] = second.high;
    parts[3 * apart + to] = second.low;
  }
}

/* Puts the parts (4, n, C) of a channel together. */
FN Sums sum_of_parts(DEV(const float) parts, VAL_REF(Lines) lines, Line line, SHP(float) high,
                     SHP(float) low CTX_P) {
  const uint apart = lines.n * lines.results;
  Sums all = {{0.0f, 0.0f}, {0.0f, 0.0f}};
  EACH_OF_LINE(line, i) {
    const uint at = line_at(line, i);
    const Exact first = {parts[at], parts[apart + at]};
    const Exact second = {parts[2 * apart + at], parts[3 * apart + at]};
    all.first = exact_join(all.first, first);
    all.second = exact_join(all.second, second);
  }
  all.first = line_exact(all.first, line, high, low CTX_A);
  all.second = line_exact(all.second, line, high, low CTX_A);
  return all;
}
