// SPDX-License-Identifier: Apache-2.0
/// \file
/// The atomic updates of one element under the names that OpenSHMEM, UCX and C++ use. Each is one of the calls of
/// rma/window.hpp, whose completion, order, errors and cost it has.
#pragma once

#include <cstddef>
#include <source_location>

#include "rma/error.hpp"
#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The calls, as members of every window.
template <class W, class T>
class AtomicForms {
  using source = std::source_location;

 public:
  /// target[at] += value; returns the old value. `fetch_and_op` with sum.
  T fetch_add(const T& value, int target, std::size_t at, source where = source::current())
    requires accumulable<T>
  {
    return self().fetch_and_op(value, target, at, sum, where);
  }
  [[nodiscard]] status try_fetch_add(const T& value, T& old, int target, std::size_t at) noexcept
    requires accumulable<T>
  {
    return self().try_fetch_and_op(value, old, target, at, sum);
  }
  /// target[at] = value; returns the old value. `fetch_and_op` with replace.
  T swap(const T& value, int target, std::size_t at, source where = source::current())
    requires accumulable<T>
  {
    return self().fetch_and_op(value, target, at, replace, where);
  }
  [[nodiscard]] status try_swap(const T& value, T& old, int target, std::size_t at) noexcept
    requires accumulable<T>
  {
    return self().try_fetch_and_op(value, old, target, at, replace);
  }
  /// Reads target[at] atomically with respect to updates, which `get` does not. `fetch_and_op` with no_op.
  [[nodiscard]] T atomic_load(int target, std::size_t at, source where = source::current())
    requires accumulable<T>
  {
    return self().fetch_and_op(T{}, target, at, no_op, where);
  }
  [[nodiscard]] status try_atomic_load(T& value, int target, std::size_t at) noexcept
    requires accumulable<T>
  {
    return self().try_fetch_and_op(T{}, value, target, at, no_op);
  }
  /// target[at] = value, atomically with respect to updates, which `put` is not. `accumulate` with replace: complete at
  /// the next flush or end of the epoch.
  void atomic_store(const T& value, int target, std::size_t at, source where = source::current())
    requires accumulable<T>
  {
    self().accumulate(value, target, at, replace, where);
  }
  [[nodiscard]] status try_atomic_store(const T& value, int target, std::size_t at) noexcept
    requires accumulable<T>
  {
    return self().try_accumulate(value, target, at, replace);
  }

 private:
  friend W;
  AtomicForms() noexcept = default;
  [[nodiscard]] W& self() noexcept { return *static_cast<W*>(this); }
};

}  // namespace rma

#pragma GCC visibility pop
