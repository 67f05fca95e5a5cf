/* target.h -- GC_BEGIN_TARGET and GC_END_TARGET stand around all of a unit: its functions use the
 * instructions of GC_TARGET, which isa.h names, so that all units share one set of flags. */
#ifndef GC_TARGET_H
#define GC_TARGET_H

#define GC_PRAGMA(text) _Pragma(#text)
#if !defined(GC_TARGET)
#define GC_BEGIN_TARGET
#define GC_END_TARGET
#elif defined(__clang__)
#define GC_PUSH_TARGET(names)                                                                      \
  GC_PRAGMA(clang attribute push(__attribute__((target(names))), apply_to = function))
#define GC_BEGIN_TARGET GC_PUSH_TARGET(GC_TARGET)
#define GC_END_TARGET GC_PRAGMA(clang attribute pop)
#else
#define GC_SET_TARGET(names) GC_PRAGMA(GCC target(names))
#define GC_BEGIN_TARGET GC_SET_TARGET(GC_TARGET)
#define GC_END_TARGET
#endif

#endif
