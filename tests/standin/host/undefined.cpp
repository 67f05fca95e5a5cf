/* undefined.cpp -- what checked kernels are compiled to call where C++ leaves the result open, and
 * targets differ: an index outside a thread's own array, division by 0, a shift by too much, a
 * float that no whole number holds. The compiler's own library for this would end the process. */

#include "runtime.h"

namespace {

/* What the compiler says of a place: see its ubsan.c. The type's name stands in quotes. */
struct Location {
  const char *file;
  uint line, column;
};
struct Type {
  ushort kind, info;
  char name[1];
};
struct OutOfBounds {
  Location location;
  const Type *array, *index;
};
struct Overflow {
  Location location;
  const Type *type;
};
} // namespace

extern "C" {

void __ubsan_handle_out_of_bounds(OutOfBounds *data, uintptr_t index) {
  gc::fail("out of bounds: element %lld of an array of type %s", (i64)index, data->array->name);
}

void __ubsan_handle_divrem_overflow(Overflow *data, uintptr_t, uintptr_t by) {
  gc::fail("division of a number of type %s by %lld", data->type->name, (i64)by);
}

void __ubsan_handle_shift_out_of_bounds(Overflow *data, uintptr_t, uintptr_t by) {
  gc::fail("shift of a number of type %s by %lld bits", data->type->name, (i64)by);
}

void __ubsan_handle_float_cast_overflow(OutOfBounds *data, uintptr_t) {
  gc::fail("a number of type %s that no %s holds", data->array->name, data->index->name);
}
}
