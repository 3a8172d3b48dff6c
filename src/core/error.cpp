// SPDX-License-Identifier: Apache-2.0
#include "rma/error.hpp"

#include <string>

namespace rma {
namespace {

std::string with_place(const std::string& message, const std::source_location& where) {
  if (where.line() == 0) return message;
  return message + " (" + where.file_name() + ":" + std::to_string(where.line()) + ")";
}

}  // namespace

Error::Error(status code, const std::string& message, int rank, std::source_location where)
    : std::runtime_error(with_place(message, where)), where_(where), rank_(rank), code_(code) {}

}  // namespace rma
