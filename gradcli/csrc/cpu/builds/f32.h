/* f32.h -- the kernels of one instruction set for float. */
#ifndef GC_F32_H
#define GC_F32_H

#define REAL float
#define GC_TYPE f32
#define GC_IS_REAL
#define GC_IS_FLOAT
#include "all_kernels.h"

#endif
