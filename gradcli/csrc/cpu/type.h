/* type.h -- the element type and the instruction set that a unit is compiled for. The unit says
 * them first (builds/f32.h, builds/avx2/isa.h); a header that is read alone is float of the
 * baseline. */
#ifndef GC_TYPE_H
#define GC_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#ifndef GC_ISA
#define GC_ISA baseline
#define GC_VECTOR_BYTES 16
#endif

#ifndef GC_TYPE
#define GC_TYPE f32
#define REAL float
#define GC_IS_REAL
#define GC_IS_FLOAT
#endif

/* The name of a function of this unit. */
#define GC_PASTE(a, b, c) a##_##b##_##c
#define GC_NAME(a, b, c) GC_PASTE(a, b, c)
#define NAME(f) GC_NAME(f, GC_TYPE, GC_ISA)

/* What sums and products of this type are carried in, and what they end as. */
#ifdef GC_IS_REAL
#define ACC double
#define OUT REAL
#else
#define ACC int64_t
#define OUT int64_t
#endif

#endif
