/* integer_kernels.h -- the kernels of one instruction set that integers and bool have too. */

/* abs of an unsigned byte asks `x < 0`, which is never true and meant so. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"

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

#pragma GCC diagnostic pop
