/* tables.c -- names of all kernels, and the choice of the instruction set when the library loads.
 */
#include "tables.h"

#define PLAIN(name, inputs, outputs, typed_by) {name, inputs, outputs, typed_by, "", "", ""}
const gc_kernel_row gc_rows[] = {
#define KERNEL_ALL(name, plan, inputs, outputs, typed_by) PLAIN(#name, inputs, outputs, typed_by),
#define KERNEL_REAL KERNEL_ALL
#include "../kernels.h"
#define UNARY(name, y, saved, slope)                                                               \
  {#name, 1, 1, 0, #saved, #y, #slope}, PLAIN(#name "_backward", 2, 1, 0),
#define UNARY_STEP(name, y) {#name, 1, 1, 0, "", #y, ""},
#define UNARY_ANY(name, y) {#name, 1, 1, 0, "", #y, ""},
#define BINARY(name, y) {#name, 2, 1, 0, "", #y, ""},
#define BINARY_REAL(name, y, slope_a, slope_b)                                                     \
  {#name, 2, 1, 0, "", #y, #slope_a "; " #slope_b}, PLAIN(#name "_backward_a", 4, 1, 0),           \
      PLAIN(#name "_backward_b", 4, 1, 0),
#define BINARY_WHOLE(name, y) {#name, 2, 1, 0, "", #y, ""},
#define COMPARE(name, truth) {#name, 2, 1, 0, "", #truth, ""},
#include "../scalar_ops.h"
};

int gc_kernel_count(void) {
  return (int)(sizeof gc_rows / sizeof gc_rows[0]);
}

const char *gc_kernel_name(int kernel) {
  return kernel >= 0 && kernel < gc_kernel_count() ? gc_rows[kernel].name : NULL;
}

int gc_kernel_inputs(int kernel) {
  return gc_rows[kernel].inputs;
}
const char *gc_kernel_saved(int kernel) {
  return gc_rows[kernel].saved;
}
const char *gc_kernel_formula(int kernel) {
  return gc_rows[kernel].formula;
}
const char *gc_kernel_slope(int kernel) {
  return gc_rows[kernel].slope;
}

static const gc_isa_table *chosen;

static bool machine_has(const gc_isa_table *isa) {
#if defined(__x86_64__)
  if (isa == &gc_isa_avx512bf16)
    return machine_has(&gc_isa_avx512) && __builtin_cpu_supports("avx512bf16");
  if (isa == &gc_isa_avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("fma");
  if (isa == &gc_isa_avx2)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  (void)isa;
  return true;
}

/* Best first; the baseline runs everywhere. */
static const gc_isa_table *const built[] = {
#if defined(__x86_64__)
    &gc_isa_avx512bf16,
    &gc_isa_avx512,
    &gc_isa_avx2,
#elif defined(__aarch64__)
    &gc_isa_neon,
#endif
    &gc_isa_baseline,
};

static const gc_isa_table *isa_now(void) {
  for (size_t i = 0; !chosen; i++)
    if (machine_has(built[i]))
      chosen = built[i];
  return chosen;
}

const char *gc_isa(void) {
  return isa_now()->name;
}

int gc_set_isa(const char *name) {
  for (size_t i = 0; i < sizeof built / sizeof built[0]; i++)
    if (strcmp(built[i]->name, name) == 0 && machine_has(built[i])) {
      chosen = built[i];
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
    return &gc_table_i32[kernel];
  case GC_I64:
    return &gc_table_i64[kernel];
  case GC_BF16:
    return kernel < GC_STRUCTURED ? &isa_now()->bf16[kernel] : &none;
  default: /* bool is stored as bytes 0 and 1 */
    return &gc_table_u8[kernel];
  }
}

int gc_kernel_built(int kernel, int dtype) {
  return kernel >= 0 && kernel < gc_kernel_count() && dtype >= 0 && dtype < GC_DTYPES &&
         gc_find(kernel, dtype)->run != NULL;
}
