// SPDX-License-Identifier: Apache-2.0
/// \file
/// Environment variables for a library that reads them while it is loaded, without a change of the program's
/// environment.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rma::ucx {

/// A variable, and one that decides the same: a user who has set either of them wants it so.
struct variable {
  const char* assignment;  ///< NAME=VALUE, of static storage
  std::array<std::string_view, 2> names;
};

/// `environ` points to a longer list until the end of this object. The program's own list is not written to, and the
/// longer one, some pages, is never given back: other threads may call `getenv` at any time.
class added_variables {
 public:
  /// Adds those of which the environment has neither name.
  explicit added_variables(std::span<const variable> wanted);
  ~added_variables();
  added_variables(const added_variables&) = delete;
  added_variables& operator=(const added_variables&) = delete;

 private:
  bool extend(std::span<const variable> wanted);

  char** before_ = nullptr;
  char** longer_ = nullptr;
  std::vector<std::string> names_;  ///< of those that were added
};

}  // namespace rma::ucx
