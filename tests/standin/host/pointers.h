/* pointers.h -- pointers of checked kernels: every access goes through gc::touch. With GC_CHECK 0
 * they are plain ones. */

#pragma once
#include "runtime.h"

namespace gc {

constexpr uint log2_of(size_t size) {
  return size <= 1 ? 0 : 1 + log2_of(size / 2);
}

/* What `a[i]` is where it may be written: a place that knows when it is read and when written. */
template <class P, class T> struct Place {
  P pointer;
  operator T() const { return pointer.get(); }
  T operator=(T value) const { return pointer.set(value); }
  T operator=(const Place &other) const { return *this = (T)other; }
  T operator+=(T value) const { return *this = (T)(pointer.get() + value); }
  T operator-=(T value) const { return *this = (T)(pointer.get() - value); }
  T operator*=(T value) const { return *this = (T)(pointer.get() * value); }
  T operator/=(T value) const { return *this = (T)(pointer.get() / value); }
  T operator|=(T value) const { return *this = (T)(pointer.get() | value); }
  T operator&=(T value) const { return *this = (T)(pointer.get() & value); }
  T operator^=(T value) const { return *this = (T)(pointer.get() ^ value); }
};

/* Into device memory. */
template <class T> struct Pointer {
  T *at;
  const View *view;

  T get() const {
    touch(*view, at, log2_of(sizeof(T)), false);
    return *at;
  }
  T set(T value) const {
    touch(*view, at, log2_of(sizeof(T)), true);
    return *at = value;
  }
  /* As a number: a pointer may be out of bounds as long as nobody follows it. */
  Pointer operator+(i64 i) const { return {(T *)((uintptr_t)at + (uintptr_t)i * sizeof(T)), view}; }
  Place<Pointer, T> operator[](i64 i) const { return {*this + i}; }
  Place<Pointer, T> operator*() const { return {*this}; }
};

template <class T> struct Pointer<const T> {
  const T *at;
  const View *view;

  Pointer(const T *place, const View *of) : at(place), view(of) {}
  Pointer(const Pointer<T> &other) : at(other.at), view(other.view) {}
  Pointer operator+(i64 i) const {
    return {(const T *)((uintptr_t)at + (uintptr_t)i * sizeof(T)), view};
  }
  T operator[](i64 i) const { return *(*this + i); }
  T operator*() const {
    touch(*view, at, log2_of(sizeof(T)), false);
    return *at;
  }
};

/* Of whatever type, for those who follow it themselves. */
template <> struct Pointer<const void> {
  const void *at;
  const View *view;
  uint log_size;

  template <class T>
  Pointer(const Pointer<T> &other) : at(other.at), view(other.view), log_size(log2_of(sizeof(T))) {}
  explicit operator size_t() const { return (size_t)at; }
};

/* Into a SHARED array. */
template <class T> struct SharedPointer {
  const SharedArray *array;
  i64 number;

  T get() const {
    touch_shared(*array, number, false);
    return ((T *)array->data)[number];
  }
  T set(T value) const {
    touch_shared(*array, number, true);
    return ((T *)array->data)[number] = value;
  }
  SharedPointer operator+(i64 i) const { return {array, number + i}; }
  Place<SharedPointer, T> operator[](i64 i) const { return {*this + i}; }
  Place<SharedPointer, T> operator*() const { return {*this}; }
};

template <class T> struct SharedPointer<const T> : SharedPointer<T> {
  SharedPointer(const SharedPointer<T> &other) : SharedPointer<T>(other) {}
  T operator[](i64 i) const { return SharedPointer<T>::operator[](i); }
  T operator*() const { return this->get(); }
};

/* What SHARED declares: a static without a constructor, zero at first. */
template <class T, uint count> struct SharedMemory {
  T data[count];
  Shadow shadows[count];
  SharedArray array;

  SharedPointer<T> enter(const char *name) {
    if (!array.data)
      array = SharedArray{name, (char *)data, shadows, count, sizeof(T), 0};
    enter_shared(array);
    return {&array, 0};
  }
};
} // namespace gc
