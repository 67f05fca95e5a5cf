/* prelude_host.h -- the names in which GPU kernels are written, for tests on a CPU: those of
 * csrc/gpu/prelude_cuda.h and prelude_metal.h. With GC_CHECK 1 every access of memory is watched.
 */

#pragma once
#include "kernels.h"
#include "tensor.h"
#include <math.h>
#include <string.h>

#ifndef GC_CHECK
#define GC_CHECK 1
#endif

#define KERNEL_NAMED(name, threads, ...)                                                           \
  static void name(__VA_ARGS__);                                                                   \
  static gc::Entry name##_entry(#name, threads, gc::Call<decltype(&name), &name>());               \
  static void name(__VA_ARGS__)
#define KERNEL(name, threads, ...) KERNEL_NAMED(name, threads, __VA_ARGS__)
#if GC_CHECK
#define DEV(T) gc::Pointer<T>
#define SHP(T) gc::SharedPointer<T>
#define SHARED(T, name, n)                                                                         \
  static gc::SharedMemory<T, (n)> name##_memory;                                                   \
  const gc::SharedPointer<T> name = name##_memory.enter(#name)
#else
#define DEV(T) T *
#define SHP(T) T *
#define SHARED(T, name, n) static T name[n]
#endif
/* For KERNEL: so many threads, and registers for so many blocks at once on a processor. */
#define RESIDENT(threads, blocks) threads
#define UNROLL
#define ROLLED
#define IN(T, x) DEV(const T) x
#define OUT(T, x) DEV(T) x
#define INOUT(T, x) DEV(T) x
#define VAL(T, x) const T x
#define VAL_REF(T) const T &
#define FN static inline
#define CTX_P
#define CTX_A
#define TID (gc::thread.tid)
#define BID (gc::block_index)
#define BDIM (gc::block_size)
#define GDIM (gc::grid_size)
#define LANE (gc::thread.lane)
#define WARP (gc::thread.warp)

/* Each stands in the text once, and that is what threads must agree on: the same one. */
#define BARRIER() gc::barrier(__COUNTER__)
#define WARP_SYNC() gc::warp_sync(__COUNTER__)
#define warp_shfl(v, lane) gc::from_lane(v, lane, __COUNTER__)
#define warp_xor(v, mask) gc::from_lane(v, gc::thread.lane ^ (mask), __COUNTER__)

FN uint f2u(float x) {
  uint bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
FN float u2f(uint bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

namespace gc {
FN float from_lane(float v, uint lane, uint site) {
  return u2f(warp_exchange(f2u(v), lane, site));
}
FN uint from_lane(uint v, uint lane, uint site) {
  return warp_exchange(v, lane, site);
}
} // namespace gc

FN float ffma(float a, float b, float c) {
  return fmaf(a, b, c);
}
FN float fabs1(float x) {
  return fabsf(x);
}
FN float fsign(float size, float sign) {
  return copysignf(size, sign);
}
#define PRELUDE_MATHS(name, function)                                                              \
  FN float name(float x) {                                                                         \
    return function(x);                                                                            \
  }
PRELUDE_MATHS(fsqrt, sqrtf)
PRELUDE_MATHS(fsin, sinf)
PRELUDE_MATHS(fcos, cosf)
PRELUDE_MATHS(ftan, tanf)
PRELUDE_MATHS(fasin, asinf)
PRELUDE_MATHS(facos, acosf)
PRELUDE_MATHS(fatan, atanf)
PRELUDE_MATHS(fsinh, sinhf)
PRELUDE_MATHS(fcosh, coshf)
PRELUDE_MATHS(flog2, log2f)
PRELUDE_MATHS(flog10, log10f)
PRELUDE_MATHS(fexp2, exp2f)
PRELUDE_MATHS(ffloor, floorf)
PRELUDE_MATHS(fceil, ceilf)
PRELUDE_MATHS(frint, rintf)
PRELUDE_MATHS(ftrunc, truncf)
FN float fpow(float x, float y) {
  return powf(x, y);
}
FN float fatan2(float y, float x) {
  return atan2f(y, x);
}
FN float ffmod(float x, float y) {
  return fmodf(x, y);
}
FN uint umulhi(uint a, uint b) {
  return (uint)(((uint64_t)a * b) >> 32);
}
/* Not watched: threads race for it, and that is what it is there for. */
#if GC_CHECK
#define RACED(at) (at).at
#else
#define RACED(at) (at)
#endif
FN bool claim(DEV(int) at, int value) {
  return __sync_bool_compare_and_swap(RACED(at), 0, value);
}
FN void raise_to(DEV(int) at, int value) {
  int *const place = RACED(at);
  *place = *place > value ? *place : value;
}

/* Tensor cores, and copies beside them. */
#define aligned16(at) gc::aligned16(at)
#define copy_async(to, from, bytes) gc::copy_async(to, from, bytes)
FN void copies_end() {
  gc::end_copies();
}
#define COPIES_LEFT(groups) gc::wait_for_copies(groups)
#define load_matrices(row) gc::read_matrices(row, false, __COUNTER__)
#define load_turned(row) gc::read_matrices(row, true, __COUNTER__)
#define mma_bf16(c, a, b0, b1) gc::multiplied(c, a, b0, b1, true, __COUNTER__)
#define mma_tf32(c, a, b0, b1) gc::multiplied(c, a, b0, b1, false, __COUNTER__)
/* To 11 bits of a number, halves away from 0. */
FN uint round_tf32(uint bits) {
  const bool none = (bits & 0x7fffffffu) > 0x7f800000u;
  return none ? 0x7fffffffu : (bits + 0x1000u) & 0xffffe000u;
}
