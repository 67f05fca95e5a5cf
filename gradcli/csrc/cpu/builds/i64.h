/* i64.h -- the kernels of one instruction set for int64. From GC_INT_LOW and GC_INT_HIGH on a
 * conversion of a double would leave the range. */
#ifndef GC_I64_H
#define GC_I64_H

#define REAL int64_t
#define GC_TYPE i64
#define GC_INT_MIN INT64_MIN
#define GC_INT_MAX INT64_MAX
#define GC_INT_LOW (-9223372036854775808.0)
#define GC_INT_HIGH 9223372036854775808.0
#include "all_kernels.h"

#endif
