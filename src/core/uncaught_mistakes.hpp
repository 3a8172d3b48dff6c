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

/// The exit status of a process that ends so, which is that of a wrong command line.
constexpr int exit_by_mistake = 2;

/// While one exists, such an Error that the program does not catch ends the process with one line and
/// `exit_by_mistake`, without "terminate called" and a core dump. Every other end goes to the terminate handler that
/// was there before. Errors that are caught are not affected: the C++ runtime calls the handler only if there is no
/// catch.
class uncaught_mistakes {
 public:
  uncaught_mistakes();
  uncaught_mistakes(const uncaught_mistakes&) = delete;
  uncaught_mistakes& operator=(const uncaught_mistakes&) = delete;
  ~uncaught_mistakes();
};

}  // namespace rma::detail
