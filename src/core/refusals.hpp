// SPDX-License-Identifier: Apache-2.0
/// \file
/// Detects whether the exception that leaves a scope is the Error of a refused call.
#pragma once

#include <memory>

namespace rma {

/// The C++ runtime's exception state of a thread (Itanium C++ ABI, 2.2.2).
struct exceptions_now {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

/// The last Error of a refused call of this thread, as long as it exists, and the exceptions beside it.
struct newest_refusal {
  std::weak_ptr<const void> error;
  exceptions_now thrown_at;
};

/// The calling thread's state. Fibers that share a thread exchange it at each switch.
newest_refusal& newest_refusal_of_thread() noexcept;

/// For destructors during unwinding. A refusal that was caught and stored as a std::exception_ptr is mistaken for the
/// exception in flight if another one is thrown from the same place.
bool is_left_by_refusal() noexcept;

}  // namespace rma
