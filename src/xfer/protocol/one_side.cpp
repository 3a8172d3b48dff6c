// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layout schemes "write-gather" and "read-scatter": for contiguous memory at the target, one work request for as many
/// pieces of the origin as the adapter takes in one list.
///
///   write-gather:  origin [piece, piece, ...] --write--> target's memory
///   read-scatter:  origin [piece, piece, ...] <--read--- target's memory
///
/// They need no copy, no help of the target, and ceil(pieces / limit) work requests. Source: dissertation, section
/// 8.1.1 ("RDMA Write with Gather and RDMA Read with Scatter ... handles non-contiguity only on one side").
#include <algorithm>

#include "core/assert.hpp"
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

const fabric::capabilities& caps_for(const window_core& w, const checked_operation& o) noexcept {
  return w.ctx->network_of(o.peer).caps();
}

/// The common conditions of both schemes, which differ only in direction.
const char* refuses_lists(const placement& at, const checked_operation& o, std::size_t limit) noexcept {
  if (!o.target->is_contiguous()) return "the target's memory is not in one piece";
  if (limit < 2) return "the network takes one piece of memory in a work request";
  return at.registered ? nullptr : "the target's memory is not registered";
}

std::int64_t estimate_lists(const window_core& w, const checked_operation& o, std::size_t limit) noexcept {
  const fabric::transfer_costs& costs = w.ctx->costs_of(o.peer);
  const auto pieces = static_cast<std::int64_t>(o.origin->blocks());
  const std::int64_t requests = (pieces - 1) / static_cast<std::int64_t>(limit) + 1;
  const auto wire_ns = static_cast<std::int64_t>(static_cast<double>(o.bytes) * costs.byte_ns);
  return costs.write_ns + std::max((requests - 1) * costs.piece_ns, wire_ns) + (pieces - 1) * costs.list_entry_ns;
}

status start_lists(window_core& w, const placement& at, const checked_operation& o, request_node** request) noexcept {
  RMA_ASSERT(at.region != nullptr && o.origin != nullptr && o.target->is_contiguous());
  return run_fabric_lists(w, *at.region, o, request);
}

struct write_gather {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    if (o.args->kind != call::put) return "write-gather carries out puts";
    return refuses_lists(at, o, caps_for(w, o).gather_max);
  }
  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    return estimate_lists(w, o, caps_for(w, o).gather_max);
  }
};

struct read_scatter {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    if (o.args->kind != call::get) return "read-scatter carries out gets";
    return refuses_lists(at, o, caps_for(w, o).scatter_max);
  }
  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    return estimate_lists(w, o, caps_for(w, o).scatter_max);
  }
};

}  // namespace

const protocol write_gather_protocol{layout_scheme::write_gather, "write-gather", false, write_gather::refuses,
                                     write_gather::estimate_ns,   start_lists};
const protocol read_scatter_protocol{layout_scheme::read_scatter, "read-scatter", false, read_scatter::refuses,
                                     read_scatter::estimate_ns,   start_lists};

}  // namespace rma::detail
