/* u8.h -- the kernels of one instruction set for bytes and bool. From GC_INT_LOW and GC_INT_HIGH on
 * a conversion of a double would leave the range. */
#ifndef GC_U8_H
#define GC_U8_H

/* abs of an unsigned byte asks `x < 0`, which is never true and meant so. */
#pragma GCC diagnostic ignored "-Wtype-limits"

#define REAL uint8_t
#define GC_TYPE u8
#define GC_INT_MIN 0
#define GC_INT_MAX UINT8_MAX
#define GC_INT_LOW 0.0
#define GC_INT_HIGH 255.0
#include "all_kernels.h"

#endif
