/* tensor.h -- what kernels see of tensor.cpp. */

#pragma once
#include "pointers.h"
#include <string.h>

/* As in csrc/gpu/prelude_cuda.h. */
struct Words4 {
  uint at[4];
};
struct Quad {
  float at[4];
};

namespace gc {

Words4 matrices(const uint (&row)[4], bool turned, uint site);
Quad multiplied(Quad c, Words4 a, uint b0, uint b1, bool halves, uint site);

/* Checked kernels: bounds of each element, and that both ends are multiples of 16 bytes. */
template <class T> void copy_async(SharedPointer<uint> to, Pointer<const T> from, uint bytes) {
  uint words[4] = {0, 0, 0, 0};
  if (to.number % 4 || (uintptr_t)from.at % 16 || bytes > 16)
    fail("a copy of %u bytes whose ends are no multiples of 16 bytes", bytes);
  for (uint i = 0; i < bytes / sizeof(T); i++) {
    const T element = from[i];
    memcpy((char *)words + i * sizeof(T), &element, sizeof(T));
  }
  begin_copy(*to.array, to.number, words);
}
inline Words4 read_matrices(SharedPointer<uint> row, bool turned, uint site) {
  uint own[4];
  if (row.number % 4)
    fail("a row of a matrix that begins at no multiple of 16 bytes");
  for (uint i = 0; i < 4; i++)
    own[i] = (row + i).get();
  return matrices(own, turned, site);
}

/* Kernels without checks: a copy arrives at once. */
template <class T> void copy_async(uint *to, const T *from, uint bytes) {
  memset(to, 0, 16);
  memcpy(to, from, bytes);
}
inline Words4 read_matrices(const uint *row, bool turned, uint site) {
  const uint own[4] = {row[0], row[1], row[2], row[3]};
  return matrices(own, turned, site);
}

template <class T> bool aligned16(Pointer<T> pointer) {
  return (uintptr_t)pointer.at % 16 == 0;
}
inline bool aligned16(const void *pointer) {
  return (uintptr_t)pointer % 16 == 0;
}
} // namespace gc
