/* prelude_metal.h -- the names in which GPU kernels are written, for Metal (MSL 3.1, fast maths
 * off). prelude_cuda.h has the same names, docs/devices.md explains them. */

#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off) /* a * b + c is rounded twice, as elsewhere; ffma is not */
typedef long i64;

#ifdef GC_OPENCL_CHECK
#define KERNEL_MARK(threads) __kernel
#else
#define KERNEL_MARK(threads) [[kernel, max_total_threads_per_threadgroup(threads)]]
#endif
#define KERNEL(name, threads, ...)                                                                 \
  KERNEL_MARK(threads)                                                                             \
  void name(__VA_ARGS__, uint3 gc_tid [[thread_position_in_threadgroup]],                          \
            uint3 gc_bid [[threadgroup_position_in_grid]],                                         \
            uint3 gc_bdim [[threads_per_threadgroup]], uint3 gc_gdim [[threadgroups_per_grid]],    \
            uint gc_lane [[thread_index_in_simdgroup]],                                            \
            uint gc_warp [[simdgroup_index_in_threadgroup]])
#define IN(T, x) device const T *x
#define OUT(T, x) device T *x
#define INOUT(T, x) device T *x
#define VAL(T, x) constant T &x
#define VAL_REF(T) constant T &
#define DEV(T) device T *
#define SHP(T) threadgroup T *
#ifdef GC_CLANG_CHECK
#define SHARED(T, name, n) static threadgroup T name[n]
#else
#define SHARED(T, name, n) threadgroup T name[n]
#endif
/* For KERNEL: so many threads, and registers for so many blocks at once on a processor. */
#define RESIDENT(threads, blocks) threads
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("nounroll")
#define FN static inline
#define CTX_P , uint3 gc_tid, uint3 gc_bid, uint3 gc_bdim, uint3 gc_gdim, uint gc_lane, uint gc_warp
#define CTX_A , gc_tid, gc_bid, gc_bdim, gc_gdim, gc_lane, gc_warp
#define TID gc_tid
#define BID gc_bid
#define BDIM gc_bdim
#define GDIM gc_gdim
#define LANE gc_lane
#define WARP gc_warp
#define ALL_MEMORY mem_flags::mem_device | mem_flags::mem_threadgroup
#define BARRIER() threadgroup_barrier(ALL_MEMORY)
#define WARP_SYNC() simdgroup_barrier(ALL_MEMORY)

FN float warp_shfl(float v, uint lane) {
  return simd_shuffle(v, (ushort)lane);
}
FN float warp_xor(float v, uint mask) {
  return simd_shuffle_xor(v, (ushort)mask);
}
FN uint warp_xor(uint v, uint mask) {
  return simd_shuffle_xor(v, (ushort)mask);
}

FN uint f2u(float x) {
  return as_type<uint>(x);
}
FN float u2f(uint x) {
  return as_type<float>(x);
}
FN float ffma(float a, float b, float c) {
  return fma(a, b, c);
}
FN float fabs1(float x) {
  return fabs(x);
}
FN float fsign(float size, float sign) {
  return copysign(size, sign);
}
#define PRELUDE_MATHS(name, function)                                                              \
  FN float name(float x) {                                                                         \
    return precise::function(x);                                                                   \
  }
PRELUDE_MATHS(fsqrt, sqrt)
PRELUDE_MATHS(fsin, sin)
PRELUDE_MATHS(fcos, cos)
PRELUDE_MATHS(ftan, tan)
PRELUDE_MATHS(fasin, asin)
PRELUDE_MATHS(facos, acos)
PRELUDE_MATHS(fatan, atan)
PRELUDE_MATHS(fsinh, sinh)
PRELUDE_MATHS(fcosh, cosh)
PRELUDE_MATHS(flog2, log2)
PRELUDE_MATHS(flog10, log10)
PRELUDE_MATHS(fexp2, exp2)
PRELUDE_MATHS(ffloor, floor)
PRELUDE_MATHS(fceil, ceil)
PRELUDE_MATHS(frint, rint)
PRELUDE_MATHS(ftrunc, trunc)
FN float fpow(float x, float y) {
  return precise::pow(x, y);
}
FN float fatan2(float y, float x) {
  return precise::atan2(y, x);
}
FN float ffmod(float x, float y) {
  return precise::fmod(x, y);
}
FN uint umulhi(uint a, uint b) {
  return mulhi(a, b);
}
/* Puts a value where there is 0; false when somebody else was first. */
FN bool claim(device int *at, int value) {
  device atomic_int *place = (device atomic_int *)at;
  int found = 0;
  while (!atomic_compare_exchange_weak_explicit(place, &found, value, memory_order_relaxed,
                                                memory_order_relaxed))
    if (found != 0)
      return false;
  return true;
}
/* Makes it a value, unless it is larger. */
FN void raise_to(device int *at, int value) {
  device atomic_int *place = (device atomic_int *)at;
  int found = 0;
  while (!atomic_compare_exchange_weak_explicit(place, &found, value, memory_order_relaxed,
                                                memory_order_relaxed))
    if (found >= value)
      return;
}
