// SPDX-License-Identifier: Apache-2.0
#include "rma/error.hpp"

#include <string>

namespace rma {
namespace {

std::string with_place(const std::string& message, const std::source_location& where) {
  if (where.line() == 0) return message;
  return message + " (" + where.file_name() + ":" + std::to_string(where.line()) + ")";
}

std::string placed(status code, const std::string& head, const std::string& reason, const std::source_location& where) {
  std::string text = head;
  if (where.line() != 0) text += " at " + std::string(where.file_name()) + ":" + std::to_string(where.line());
  text += ": " + std::string(name_of(code));
  return reason.empty() ? text : text + ": " + reason;
}

}  // namespace

Error::Error(status code, const std::string& message, int rank, std::source_location where)
    : std::runtime_error(with_place(message, where)), where_(where), rank_(rank), code_(code) {}

Error::Error(status code, const std::string& head, const std::string& reason, int rank, std::source_location where)
    : std::runtime_error(placed(code, head, reason, where)), where_(where), rank_(rank), code_(code) {}

}  // namespace rma
