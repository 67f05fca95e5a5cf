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
#define ROLLED _Pragma("unroll 1")
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
FN bool claim(DEV(int) at, int value) {
  return atomicCAS(at, 0, value) == 0;
}
/* Makes it a value, unless it is larger. */
FN void raise_to(DEV(int) at, int value) {
  atomicMax(at, value);
}

/* ---- Tensor cores and copies beside them, by PTX: compute capability 8.0 and newer ---- */

struct Words4 {
  uint at[4];
};
struct Quad {
  float at[4];
};
FN uint shared_place(SHP(const uint) at) {
  return (uint)__cvta_generic_to_shared(at);
}
FN bool aligned16(DEV(const void) at) {
  return ((size_t)at & 15) == 0;
}
/* Begins to copy so many bytes into 16 of shared memory, the rest of which become 0. */
FN void copy_async(SHP(uint) to, DEV(const void) from, uint bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_place(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
/* What was begun since the last time is a group. */
FN void copies_end() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Waits until at most so many groups of this thread are on their way. */
#define COPIES_LEFT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
/* Lane 8 j + r names row r of matrix j; each lane gets word lane % 4 of row lane / 4 of all four.
 * Turned, words are pairs of rows, and it gets those of column lane / 4. */
FN Words4 load_matrices(SHP(const uint) row) {
  Words4 w;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])
               : "r"(shared_place(row))
               : "memory");
  return w;
}
FN Words4 load_turned(SHP(const uint) row) {
  Words4 w;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(w.at[0]), "=r"(w.at[1]), "=r"(w.at[2]), "=r"(w.at[3])
               : "r"(shared_place(row))
               : "memory");
  return w;
}
#define PRELUDE_MMA(name, shape)                                                                   \
  FN Quad name(Quad c, Words4 a, uint b0, uint b1) {                                               \
    asm("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"         \
        : "+f"(c.at[0]), "+f"(c.at[1]), "+f"(c.at[2]), "+f"(c.at[3])                               \
        : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b0), "r"(b1));               \
    return c;                                                                                      \
  }
/* c + a b of 16 x 16 and 16 x 8 numbers; of 16 x 8 and 8 x 8. */
PRELUDE_MMA(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
PRELUDE_MMA(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
FN uint round_tf32(uint bits) {
  uint rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(u2f(bits)));
  return rounded;
}
