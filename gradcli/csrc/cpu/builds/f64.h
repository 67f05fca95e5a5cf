/* f64.h -- the kernels of one instruction set for double. */
#ifndef GC_F64_H
#define GC_F64_H

#define REAL double
#define GC_TYPE f64
#define GC_IS_REAL
#include "all_kernels.h"

#endif
