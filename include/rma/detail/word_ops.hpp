// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library functions behind rma/words.hpp, and those waits of rma/signals.hpp that take a predicate.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>

#include "rma/detail/view.hpp"
#include "rma/detail/window_ops.hpp"

#pragma GCC visibility push(default)

namespace rma::detail {

/// A test of an element at a given address.
struct element_test {
  void* self;
  bool (*look)(void* self, const std::byte* address) noexcept;
  bool operator()(const std::byte* address) const noexcept { return look(self, address); }
};

/// A user's predicate as an element_test. An exception counts as true, and is rethrown with the result.
template <class E, class Ready>
class watch {
 public:
  explicit watch(Ready& ready) noexcept : ready_(ready) {}
  [[nodiscard]] element_test test() noexcept { return {this, &look}; }
  [[nodiscard]] E result() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
    return value_;
  }

 private:
  static bool look(void* self, const std::byte* address) noexcept {
    auto& mine = *static_cast<watch*>(self);
    auto& element = *reinterpret_cast<E*>(const_cast<std::byte*>(address));  // atomic_ref has no const form
    mine.value_ = std::atomic_ref<E>(element).load(std::memory_order_acquire);
    try {
      return static_cast<bool>(mine.ready_(mine.value_));
    } catch (...) {
      mine.thrown_ = std::current_exception();
      return true;
    }
  }

  std::remove_reference_t<Ready>& ready_;
  E value_{};
  std::exception_ptr thrown_{};
};

status wait_until(window_view& window, std::uint64_t at, std::size_t bytes, int from,
                  const element_test& ready) noexcept;
status test_until(window_view& window, std::uint64_t at, std::size_t bytes, const element_test& ready) noexcept;
/// `ready` looks at the counter of `signal`.
status wait_signal_until(window_view& window, unsigned signal, int from, const element_test& ready) noexcept;

}  // namespace rma::detail

#pragma GCC visibility pop
