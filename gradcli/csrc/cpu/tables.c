/* tables.c -- the facts of all kernels, and the choice of the instruction set when the library
 * loads. */
#include "tables.h"

#define OF(i) (1 << (i))
#define ALL (-1)
#define ELEMENTWISE(kernel, of, count, words)                                                      \
  .name = kernel, .kind = of, .inputs = count, .outputs = 1, .shapes = words, .in_place = ALL,     \
  .any_strides = of == GC_BINARY || of == GC_SLOPE_OF_2
#define BINARY_OF(row, y, words) {ELEMENTWISE(#row, GC_BINARY, 2, words), .formula = #y},
#define SLOPE_OF_2(row) {ELEMENTWISE(row, GC_SLOPE_OF_2, 4, "~* ~* ~* ~* ~*")}
const gc_facts gc_rows[] = {
#define KERNEL_ALL(kernel, plan, of_inputs, of_outputs, type, ...)                                 \
  {.name = #kernel,                                                                                \
   .inputs = of_inputs,                                                                            \
   .outputs = of_outputs,                                                                          \
   .typed_by = type,                                                                               \
   .shapes = __VA_ARGS__},
#define KERNEL_REAL KERNEL_ALL
#include "../kernels.h"
#define UNARY(row, y, of, dy)                                                                      \
  {ELEMENTWISE(#row, GC_UNARY, 1, "* *"), .saved = #of, .formula = #y, .slope = {#dy}},            \
      {ELEMENTWISE(#row "_backward", GC_SLOPE, 2, "* * *")},
#define UNARY_STEP(row, y) {ELEMENTWISE(#row, GC_UNARY, 1, "* *"), .formula = #y},
#define UNARY_ANY UNARY_STEP
#define BINARY(row, y) BINARY_OF(row, y, "~* ~* ~*")
#define BINARY_REAL(row, y, dy_da, dy_db)                                                          \
  {ELEMENTWISE(#row, GC_BINARY, 2, "~* ~* ~*"), .formula = #y, .slope = {#dy_da, #dy_db}},         \
      SLOPE_OF_2(#row "_backward_a"), SLOPE_OF_2(#row "_backward_b"),
#define BINARY_WHOLE BINARY
#define COMPARE(row, y) BINARY_OF(row, y, "~* ~* ~*B")
#include "../scalar_ops.h"
};

int gc_kernel_count(void) {
  return (int)(sizeof gc_rows / sizeof gc_rows[0]);
}

const gc_facts *gc_kernel_facts(int kernel) {
  return kernel >= 0 && kernel < gc_kernel_count() ? &gc_rows[kernel] : NULL;
}

/* The instruction sets of this library, best first: SET is one with tables of its own, PAIRED one
 * that adds products of pairs to another's. A development build has said which it has (build.py);
 * the baseline runs everywhere. */
#if defined(GC_SETS)
#elif defined(__x86_64__)
#define GC_SETS PAIRED(avx512bf16, avx512) SET(avx512) SET(avx2) SET(baseline)
#elif defined(__aarch64__)
#define GC_SETS SET(neon) SET(baseline)
#else
#define GC_SETS SET(baseline)
#endif

#define SET(isa)                                                                                   \
  extern const gc_kernel table_f32_##isa[], table_f64_##isa[], table_i32_##isa[],                  \
      table_i64_##isa[], table_u8_##isa[], table_bf16_##isa[];
#define PAIRED(isa, other) extern const gc_kernel table_pairs_##isa[];
GC_SETS
#undef SET
#undef PAIRED

#define TABLES(isa, pairs)                                                                         \
  table_f32_##isa, table_f64_##isa, table_i32_##isa, table_i64_##isa, table_u8_##isa,              \
      table_bf16_##isa, pairs
#define SET(isa) {#isa, TABLES(isa, NULL)},
#define PAIRED(isa, other) {#isa, TABLES(other, table_pairs_##isa)},
static const gc_isa_table built[] = {GC_SETS};

static const gc_isa_table *chosen;

static bool machine_has(const char *isa) {
#if defined(__x86_64__)
  if (strcmp(isa, "avx512bf16") == 0)
    return machine_has("avx512") && __builtin_cpu_supports("avx512bf16");
  if (strcmp(isa, "avx512") == 0)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("fma");
  if (strcmp(isa, "avx2") == 0)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  (void)isa;
  return true;
}

static const gc_isa_table *isa_now(void) {
  for (size_t i = 0; !chosen; i++)
    if (machine_has(built[i].name))
      chosen = &built[i];
  return chosen;
}

const char *gc_isa(void) {
  return isa_now()->name;
}

int gc_set_isa(const char *name) {
  for (size_t i = 0; i < sizeof built / sizeof built[0]; i++)
    if (strcmp(built[i].name, name) == 0 && machine_has(name)) {
      chosen = &built[i];
      return 1;
    }
  return 0;
}

const gc_kernel *gc_find(int kernel, int32_t dtype) {
  static const gc_kernel none = {NULL, NULL};
  switch (dtype) {
  case GC_F32:
    return &isa_now()->f32[kernel];
  case GC_F64:
    return &isa_now()->f64[kernel];
  case GC_I32:
    return &isa_now()->i32[kernel];
  case GC_I64:
    return &isa_now()->i64[kernel];
  case GC_BF16:
    if (gc_rows[kernel].widens)
      return &isa_now()->f32[kernel];
    if (kernel >= GC_STRUCTURED)
      return &none;
    return isa_now()->pairs && isa_now()->pairs[kernel].run ? &isa_now()->pairs[kernel]
                                                            : &isa_now()->bf16[kernel];
  default: /* bool is stored as bytes 0 and 1 */
    return &isa_now()->u8[kernel];
  }
}

int gc_kernel_built(int kernel, int dtype) {
  return kernel >= 0 && kernel < gc_kernel_count() && dtype >= 0 && dtype < GC_DTYPES &&
         gc_find(kernel, dtype)->run != NULL;
}
