/* watched.h -- stands between the macros and the functions of prelude_cuda.h: kernels enter the
 * list of their module, and with GC_CHECK 1 every access of memory is watched. */

#undef KERNEL
#define KERNEL_NAMED(name, bounds, ...)                                                            \
  static void name(__VA_ARGS__);                                                                   \
  static gc::Entry name##_entry(#name, bounds, gc::Call<decltype(&name), &name>());                \
  static void name(__VA_ARGS__)
#define KERNEL(name, threads, ...) KERNEL_NAMED(name, gc::LaunchBounds(threads), __VA_ARGS__)

#if GC_CHECK
#undef DEV
#undef SHP
#undef SHARED
#undef IN
#undef OUT
#undef INOUT
#define DEV(T) gc::Pointer<T>
#define SHP(T) gc::SharedPointer<T>
#define SHARED(T, name, n)                                                                         \
  static gc::SharedMemory<T, (n)> name##_memory;                                                   \
  const gc::SharedPointer<T> name = name##_memory.enter(#name)
#define IN(T, x) DEV(const T) x
#define OUT(T, x) DEV(T) x
#define INOUT(T, x) DEV(T) x
#endif
