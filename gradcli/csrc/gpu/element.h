/* element.h -- elements as numbers and back, where the type may be bfloat16. */

#ifndef NUMBER
#ifdef GC_IS_BF16
#include "bfloat16.h"
#define NUMBER(element) widened(element)
#define ELEMENT(number) rounded_half(number)
#else
#define NUMBER(element) (element)
#define ELEMENT(number) (number)
#endif
#endif
