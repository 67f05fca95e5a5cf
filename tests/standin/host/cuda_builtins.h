/* cuda_builtins.h -- what csrc/gpu/prelude_cuda.h takes from CUDA, on the fibers of this folder:
 * the text of the prelude follows, with each asm statement as the run of a model (ptx.h). */

#pragma once
#include "ptx.h"
#include <math.h>

#ifndef GC_CHECK
#define GC_CHECK 1
#endif

#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define threadIdx (gc::thread.tid)
#define blockIdx (gc::block_index)
#define blockDim (gc::block_size)
#define gridDim (gc::grid_size)

/* Each stands in the text once, and that is what threads must agree on: the same one. */
#define __syncthreads() gc::barrier(__COUNTER__)
#define __syncwarp() gc::warp_sync(__COUNTER__)

#undef INFINITY
#undef NAN
inline uint __float_as_uint(float x) {
  uint bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __uint_as_float(uint bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
inline float __int_as_float(int bits) {
  return __uint_as_float((uint)bits);
}
inline float __fmaf_rn(float a, float b, float c) {
  return fmaf(a, b, c);
}
inline uint __umulhi(uint a, uint b) {
  return (uint)(((uint64_t)a * b) >> 32);
}

namespace gc {
inline uint bits_of(uint bits) {
  return bits;
}
inline uint bits_of(float x) {
  return __float_as_uint(x);
}
inline void from_bits(uint bits, uint *x) {
  *x = bits;
}
inline void from_bits(uint bits, float *x) {
  *x = __uint_as_float(bits);
}

/* A shuffle: lanes that the mask leaves out may not come, and kernels leave none out. */
template <class T> T shuffled(uint mask, T v, uint from_lane) {
  if (mask != 0xffffffffu)
    fail("a shuffle among the lanes %x, not all", mask);
  T other;
  from_bits(warp_exchange(bits_of(v), from_lane, thread.place), &other);
  return other;
}
} // namespace gc

template <class T> T __shfl_sync(uint mask, T v, uint lane) {
  return gc::shuffled(mask, v, lane);
}
template <class T> T __shfl_xor_sync(uint mask, T v, uint lanes) {
  return gc::shuffled(mask, v, gc::thread.lane ^ lanes);
}
/* Who has nobody there gets its own. */
template <class T> T __shfl_down_sync(uint mask, T v, uint lanes) {
  const uint lane = gc::thread.lane;
  return gc::shuffled(mask, v, lane + lanes < 32 ? lane + lanes : lane);
}
template <class T> T __shfl_up_sync(uint mask, T v, uint lanes) {
  const uint lane = gc::thread.lane;
  return gc::shuffled(mask, v, lane >= lanes ? lane - lanes : lane);
}

/* Bounds are watched, races are not: threads race for these, and that is what they are for. */
inline int *atomic_place(int *at) {
  return at;
}
inline int *atomic_place(gc::Pointer<int> at) {
  gc::touch_bounds(*at.view, at.at, gc::log2_of(sizeof(int)), true);
  return at.at;
}
template <class P> int atomicCAS(P at, int old, int fresh) {
  return __sync_val_compare_and_swap(atomic_place(at), old, fresh);
}
template <class P> int atomicExch(P at, int fresh) {
  int *const place = atomic_place(at);
  const int before = *place;
  *place = fresh;
  return before;
}
template <class P> int atomicMax(P at, int value) {
  int *const place = atomic_place(at);
  const int before = *place;
  *place = before > value ? before : value;
  return before;
}
template <class P> int atomicMin(P at, int value) {
  int *const place = atomic_place(at);
  const int before = *place;
  *place = before < value ? before : value;
  return before;
}

inline size_t __cvta_generic_to_shared(const void *at) {
  return gc::shared_address(nullptr, at);
}
inline size_t __cvta_generic_to_shared(gc::SharedPointer<const uint> at) {
  return gc::shared_address(at.array, at.array->data + at.number * (i64)sizeof(uint));
}
