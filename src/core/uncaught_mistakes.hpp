// SPDX-License-Identifier: Apache-2.0
/// \file
/// The end of a process whose configuration is wrong, and whose program does not catch the Error that says so.
#pragma once

#include "rma/error.hpp"

namespace rma::detail {

/// True for errors that the user of a program makes, not the program: they are about the environment or the launcher.
constexpr bool is_mistake_of_configuration(status s) noexcept {
  return s == status::bad_setting || s == status::bad_boot || s == status::unreachable;
}

/// The exit status then, as of a command line that is wrong.
constexpr int exit_by_mistake = 2;

/// While one exists, such an Error that nobody catches ends the process with one line and `exit_by_mistake`, without
/// "terminate called" and a core dump. Every other end goes to the terminate handler that was there before. An Error
/// that is caught is caught as ever: the C++ runtime calls the handler before it unwinds anything.
class uncaught_mistakes {
 public:
  uncaught_mistakes();
  uncaught_mistakes(const uncaught_mistakes&) = delete;
  uncaught_mistakes& operator=(const uncaught_mistakes&) = delete;
  ~uncaught_mistakes();
};

}  // namespace rma::detail
