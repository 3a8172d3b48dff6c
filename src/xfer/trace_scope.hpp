// SPDX-License-Identifier: Apache-2.0
/// \file
/// One public call in the trace (RMA_TRACE) and in virtual time: from the making of the scope to its end.
#pragma once

#include "xfer/protocols.hpp"
#include "xfer/window_core.hpp"

namespace rma::detail {

/// Costs one test where nothing is traced and time is real.
class trace_scope {
 public:
  /// A call of an epoch; its protocol follows from the window.
  trace_scope(const window_core& w, call what, int target = -1) noexcept : w_(w), what_(what), target_(target) {
    if (w.watched) [[unlikely]]
      begin();
  }
  /// An operation; `o` says at the end what was chosen.
  trace_scope(const window_core& w, const operation_args& a, const checked_operation& o) noexcept
      : trace_scope(w, a.kind, a.target) {
    operation_ = &o;
  }
  trace_scope(const trace_scope&) = delete;
  trace_scope& operator=(const trace_scope&) = delete;
  ~trace_scope() {
    if (w_.watched) [[unlikely]]
      end();
  }

 private:
  void begin() noexcept;
  void end() noexcept;

  const window_core& w_;
  const checked_operation* operation_ = nullptr;
  call what_;
  int target_;
  bool under_way_ = false;  ///< something, when the call began
  std::int64_t begin_ns_ = 0;
};

}  // namespace rma::detail
