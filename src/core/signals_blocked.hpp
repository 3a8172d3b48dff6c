// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace rma::detail {

/// Blocks all signals of the calling thread during its lifetime. A thread that is started meanwhile inherits the mask:
/// signals are delivered to threads of the program, never to those of the library.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace rma::detail
