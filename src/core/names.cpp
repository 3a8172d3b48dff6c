// SPDX-License-Identifier: Apache-2.0
#include "rma/error.hpp"
#include "rma/hints.hpp"
#include "rma/runtime.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "core/names.hpp"

namespace rma {

std::string_view name_of(status s) noexcept {
  switch (s) {
    case status::done: return "done";
    case status::posted: return "posted";
    case status::retry_queue_full: return "retry_queue_full";
    case status::retry_no_buffer: return "retry_no_buffer";
    case status::not_yet: return "not_yet";
    case status::out_of_window: return "out_of_window";
    case status::wrong_epoch: return "wrong_epoch";
    case status::not_locked: return "not_locked";
    case status::window_freed: return "window_freed";
    case status::bad_rank: return "bad_rank";
    case status::bad_size: return "bad_size";
    case status::bad_type: return "bad_type";
    case status::misaligned: return "misaligned";
    case status::bad_setting: return "bad_setting";
    case status::bad_argument: return "bad_argument";
    case status::not_supported: return "not_supported";
    case status::unreachable: return "unreachable";
    case status::out_of_memory: return "out_of_memory";
    case status::bad_boot: return "bad_boot";
    case status::message_too_long: return "message_too_long";
    case status::wrong_thread: return "wrong_thread";
    case status::peer_failed: return "peer_failed";
    case status::window_failed: return "window_failed";
    case status::transfer_failed: return "transfer_failed";
    case status::revoked: return "revoked";
    case status::job_aborted: return "job_aborted";
    case status::fabric_lost: return "fabric_lost";
  }
  return "unknown status";
}

std::string_view name_of(thread_level level) noexcept {
  switch (level) {
    case thread_level::single: return "single";
    case thread_level::funneled: return "funneled";
    case thread_level::serialized: return "serialized";
    case thread_level::multiple: return "multiple";
  }
  return "?";
}

std::string_view version() noexcept { return RMA_VERSION; }

namespace detail {

std::string_view name_of(accumulate_mode mode) noexcept {
  switch (mode) {
    case accumulate_mode::automatic: return "auto";
    case accumulate_mode::element: return "element";
    case accumulate_mode::striped: return "striped";
    case accumulate_mode::handler: return "handler";
    case accumulate_mode::direct: return "direct";
    case accumulate_mode::lock_get_modify_put: return "lock-get-modify-put";
  }
  return "unknown";
}

std::string_view name_of(schedule_order order) noexcept {
  switch (order) {
    case schedule_order::automatic: return "auto";
    case schedule_order::in_order: return "in-order";
    case schedule_order::interleave: return "interleave";
    case schedule_order::gets_first: return "gets-first";
    case schedule_order::gets_first_interleave: return "gets-first+interleave";
  }
  return "?";
}

std::string_view name_of(fence_kind kind) noexcept {
  switch (kind) {
    case fence_kind::automatic: return "auto";
    case fence_kind::placed: return "placed";
    case fence_kind::def: return "def";
    case fence_kind::imm_naive: return "imm-naive";
    case fence_kind::imm_opt: return "imm-opt";
    case fence_kind::imm_ri: return "imm-ri";
  }
  return "unknown";
}

std::string_view name_of(lock_protocol lock) noexcept {
  switch (lock) {
    case lock_protocol::automatic: return "auto";
    case lock_protocol::two_sided: return "two-sided";
    case lock_protocol::network: return "network";
    case lock_protocol::cpu: return "cpu";
    case lock_protocol::hybrid: return "hybrid";
  }
  return "unknown";
}

std::string_view name_of(lock_scheme scheme) noexcept {
  switch (scheme) {
    case lock_scheme::automatic: return "auto";
    case lock_scheme::word: return "word";
    case lock_scheme::agent: return "agent";
    case lock_scheme::fompi: return "fompi";
  }
  return "unknown";
}

std::string_view name_of(call what) noexcept {
  constexpr std::string_view names[] = {"put",
                                        "get",
                                        "accumulate",
                                        "get_accumulate",
                                        "fetch_and_op",
                                        "compare_and_swap",
                                        "fence",
                                        "post",
                                        "start",
                                        "complete",
                                        "wait",
                                        "test",
                                        "lock",
                                        "unlock",
                                        "lock_all",
                                        "unlock_all",
                                        "flush",
                                        "flush_all",
                                        "flush_local",
                                        "flush_local_all",
                                        "sync",
                                        "wait_signal",
                                        "test_signal",
                                        "wait_until",
                                        "test_until",
                                        "free",
                                        "attach",
                                        "detach",
                                        "allocate",
                                        "create",
                                        "allocate_shared",
                                        "create_dynamic",
                                        "pointer_to",
                                        "size",
                                        "lock_range",
                                        "unlock_range",
                                        "neighbors",
                                        "fence_neighbors",
                                        "put_signal",
                                        "get_signal",
                                        "accumulate_signal",
                                        "revoke",
                                        "set_signal"};
  static_assert(std::size(names) == static_cast<std::size_t>(call::set_signal) + 1);
  return names[static_cast<std::size_t>(what)];
}

}  // namespace detail
}  // namespace rma

namespace rma::detail {

std::string printable(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

std::string quoted(std::string_view name) { return "'" + printable(name) + "'"; }

}  // namespace rma::detail
