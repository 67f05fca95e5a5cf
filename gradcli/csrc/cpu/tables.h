/* tables.h -- the tables of kernels: one row a kernel, one table of builds for each instruction set
 * and element type. A missing build is a pair of NULLs, and calling it is an error, never a detour.
 */
#ifndef GC_TABLES_H
#define GC_TABLES_H

#include "kernel.h"

extern const gc_facts gc_rows[];
int gc_kernel_count(void);
const gc_kernel *gc_find(int kernel, int32_t dtype);

typedef struct {
  const char *name;
  const gc_kernel *f32, *f64, *i32, *i64, *u8;
  const gc_kernel *bf16, *pairs; /* of the rows of kernels.h alone: elementwise kernels have none */
} gc_isa_table;

/* The rows of kernels.h by number; those of scalar_ops.h follow. */
enum {
#define KERNEL_ALL(name, ...) GC_KERNEL_##name,
#define KERNEL_REAL KERNEL_ALL
#include "../kernels.h"
  GC_STRUCTURED
};

#endif
