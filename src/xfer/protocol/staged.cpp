// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "staged": a large copy between private memory of two processes, in two steps through shared memory.
///
///   put   origin: copies a piece into a slot, "take it" ----> target: copies it from there, acknowledges
///   get   origin: "bring a piece" ----> target: copies it into a slot, acknowledges
///         origin: copies it from there <----
///
/// Two processors copy at the speed of memory at the same time, instead of one copy by the kernel, which has to find
/// each page first. The slots belong to the origin. The target must be certain to handle the messages, and the origin
/// waits until it has.
#include <algorithm>
#include <array>

#include "core/assert.hpp"
#include "datatype/string_copy.hpp"
#include "rma/detail/copy.hpp"
#include "xfer/complete.hpp"
#include "xfer/copy_trial.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/protocols.hpp"
#include "xfer/shared_copy.hpp"
#include "xfer/staging.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

/// One put or get through the slots.
class passage {
 public:
  passage(window_core& w, const checked_operation& o, staging& stage) noexcept : w_(w), o_(o), stage_(stage) {}

  /// Requests pieces as far as there are slots. False if the target is not certain to serve the next one.
  bool request() noexcept {
    for (; asked_bytes_ < o_.bytes && last_ - first_ < pieces_.size(); ++last_) {
      const std::uint64_t bytes = bytes_of(asked_bytes_);
      piece& next = pieces_[last_ % pieces_.size()];
      next.slot = stage_.next_slot(bytes);
      if (is_put()) copy_to_reader(stage_.at(next.slot), buffer_of(o_) + asked_bytes_, bytes);
      const share_kind kind = is_put() ? share_kind::staged_put : share_kind::staged_get;
      next.copy = ask_for_copy(w_, o_, {w_.id, o_.offset + asked_bytes_, next.slot, bytes, kind});
      if (next.copy == nullptr) return false;
      asked_bytes_ += bytes;
    }
    return true;
  }
  /// Waits for the oldest piece.
  status take() noexcept {
    RMA_ASSERT(waits() && last_ - first_ <= pieces_.size());
    const piece& oldest = pieces_[first_ % pieces_.size()];
    RMA_ASSERT(oldest.copy != nullptr);
    const status s = wait_for_copy(w_, o_, *oldest.copy);
    if (!ok(s) && s != operation_record::refused) return s;
    ++first_;
    refused_ = refused_ || s == operation_record::refused;
    if (refused_) return status::out_of_window;
    const std::uint64_t bytes = bytes_of(done_bytes_);
    if (!is_put()) copy_bytes(buffer_of(o_) + done_bytes_, stage_.at(oldest.slot), bytes);
    done_bytes_ += bytes;
    return status::done;
  }
  [[nodiscard]] bool waits() const noexcept { return first_ != last_; }
  [[nodiscard]] std::uint64_t done_bytes() const noexcept { return done_bytes_; }

 private:
  [[nodiscard]] bool is_put() const noexcept { return o_.args->kind == call::put; }
  [[nodiscard]] std::uint64_t bytes_of(std::uint64_t from) const noexcept {
    return std::min<std::uint64_t>(o_.bytes - from, stage_slot_bytes);
  }

  window_core& w_;
  const checked_operation& o_;
  staging& stage_;
  struct piece {
    std::size_t slot = 0;
    operation_record* copy = nullptr;
  };
  std::array<piece, stage_slots_min> pieces_{};
  std::size_t first_ = 0, last_ = 0;  ///< number of complete, and of requested pieces
  std::uint64_t asked_bytes_ = 0, done_bytes_ = 0;
  bool refused_ = false;
};

}  // namespace

status run_staged(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  copy_trial& trial) noexcept {
  staging stage(*w.team->rt);
  if (!stage) return status::not_supported;
  passage pieces(w, o, stage);
  bool answers = true;
  status s = status::done;
  const auto is_hopeless = [&s]() noexcept { return s == status::peer_failed || s == status::job_aborted; };
  while (!is_hopeless() && (pieces.done_bytes() < o.bytes || pieces.waits())) {
    if (answers && s == status::done) answers = pieces.request();
    if (!pieces.waits()) break;
    if (const status taken = pieces.take(); !ok(taken)) s = taken;
  }
  if (stage.was_fresh()) trial.is_first_use();
  if (is_hopeless() || pieces.done_bytes() == o.bytes) return s;
  if (pieces.done_bytes() == 0 && s == status::done) return status::not_supported;
  return copy_here(w, region, o, pieces.done_bytes(), o.bytes - pieces.done_bytes());
}

namespace {

struct staged_row {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    if (const char* const reason = only_near(w, at, o); reason != nullptr) return reason;
    if (o.trial == nullptr) return "not contiguous, or the processor does not copy";
    return o.bytes <= one_message_max ? "too little to share" : nullptr;
  }
  static std::int64_t estimate_ns(const window_core&, const checked_operation& o) noexcept {
    return o.trial->estimate_ns(copy_way::staged);
  }
  /// Puts of one origin to one location take effect in order, also by different protocols.
  static status start(window_core& w, const placement& at, const checked_operation& o, request_node**) noexcept {
    RMA_ASSERT(o.trial != nullptr && o.far == nullptr && !at.mapped);
    if (const status s = complete_promised(w, o.args->target); s != status::done) return s;
    return run_staged(w, *at.region, o, *o.trial);
  }
  static const char* why(const window_core&, const placement&, const checked_operation& o) noexcept {
    return o.trial->way() == copy_way::staged ? o.trial->why() : "nothing else can, at this size";
  }
};

}  // namespace

const protocol staged_protocol{layout_scheme::automatic, "staged",          true,           staged_row::refuses,
                               staged_row::estimate_ns,  staged_row::start, staged_row::why};

}  // namespace rma::detail
