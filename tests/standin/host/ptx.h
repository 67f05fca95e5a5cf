/* ptx.h -- PTX statements as kernels on the CPU see them: each runs a model (ptx.cpp) that is
 * looked up by the statement's exact text and operands. */

#pragma once
#include "kernels.h"
#include <string.h>

namespace gc {

/* The operands of a statement; each kind is counted from 0. */
struct Operands {
  void *out[4];     /* words */
  uint in[6];       /* words */
  const void *from; /* device memory, */
  const View *view; /* NULL where it is not watched, */
  uint log_size;    /* and log2 of its elements' size */
  uint outputs = 0, inputs = 0;

  template <class T> void to(T &word) {
    static_assert(sizeof(T) == sizeof(uint), "an output is a word");
    out[outputs++] = &word;
  }
  void with(uint word) { in[inputs++] = word; }
  void with(int word) { in[inputs++] = (uint)word; }
  void with(float number) { memcpy(&in[inputs++], &number, sizeof number); }
  void with(const void *place) { from = place, view = nullptr; }
  void with(Pointer<const void> place) {
    from = place.at, view = place.view, log_size = place.log_size;
  }
};

struct Model {
  const char *text;
  const char *operands; /* as they stand there: volatile, outputs : inputs : what else changes */
  void (*run)(const Operands &);
};

const Model *model_of(const char *text, const char *operands); /* NULL: there is none */
void run_model(const Model *model, const char *text, const char *operands, const Operands &of);

/* Where in the text the collective stands that this thread runs, for as long as this lives. */
struct AtPlace {
  uint before;
  explicit AtPlace(uint place) : before(thread.place) { thread.place = place; }
  ~AtPlace() { thread.place = before; }
};
} // namespace gc
