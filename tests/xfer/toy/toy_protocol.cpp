// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layout scheme "toy", for puts: each piece is an operation of its own.
#include "datatype/copy.hpp"
#include "tests/xfer/toy/toy_starts.hpp"
#include "xfer/protocol/rows.hpp"

namespace rma::detail {
namespace {

struct toy {
  static const char* refuses(const window_core&, const placement& at, const checked_operation& o) noexcept {
    if (o.args->kind != call::put) return "toy carries out puts";
    return at.registered ? nullptr : "the target's memory is not registered";
  }

  /// Less than anything else's.
  static std::int64_t estimate_ns(const window_core&, const checked_operation&) noexcept { return 0; }

  static status start(window_core& w, const placement& at, const checked_operation& o, request_node**) noexcept {
    ++toy_starts();
    status worst = status::posted;
    for_each_pair(*o.target, *o.origin, [&](std::ptrdiff_t there, std::ptrdiff_t here, std::size_t bytes) {
      operation_args args = *o.args;
      args.origin = static_cast<const std::byte*>(o.args->origin) + here;
      checked_operation piece = o;
      piece.args = &args;
      piece.contiguous = true;
      piece.bytes = bytes;
      piece.offset = o.offset + static_cast<std::uint64_t>(there);
      piece.record = nullptr;
      if (const status s = run_fabric(w, *at.region, piece, nullptr); !ok(s)) worst = s;
    });
    return worst;
  }
};

}  // namespace

const protocol toy_protocol{layout_scheme{100}, "toy", false, toy::refuses, toy::estimate_ns, toy::start};

}  // namespace rma::detail
