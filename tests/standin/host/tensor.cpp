/* tensor.cpp -- copies into shared memory that arrive later, and what tensor cores do with the
 * words of a warp's lanes: the layouts are those of the PTX manual (ldmatrix, mma.sync).
 *
 * A copy takes its numbers at once and lands when its thread waits for it; until then the place
 * holds poison. Both moments count as writes, so that who reads in between, or has not done
 * reading, is found. */

#include "runner.h"
#include "tensor.h"
#include <cstring>
#include <vector>

namespace gc {
namespace {

struct Copy {
  const SharedArray *array;
  i64 number;
  uint words[4];
  uint group;
};

struct Copies {
  uint block, groups; /* of which block they are; groups ended */
  std::vector<Copy> waiting;
};

Copies copies[1024]; /* of each thread of a block */

Copies &own_copies() {
  Copies &own = copies[thread.tid.x];
  if (own.block != run.block) {
    own.block = run.block;
    own.groups = 0;
    own.waiting.clear();
  }
  return own;
}

void store(const SharedArray &array, i64 number, const uint (&words)[4]) {
  for (uint i = 0; i < 4; i++)
    touch_shared(array, number + i, true);
  memcpy(array.data + number * 4, words, sizeof words);
}

/* Number k of a row of words: halves are bfloat16, whole ones float32 of which 19 bits count. */
float number_of(const uint *words, uint k, bool halves) {
  const uint word = words[halves ? k / 2 : k];
  const uint bits = !halves ? word & 0xffffe000u : (k % 2 ? word & 0xffff0000u : word << 16);
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}
} // namespace

void begin_copy(const SharedArray &array, i64 number, const uint (&words)[4]) {
  static const uint poison[4] = {~0u, ~0u, ~0u, ~0u};
  store(array, number, poison);
  Copies &own = own_copies();
  own.waiting.push_back(Copy{&array, number, {words[0], words[1], words[2], words[3]}, own.groups});
}

void end_copies() {
  own_copies().groups++;
}

void wait_for_copies(uint groups_left) {
  Copies &own = own_copies();
  uint done = 0;
  while (done < own.waiting.size() && own.waiting[done].group + groups_left < own.groups) {
    const Copy &copy = own.waiting[done++];
    store(*copy.array, copy.number, copy.words);
  }
  own.waiting.erase(own.waiting.begin(), own.waiting.begin() + done);
}

bool copies_on_their_way() {
  const Copies &own = copies[thread.tid.x];
  return own.block == run.block && !own.waiting.empty();
}

/* The words that this lane gets of four matrices of 8 rows, row r of matrix j from lane 8 j + r. */
Words4 matrices(const uint (&row)[4], bool turned, uint site) {
  const LaneWords *const rows = warp_words(LaneWords{{row[0], row[1], row[2], row[3]}}, site);
  const uint down = thread.lane / 4, across = thread.lane % 4;
  Words4 given;
  for (uint j = 0; j < 4; j++) {
    const LaneWords *const of = rows + 8 * j;
    const uint low = of[2 * across].at[down / 2] >> down % 2 * 16 & 0xffffu;
    const uint high = of[2 * across + 1].at[down / 2] >> down % 2 * 16 & 0xffffu;
    given.at[j] = turned ? low | high << 16 : of[down].at[across];
  }
  return given;
}

/* c + a b: a has 16 rows and b 8 columns of 8 words each; lanes hold them as mma.sync has it. */
Quad multiplied(Quad c, Words4 a, uint b0, uint b1, bool halves, uint site) {
  const LaneWords *const lanes =
      warp_words(LaneWords{{a.at[0], a.at[1], a.at[2], a.at[3], b0, b1}}, site);
  for (uint i = 0; i < 4; i++) {
    const uint row = thread.lane / 4 + i / 2 * 8, column = thread.lane % 4 * 2 + i % 2;
    uint left[8], right[8];
    for (uint w = 0; w < 8; w++) {
      left[w] = lanes[row % 8 * 4 + w % 4].at[row / 8 + w / 4 * 2];
      right[w] = lanes[column * 4 + w % 4].at[4 + w / 4];
    }
    for (uint k = 0; k < (halves ? 16u : 8u); k++)
      c.at[i] += number_of(left, k, halves) * number_of(right, k, halves);
  }
  return c;
}
} // namespace gc
