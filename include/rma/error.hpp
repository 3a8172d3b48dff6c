// SPDX-License-Identifier: Apache-2.0
/// \file
/// Errors: status codes, and the exception that carries them.
///
/// Most calls have two forms: `put(...)` throws `rma::Error`, `try_put(...)` returns a `status` and never throws. They
/// do the same, and wait equally long. Where `try_` would suggest an attempt that does not wait, the form has another
/// name: `lock_nothrow`, `wait_nothrow`, `recv_nothrow`. Calls without such a form throw; those whose names end in
/// `_as` return a status. Inside the library there are statuses only; the text of an error is composed where the
/// exception is thrown, so that a data path never pays for it.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace rma {

/// The outcome of a call in one byte, grouped by what the caller should do next.
///
///   >= 0    no error: done and posted are success (`ok`), not_yet is a test's answer
///   -1..-31 the caller's mistake: the call was refused and changed nothing (but see `assertion` for fences). When its
///           Error leaves the scope of an Epoch, the epoch ends and the window stays usable (rma/epoch_scope.hpp)
///   <= -32  something broke: a peer, a window, or the whole runtime
enum class [[nodiscard]] status : std::int8_t {
  done = 0,    ///< finished now
  posted = 1,  ///< started; completes at the next flush, fence, unlock, complete or request wait

  retry_queue_full = 2,  ///< internal: nothing happened, make progress and call again
  retry_no_buffer = 3,   ///< internal: nothing happened, make progress and call again
  not_yet = 4,           ///< a test found the operation unfinished

  out_of_window = -1,      ///< target range lies outside the target's part of the window
  wrong_epoch = -2,        ///< no epoch is open that allows this call, or one is open that forbids it
  not_locked = -3,         ///< unlock of a target that is not locked by this rank
  window_freed = -4,       ///< the window was freed or moved from
  bad_rank = -5,           ///< rank outside the team
  bad_size = -6,           ///< negative, overflowing or unequal sizes
  bad_type = -7,           ///< operator and element type do not fit, or types differ
  misaligned = -8,         ///< an atomic operation needs its natural alignment
  bad_setting = -9,        ///< unknown setting, or invalid value of a setting
  bad_argument = -10,      ///< any other invalid argument
  not_supported = -11,     ///< this fabric or window does not support the call
  unreachable = -12,       ///< no fabric connects the two ranks
  out_of_memory = -13,     ///< the segment, the machine or a limit is exhausted
  bad_boot = -14,          ///< the launcher's parameters are missing, contradictory or refused
  message_too_long = -15,  ///< a message is longer than the receive that was posted for it
  wrong_thread = -16,      ///< thread level single or funneled, and this is not the thread that made the Runtime

  peer_failed = -32,    ///< a rank that this call depends on is dead
  window_failed = -33,  ///< an epoch's scope was left by an exception, or could not be closed: free the window
  /// A transfer to or from a living rank ended with an error, which this call reports (for example because that rank
  /// has dropped the window). The memory that the transfer writes is undefined until it is written again; no other
  /// memory is affected, and the call has done its other work: an epoch that it closes is closed.
  transfer_failed = -34,
  revoked = -35,      ///< a member has revoked the team or the window that this call would wait on: shrink() the team
  job_aborted = -63,  ///< the launcher or another rank ended the job
  fabric_lost = -64,  ///< the fabric is unusable; the runtime can only be destroyed
};

/// True for `done` and `posted`.
constexpr bool ok(status s) noexcept { return s == status::done || s == status::posted; }

/// The stable name of a status, as it appears in messages ("out_of_window").
std::string_view name_of(status s) noexcept;

namespace detail {

/// Tells the destructor of an Epoch that the Error of a refused call leaves its scope: the C++ runtime does not say
/// which exception is in flight. A copy of an Error is not the exception in flight, so that a copied mark is empty.
class refusal_mark {
 public:
  explicit refusal_mark(status code);
  refusal_mark(const refusal_mark&) noexcept {}
  refusal_mark& operator=(const refusal_mark&) noexcept { return *this; }

 private:
  std::shared_ptr<const void> exists_;
};

}  // namespace detail

/// Public calls throw an Error. `code()` is stable; `what()` is one line that names rank, call, window, the place of
/// the call in the program, the status, what is wrong and what to do:
///
///   [rank 0] put to rank 1 (window 'halo') at halo.cpp:42: wrong_epoch: no epoch is open to rank 1; ...
///
/// Where no call on a window, team or request is concerned, as at start-up, the place ends the line, in brackets.
class Error : public std::runtime_error {
 public:
  /// `where`: the place of the public call; without a line if it is not known.
  Error(status code, const std::string& message, int rank = -1, std::source_location where = {});

  /// Composes the text "HEAD at FILE:LINE: CODE: REASON".
  Error(status code, const std::string& head, const std::string& reason, int rank, std::source_location where);

  /// The stable code.
  [[nodiscard]] status code() const noexcept { return code_; }
  /// The rank that the error is about: for `peer_failed` the dead rank's number in the world, for `transfer_failed`
  /// that of the other side; else the target's number in the window's team; -1 if there is none.
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// The place of the public call. Line 0 if it is not known: for the constructors of Runtime, and for Layouts.
  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }

 private:
  std::source_location where_;
  int rank_;
  status code_;
  detail::refusal_mark mark_;
};

}  // namespace rma

#pragma GCC visibility pop
