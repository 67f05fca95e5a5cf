/* integers.c -- the kernels that integers and bool have too. */
/* abs of an unsigned byte asks `x < 0`, which is never true and meant so. */
#pragma GCC diagnostic ignored "-Wtype-limits"

#define GC_PASTE(a, b) a##_##b
#define GC_NAME(a, b) GC_PASTE(a, b)
#define NAME(f) GC_NAME(f, GC_TYPE)

#include "../bfloat16.h"
#include "../kernel.h"
#include "../lines.h"
#include "../random/random_philox.h"
#include "../tables.h"
#include "../walk.h"

/* GC_INT_LOW and GC_INT_HIGH: the doubles from which on a conversion would leave the range. */
#define REAL int32_t
#define GC_TYPE i32
#define GC_INT_MIN INT32_MIN
#define GC_INT_MAX INT32_MAX
#define GC_INT_LOW (-2147483648.0)
#define GC_INT_HIGH 2147483647.0
#include "all_kernels.h"

#define REAL int64_t
#define GC_TYPE i64
#define GC_INT_MIN INT64_MIN
#define GC_INT_MAX INT64_MAX
#define GC_INT_LOW (-9223372036854775808.0)
#define GC_INT_HIGH 9223372036854775808.0
#include "all_kernels.h"

#define REAL uint8_t
#define GC_TYPE u8
#define GC_INT_MIN 0
#define GC_INT_MAX UINT8_MAX
#define GC_INT_LOW 0.0
#define GC_INT_HIGH 255.0
#include "all_kernels.h"

const gc_kernel *const gc_table_i32 = table_i32;
const gc_kernel *const gc_table_i64 = table_i64;
const gc_kernel *const gc_table_u8 = table_u8;
