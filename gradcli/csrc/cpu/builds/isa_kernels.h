/* isa_kernels.h -- all kernels of one instruction set, for every element type. The including file
 * sets the compiler's target, GC_ISA and GC_VECTOR_BYTES first. */
#define GC_IS_REAL
#define GC_PASTE(a, b, c) a##_##b##_##c
#define GC_NAME(a, b, c) GC_PASTE(a, b, c)
#define NAME(f) GC_NAME(f, GC_TYPE, GC_ISA)

#include "../bfloat16.h"
#include "../kernel.h"
#include "../lines.h"
#include "../random/random_philox.h"
#include "../tables.h"
#include "../walk.h"

#define REAL float
#define GC_TYPE f32
#define GC_IS_FLOAT
#include "all_kernels.h"

#define REAL double
#define GC_TYPE f64
#include "all_kernels.h"

#undef GC_IS_REAL
#include "integer_kernels.h"

#define REAL uint16_t
#define GC_TYPE bf16
#include "bfloat16_kernels.h"
#undef GC_TYPE
#undef REAL

#define GC_TABLE(type) GC_NAME(table, type, GC_ISA)
#define GC_TEXT(x) GC_QUOTE(x)
#define GC_QUOTE(x) #x
#define GC_ISA_TABLE(isa) GC_ISA_PASTE(isa)
#define GC_ISA_PASTE(isa) gc_isa_##isa
const gc_isa_table GC_ISA_TABLE(GC_ISA) = {GC_TEXT(GC_ISA), GC_TABLE(f32), GC_TABLE(f64),
                                           GC_TABLE(i32),   GC_TABLE(i64), GC_TABLE(u8),
                                           GC_TABLE(bf16)};
