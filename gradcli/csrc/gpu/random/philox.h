/* philox.h -- the random words of csrc/cpu/random/random_philox.h: the same cipher, the same order.
 * One fill is 64 blocks of four words; word w of its block b stands at w * 64 + b, so the thread of
 * a block writes every 64th number of a fill, and neighbours write neighbouring ones. */

#define FILL_BLOCKS 64

struct Philox {
  uint key0, key1, draw, low, high;
};
struct Words {
  uint word[4];
};

/* state: int64 (seed, step, first draw); the draw is `number` after the first. */
FN Philox philox_of(DEV(const i64) state, uint number) {
  const i64 seed = state[0], step = state[1], draw = state[2];
  const Philox made = {(uint)(seed & 0xffffffff), (uint)(seed >> 32 & 0xffffffff),
                       (uint)(draw & 0xffffffff) + number, (uint)(step & 0xffffffff),
                       (uint)(step >> 32 & 0xffffffff)};
  return made;
}

FN Words philox_words(Philox philox, uint block) {
  uint c0 = block, c1 = philox.draw, c2 = philox.low, c3 = philox.high;
  uint k0 = philox.key0, k1 = philox.key1;
  for (uint round = 0; round < 10; round++) {
    const uint even = umulhi(c0, 0xD2511F53u), even_low = c0 * 0xD2511F53u;
    const uint odd = umulhi(c2, 0xCD9E8D57u), odd_low = c2 * 0xCD9E8D57u;
    c0 = odd ^ c1 ^ k0;
    c1 = odd_low;
    c2 = even ^ c3 ^ k1;
    c3 = even_low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const Words made = {{c0, c1, c2, c3}};
  return made;
}

/* Where the first word of a block stands among `words` numbers of a fill each. */
FN uint filled_from(uint block, uint words) {
  return block / FILL_BLOCKS * (words * FILL_BLOCKS) + block % FILL_BLOCKS;
}
