// SPDX-License-Identifier: Apache-2.0
#include "core/uncaught_mistakes.hpp"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>

namespace rma::detail {
namespace {

/// Several threads may construct a Runtime at once.
struct handler_in_use {
  std::mutex lock;
  int users = 0;
  std::terminate_handler before = nullptr;
};

// tidy: allow(banned-word) a process has one terminate handler
constinit handler_in_use in_use;

[[noreturn]] void end_process() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const Error& e) {
    if (is_mistake_of_configuration(e.code())) {
      const std::string line = "rma: " + std::string(e.what()) + "\n";
      (void)!::write(STDERR_FILENO, line.data(), line.size());
      ::_exit(exit_by_mistake);
    }
  } catch (...) {  // it is not ours
  }
  if (in_use.before != nullptr) in_use.before();
  std::abort();
}

}  // namespace

uncaught_mistakes::uncaught_mistakes() {
  const std::lock_guard guard(in_use.lock);
  if (in_use.users++ == 0) in_use.before = std::set_terminate(end_process);
}

// A handler that the program has set meanwhile stays.
uncaught_mistakes::~uncaught_mistakes() {
  const std::lock_guard guard(in_use.lock);
  if (--in_use.users == 0 && std::get_terminate() == end_process) std::set_terminate(in_use.before);
}

}  // namespace rma::detail
