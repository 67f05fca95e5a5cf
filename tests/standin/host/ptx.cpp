/* ptx.cpp -- models of the PTX statements of prelude_cuda.h: copies into shared memory that arrive
 * later, and what tensor cores do with the words of a warp's lanes. The layouts are those of the
 * PTX manual (ldmatrix, mma.sync). A statement that is not here, to the letter, fails.
 *
 * A copy takes its numbers at once and lands when its thread waits for it; until then the place
 * holds poison. Both moments count as writes, so that who reads in between, or has not done
 * reading, is found. */

#include "ptx.h"
#include "runner.h"
#include <vector>

namespace gc {
namespace {

struct Copy {
  SharedPlace to;
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

/* Four words of shared memory, watched where the kernel is. */
void touch_words(SharedPlace place, bool write) {
  if (place.array)
    for (uint i = 0; i < 4; i++)
      touch_shared(*place.array, (place.at - place.array->data) / 4 + i, write);
}

void store(SharedPlace to, const uint (&words)[4]) {
  touch_words(to, true);
  memcpy(to.at, words, sizeof words);
}

void begin_copy(const Operands &of) {
  static const uint poison[4] = {~0u, ~0u, ~0u, ~0u};
  const uint bytes = of.in[1];
  Copy copy = {shared_place(of.in[0]), {0, 0, 0, 0}, own_copies().groups};
  if (((uintptr_t)copy.to.at | (uintptr_t)of.from) % 16 || bytes > 16)
    fail("a copy of %u bytes whose ends are no multiples of 16 bytes", bytes);
  if (of.view)
    for (uint at = 0; at < bytes; at += 1u << of.log_size)
      touch(*of.view, (const char *)of.from + at, of.log_size, false);
  memcpy(copy.words, of.from, bytes);
  store(copy.to, poison);
  own_copies().waiting.push_back(copy);
}

void end_group(const Operands &) {
  own_copies().groups++;
}

void wait_for_groups(const Operands &of) {
  Copies &own = own_copies();
  size_t done = 0;
  while (done < own.waiting.size() && own.waiting[done].group + of.in[0] < own.groups) {
    const Copy &copy = own.waiting[done++];
    store(copy.to, copy.words);
  }
  own.waiting.erase(own.waiting.begin(), own.waiting.begin() + (std::ptrdiff_t)done);
}

void put_word(const Operands &of, uint number, uint word) {
  memcpy(of.out[number], &word, sizeof word);
}

/* The words that this lane gets of four matrices of 8 rows, row r of matrix j from lane 8 j + r. */
template <bool turned> void load(const Operands &of) {
  const SharedPlace row = shared_place(of.in[0]);
  if ((uintptr_t)row.at % 16)
    fail("a row of a matrix that begins at no multiple of 16 bytes");
  touch_words(row, false);
  LaneWords own = {};
  memcpy(own.at, row.at, 16);
  const LaneWords *const rows = warp_words(own, thread.place);
  const uint down = thread.lane / 4, across = thread.lane % 4;
  for (uint j = 0; j < 4; j++) {
    const LaneWords *const of_matrix = rows + 8 * j;
    const uint low = of_matrix[2 * across].at[down / 2] >> down % 2 * 16 & 0xffffu;
    const uint high = of_matrix[2 * across + 1].at[down / 2] >> down % 2 * 16 & 0xffffu;
    put_word(of, j, turned ? low | high << 16 : of_matrix[down].at[across]);
  }
}

float float_of(uint bits) {
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* Number k of a row of words: halves are bfloat16, whole ones float32 of which 19 bits count. */
float number_of(const uint *words, uint k, bool halves) {
  const uint word = words[halves ? k / 2 : k];
  return float_of(!halves ? word & 0xffffe000u : (k % 2 ? word & 0xffff0000u : word << 16));
}

/* c + a b: a has 16 rows and b 8 columns of 8 words each. */
template <bool halves> void multiply(const Operands &of) {
  LaneWords own;
  memcpy(own.at, of.in, sizeof own.at);
  const LaneWords *const lanes = warp_words(own, thread.place);
  for (uint i = 0; i < 4; i++) {
    const uint row = thread.lane / 4 + i / 2 * 8, column = thread.lane % 4 * 2 + i % 2;
    uint left[8], right[8];
    for (uint w = 0; w < 8; w++) {
      left[w] = lanes[row % 8 * 4 + w % 4].at[row / 8 + w / 4 * 2];
      right[w] = lanes[column * 4 + w % 4].at[4 + w / 4];
    }
    float sum;
    memcpy(&sum, of.out[i], sizeof sum);
    for (uint k = 0; k < (halves ? 16u : 8u); k++)
      sum += number_of(left, k, halves) * number_of(right, k, halves);
    memcpy(of.out[i], &sum, sizeof sum);
  }
}

/* To 11 bits of a number, halves away from 0. */
void round_to_tf32(const Operands &of) {
  const bool none = (of.in[0] & 0x7fffffffu) > 0x7f800000u;
  put_word(of, 0, none ? 0x7fffffffu : (of.in[0] + 0x1000u) & 0xffffe000u);
}

#define MMA_OPERANDS " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
const Model MODELS[] = {
    {"cp.async.cg.shared.global [%0], [%1], 16, %2;", "volatile : r l r : memory", begin_copy},
    {"cp.async.commit_group;", "volatile : : memory", end_group},
    {"cp.async.wait_group %0;", "volatile : n : memory", wait_for_groups},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];",
     "volatile =r =r =r =r : r : memory", load<false>},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];",
     "volatile =r =r =r =r : r : memory", load<true>},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" MMA_OPERANDS,
     "+f +f +f +f : r r r r r r :", multiply<true>},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" MMA_OPERANDS,
     "+f +f +f +f : r r r r r r :", multiply<false>},
    {"cvt.rna.tf32.f32 %0, %1;", "=r : f :", round_to_tf32},
};
} // namespace

const Model *model_of(const char *text, const char *operands) {
  for (const Model &model : MODELS)
    if (!strcmp(model.text, text) && !strcmp(model.operands, operands))
      return &model;
  return nullptr;
}

void run_model(const Model *model, const char *text, const char *operands, const Operands &of) {
  if (!model)
    fail("no model of the PTX statement '%s' with the operands '%s'", text, operands);
  model->run(of);
}

bool copies_on_their_way() {
  const Copies &own = copies[thread.tid.x];
  return own.block == run.block && !own.waiting.empty();
}
} // namespace gc
