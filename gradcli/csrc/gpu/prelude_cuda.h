/* prelude_cuda.h -- the names in which GPU kernels are written, for CUDA (NVRTC, C++14, functions
 * without a mark are the device's). prelude_metal.h has the same names, docs/devices.md explains
 * them. */

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef long long i64;
typedef uint uint32_t;
typedef int int32_t;

#define KERNEL(name, threads, ...)                                                                 \
  extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define IN(T, x) const T *__restrict__ x
#define OUT(T, x) T *__restrict__ x
#define INOUT(T, x) T *x
#define VAL(T, x) const T x
#define VAL_REF(T) const T &
#define DEV(T) T *
#define SHP(T) T *
#define SHARED(T, name, n) __shared__ __align__(16) T name[n]
/* For KERNEL: so many threads, and registers for so many blocks at once on a processor. */
#define RESIDENT(threads, blocks) threads, blocks
#define UNROLL _Pragma("unroll")
#define FN static __forceinline__
#define CTX_P
#define CTX_A
#define TID threadIdx
#define BID blockIdx
#define BDIM blockDim
#define GDIM gridDim
#define LANE (threadIdx.x & 31u)
#define WARP (threadIdx.x >> 5)
#define BARRIER() __syncthreads()
#define WARP_SYNC() __syncwarp()

#define ALL_LANES 0xffffffffu
FN float warp_shfl(float v, uint lane) {
  return __shfl_sync(ALL_LANES, v, lane);
}
FN float warp_xor(float v, uint mask) {
  return __shfl_xor_sync(ALL_LANES, v, mask);
}
FN uint warp_xor(uint v, uint mask) {
  return __shfl_xor_sync(ALL_LANES, v, mask);
}

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
FN uint f2u(float x) {
  return __float_as_uint(x);
}
FN float u2f(uint x) {
  return __uint_as_float(x);
}
FN float ffma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
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
  return __umulhi(a, b);
}
/* Puts a value where there is 0; false when somebody else was first. */
FN bool claim(int *at, int value) {
  return atomicCAS(at, 0, value) == 0;
}
/* Makes it a value, unless it is larger. */
FN void raise_to(int *at, int value) {
  atomicMax(at, value);
}
