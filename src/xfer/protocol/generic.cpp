// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layout scheme "generic": the origin packs, the target's handler unpacks.
///
///   origin: pack a chunk into a message ----> target: unpack it (a get: pack, answer, and the origin unpacks)
///           pack the next one                         while it is on its way: chunks are pipelined
///
/// It makes two copies, and as many messages as the data fill, independent of the number of blocks. It is fastest for
/// small blocks. Source: dissertation, section 8.1 (the baseline of its comparisons).
#include <algorithm>

#include "xfer/protocol/protocol.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

struct generic {
  static const char* refuses(const window_core&, const placement&, const checked_operation&) noexcept {
    return nullptr;
  }

  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    const fabric::transfer_costs& costs = w.ctx->costs_of(o.peer);
    // The first chunk is copied before it is sent; after it the slower of copy and transfer counts.
    const std::size_t message_max = w.ctx->network_of(o.peer).caps().message_bytes_max;
    const std::uint64_t first = std::min<std::uint64_t>(o.bytes, operation_message_max_of(message_max));
    const double later_byte_ns = std::max(costs.byte_ns, costs.message_byte_ns - costs.byte_ns);
    const double data_ns =
        static_cast<double>(first) * costs.message_byte_ns + static_cast<double>(o.bytes - first) * later_byte_ns;
    return costs.message_ns + static_cast<std::int64_t>(data_ns);
  }

  static status start(window_core& w, const placement&, const checked_operation& o, request_node** request) noexcept {
    return run_handler(w, o, request);
  }
};

}  // namespace

const protocol generic_protocol{layout_scheme::generic, "generic",     true, generic::refuses,
                                generic::estimate_ns,   generic::start};

}  // namespace rma::detail
