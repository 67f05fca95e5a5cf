/* i32.h -- the kernels of one instruction set for int32. From GC_INT_LOW and GC_INT_HIGH on a
 * conversion of a double would leave the range. */
#ifndef GC_I32_H
#define GC_I32_H

#define REAL int32_t
#define GC_TYPE i32
#define GC_INT_MIN INT32_MIN
#define GC_INT_MAX INT32_MAX
#define GC_INT_LOW (-2147483648.0)
#define GC_INT_HIGH 2147483647.0
#include "all_kernels.h"

#endif
