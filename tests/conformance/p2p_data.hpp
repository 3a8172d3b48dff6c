// SPDX-License-Identifier: Apache-2.0
/// \file
/// Contents of messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace conformance {

inline std::vector<std::uint8_t> numbered(std::size_t bytes, std::uint64_t salt) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + salt * 13);
  return data;
}

}  // namespace conformance
