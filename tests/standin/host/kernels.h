/* kernels.h -- a kernel's parameters as data, and the list of a module's kernels. */

#pragma once
#include "pointers.h"
#include <utility>

namespace gc {

/* How a parameter is described, and how a thread gets its argument. */
template <class T> struct Parameter {
  static constexpr gc_host_parameter is = {'s', sizeof(T)};
  static T from(void *argument) { return *(const T *)argument; }
};
template <> struct Parameter<uint> {
  static constexpr gc_host_parameter is = {'u', 4};
  static uint from(void *argument) { return *(const uint *)argument; }
};
template <> struct Parameter<int> {
  static constexpr gc_host_parameter is = {'i', 4};
  static int from(void *argument) { return *(const int *)argument; }
};
template <> struct Parameter<float> {
  static constexpr gc_host_parameter is = {'f', 4};
  static float from(void *argument) { return *(const float *)argument; }
};
template <class T> struct Parameter<T *> {
  static constexpr gc_host_parameter is = {'w', sizeof(T)};
  static T *from(void *argument) { return (T *)((const View *)argument)->at; }
};
template <class T> struct Parameter<const T *> {
  static constexpr gc_host_parameter is = {'r', sizeof(T)};
  static const T *from(void *argument) { return (const T *)((const View *)argument)->at; }
};
template <class T> struct Parameter<Pointer<T>> {
  static constexpr gc_host_parameter is = {'w', sizeof(T)};
  static Pointer<T> from(void *argument) {
    const View *const view = (const View *)argument;
    return {(T *)view->at, view};
  }
};
template <class T> struct Parameter<Pointer<const T>> {
  static constexpr gc_host_parameter is = {'r', sizeof(T)};
  static Pointer<const T> from(void *argument) {
    const View *const view = (const View *)argument;
    return {(const T *)view->at, view};
  }
};

/* A kernel as a function of untyped arguments. */
template <class F, F function> struct Call;
template <class... P, void (*function)(P...)> struct Call<void (*)(P...), function> {
  static constexpr uint count = sizeof...(P);
  static const gc_host_parameter *parameters() {
    static const gc_host_parameter all[] = {gc_host_parameter(Parameter<P>::is)...};
    return all;
  }
  static void run(void *const *arguments) { with(arguments, std::index_sequence_for<P...>()); }

private:
  template <size_t... i> static void with(void *const *arguments, std::index_sequence<i...>) {
    function(Parameter<P>::from(arguments[i])...);
  }
};

static const gc_host_kernel *first_kernel;

/* What a kernel promises of its launches: most threads of a block, and how many of them a processor
 * shall have registers for. */
struct LaunchBounds {
  uint threads;
  LaunchBounds(uint most_threads, uint = 1) : threads(most_threads) {}
};

/* Enters a kernel in the module's list, before the module is used. */
struct Entry {
  gc_host_kernel kernel;
  template <class C>
  Entry(const char *name, LaunchBounds bounds, C)
      : kernel{first_kernel, name, bounds.threads, C::count, C::parameters(), &C::run} {
    first_kernel = &kernel;
  }
};
} // namespace gc

extern "C" __attribute__((visibility("default"))) const gc_host_kernel *gc_host_kernels(void) {
  return gc::first_kernel;
}
