/* isa.h -- baseline: any processor, with what the compiler assumes by itself. */
#ifndef GC_ISA_H
#define GC_ISA_H

#define GC_ISA baseline
#define GC_VECTOR_BYTES 16

#endif
