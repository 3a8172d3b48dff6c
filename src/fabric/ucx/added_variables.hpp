// SPDX-License-Identifier: Apache-2.0
/// \file
/// Adds environment variables for a library that reads them while it is loaded, without a change of the program's own
/// environment.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rma::ucx {

/// A variable, and the names of those that make the same choice: the setting of a user takes precedence.
struct variable {
  const char* assignment;  ///< NAME=VALUE, of static storage
  std::array<std::string_view, 2> names;
};

/// Makes `environ` point to a longer list until the end of this object. The program's own list is not modified, and the
/// longer one, some pages, is never freed: other threads may call `getenv` at any time.
class added_variables {
 public:
  /// Adds the variables of which the environment has neither name.
  explicit added_variables(std::span<const variable> wanted);
  ~added_variables();
  added_variables(const added_variables&) = delete;
  added_variables& operator=(const added_variables&) = delete;

 private:
  bool extend(std::span<const variable> wanted);

  char** before_ = nullptr;
  char** longer_ = nullptr;
  std::vector<std::string> names_;  ///< names of the added variables
};

}  // namespace rma::ucx
