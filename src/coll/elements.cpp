// SPDX-License-Identifier: Apache-2.0
#include "coll/elements.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "xfer/kernels.hpp"

namespace rma::detail::coll {
void combine_elements(const collective_operands& c, void* into, const void* from, std::size_t bytes,
                      bool from_is_left) noexcept {
  const std::size_t unit = element_bytes_of(c);
  if (c.user) return c.user.apply(into, from, bytes / unit, from_is_left);
  const apply_kernel kernel = kernels_for_this_cpu().bulk[index_of(c.op)][index_of(c.type)];
  if (!from_is_left || (commutes(c) && !depends_on_order(c))) return kernel(into, from, bytes / unit);
  if (c.op == operation::replace) return;  // the last operand remains; for no_op the first one
  if (c.op == operation::no_op) {
    std::memcpy(into, from, bytes);
    return;
  }
  std::array<std::byte, 4096> part;
  for (std::size_t done = 0; done < bytes; done += part.size()) {
    const std::size_t now = std::min(part.size(), bytes - done);
    std::memcpy(part.data(), static_cast<const std::byte*>(from) + done, now);
    kernel(part.data(), static_cast<const std::byte*>(into) + done, now / unit);
    std::memcpy(static_cast<std::byte*>(into) + done, part.data(), now);
  }
}

}  // namespace rma::detail::coll
