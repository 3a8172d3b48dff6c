// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layout scheme "generic": the origin packs, the target's handler unpacks.
///
///   origin: pack a chunk into a message ----> target: unpack it (a get: pack, answer, and the origin unpacks)
///           pack the next one                         while it is on its way: chunks are pipelined
///
/// Two copies, and as many messages as the data fill, however many blocks there are. It wins where blocks are small.
/// Source: dissertation, section 8.1 (the baseline that is compared with).
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

struct generic {
  static const char* refuses(const window_core&, const placement&, const checked_operation&) noexcept {
    return nullptr;
  }

  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    return message_estimate_ns(w, o);
  }

  static status start(window_core& w, const placement&, const checked_operation& o, request_node** request) noexcept {
    return run_handler(w, o, request);
  }
};

}  // namespace

const protocol generic_protocol{layout_scheme::generic, "generic",     true, generic::refuses,
                                generic::estimate_ns,   generic::start};

}  // namespace rma::detail
