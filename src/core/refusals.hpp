// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether the exception that leaves a scope is the Error of a call that was only refused.
#pragma once

#include <memory>

namespace rma {

/// The C++ runtime keeps this for a thread (Itanium C++ ABI, 2.2.2).
struct exceptions_now {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

/// The last Error of a refused call that this thread has made, as long as it exists, and the exceptions beside it.
struct newest_refusal {
  std::weak_ptr<const void> error;
  exceptions_now thrown_at;
};

/// The calling thread's. Fibers that share a thread exchange it when they take turns.
newest_refusal& newest_refusal_of_thread() noexcept;

/// For destructors that unwinding calls. A refusal that was caught and stored as a std::exception_ptr is taken for the
/// exception on its way if another one is thrown from the same place.
bool is_left_by_refusal() noexcept;

}  // namespace rma
