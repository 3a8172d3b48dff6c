// SPDX-License-Identifier: Apache-2.0
#include "boot/client_single.hpp"

#include <cstdio>

#include "boot/protocol.hpp"

namespace rma::boot {

status single_client::put(std::string_view key, std::string_view value) {
  if (key.size() > key_bytes_max || value.size() > value_bytes_max) return status::bad_size;
  values_.insert_or_assign(std::string(key), std::string(value));
  return status::done;
}

status single_client::get(std::string_view key, std::string& value) {
  const auto found = values_.find(key);
  if (found == values_.end()) return status::bad_argument;  // no other rank could put it: a wait would never end
  value = found->second;
  return status::done;
}

void single_client::abort(int, std::string_view message) noexcept {
  std::fprintf(stderr, "rma: rank 0 aborted the job: %.*s\n", static_cast<int>(message.size()), message.data());
}

}  // namespace rma::boot
