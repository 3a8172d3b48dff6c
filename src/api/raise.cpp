// SPDX-License-Identifier: Apache-2.0
/// \file
/// The one line that an Error of a window call carries: call, window, rank, value, remedy.
#include <fmt/format.h>

#include <algorithm>

#include "api/wrong_epoch.hpp"
#include "core/names.hpp"
#include "rma/detail/window_ops.hpp"
#include "window/window_core.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

bool is_towards_one(call c) noexcept {
  switch (c) {
    case call::lock:
    case call::unlock:
    case call::lock_range:
    case call::unlock_range:
    case call::flush:
    case call::flush_local:
    case call::put_signal:
    case call::get_signal:
    case call::accumulate_signal: return true;
    default: return c <= call::compare_and_swap;  // an operation
  }
}

/// A call that was refused, as `raise` and `raise_layout` got it.
struct refusal {
  call what;
  status code;
  int target;
  std::uint64_t displacement;
  std::uint64_t count;   ///< number of elements, or of bytes where the call counts in them
  const Layout* layout;  ///< where its data lie at the target, else null
};

std::string number_of(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Elements of one byte are bytes.
std::string elements_of(const window_core& w, std::uint64_t count) {
  return number_of(count, w.element_bytes == 1 ? "byte" : "element");
}

/// Calls that have a unit of their own, whatever the window's element is.
bool counts_bytes(call c) noexcept {
  return c == call::lock_range || c == call::unlock_range || c == call::wait_until || c == call::test_until;
}

std::string amount_of(const window_core& w, const refusal& r) {
  if (r.layout != nullptr) return fmt::format("a layout of {}", number_of(r.layout->bytes(), "byte"));
  return counts_bytes(r.what) ? number_of(r.count, "byte") : elements_of(w, r.count);
}

/// How large the target's part is.
std::string size_at(const window_core& w, int target, bool in_elements) {
  const auto tell = [&](std::uint64_t bytes) {
    return in_elements ? elements_of(w, bytes / w.element_bytes) : number_of(bytes, "byte");
  };
  if (!w.is_far(target)) return tell(w.identity_of(target)->identity.bytes);
  const auto far = w.far_targets.find(target);
  const bool known = far != w.far_targets.end() && far->second->known;
  return known ? tell(far->second->bytes) : "less";  // beyond any part: the target was not asked
}

/// The range at an address: "64 bytes from 0x7f0000001000 on".
std::string range_of(std::uint64_t bytes, std::uint64_t address) {
  return fmt::format("{} from {:#x} on", number_of(bytes, "byte"), address);
}

/// The reason for a dynamic window, where displacements are addresses.
std::string outside_attached(const window_core& w, const refusal& r) {
  std::uint64_t first = r.displacement;
  std::uint64_t bytes = counts_bytes(r.what) ? r.count : r.count * w.element_bytes;
  if (r.layout != nullptr) {
    first += static_cast<std::uint64_t>(r.layout->lower());
    bytes = static_cast<std::uint64_t>(r.layout->upper() - r.layout->lower());
  }
  const attachment range = attached_at(w, r.target, first);
  const std::string there =
      range.bytes == 0 ? "nothing there"
                       : fmt::format("{}, of which {} are behind that place", range_of(range.bytes, range.address),
                                     range.bytes - (first - range.address));
  return fmt::format(
      "displacement {}: of the {}, rank {} has attached {}; a displacement is what its attach() has "
      "returned, plus bytes inside that range, or inside ranges that follow it without a gap",
      r.displacement, range_of(bytes, first), r.target, there);
}

/// Says what is wrong with the range that attach or detach was given.
std::string bad_attachment(const window_core& w, const refusal& r) {
  const std::uint64_t address = r.displacement;
  const std::uint64_t bytes = r.count * w.element_bytes;
  const bool attaches = r.what == call::attach;
  if (attaches && (bytes == 0 || address == 0)) return "there is no memory in it";
  for (const attachment& each : w.attachments) {
    if (address >= each.address + each.bytes || each.address >= address + std::max<std::uint64_t>(bytes, 1)) continue;
    const std::string there = range_of(each.bytes, each.address);
    return attaches ? fmt::format("the {} overlap the {}, which are attached; detach those first",
                                  range_of(bytes, address), there)
                    : fmt::format("no attached range begins at {:#x}; the {} are one, and detached as a whole", address,
                                  there);
  }
  return fmt::format("nothing is attached at {:#x}", address);
}

std::string outside(const window_core& w, const refusal& r) {
  const bool dynamic = w.kind == call::create_dynamic;
  if (r.what == call::lock_range)
    return fmt::format("{} from byte {} on; rank {} has {}", amount_of(w, r), r.displacement, r.target,
                       dynamic ? "no such address" : size_at(w, r.target, false));
  if (dynamic) return outside_attached(w, r);
  const std::string reach =
      r.layout == nullptr ? "" : fmt::format(", over bytes {} to {}", r.layout->lower(), r.layout->upper());
  if (r.displacement > static_cast<std::uint64_t>(PTRDIFF_MAX)) {
    return fmt::format("{}{} at displacement {}, which is negative; a part begins at displacement 0", amount_of(w, r),
                       reach, static_cast<std::int64_t>(r.displacement));
  }
  return fmt::format("{}{} at displacement {} (unit {}); rank {} has {}", amount_of(w, r), reach, r.displacement,
                     number_of(w.unit, "byte"), r.target, size_at(w, r.target, w.unit == w.element_bytes));
}

std::string not_locked(const window_core& w, const refusal& r) {
  if (r.what == call::unlock_all) return "lock_all() is not open";
  if (r.what != call::unlock_range)
    return fmt::format("rank {} is not locked by this rank; lock() it first, and unlock once", r.target);
  std::string held;
  for (const own_range& each : w.ranges.held) {
    if (each.target == r.target)
      held += fmt::format(", {} from byte {} on", number_of(each.entry.bytes, "byte"), each.entry.offset);
  }
  return fmt::format(
      "{} from byte {} on are not a range of rank {} that this rank has locked, or unlock({}) has ended "
      "its epoch before; locked there now: {}",
      amount_of(w, r), r.displacement, r.target, r.target, held.empty() ? "none" : held.substr(2));
}

constexpr const char* unknown_kind = "a kind of lock that is neither rma::shared nor rma::exclusive";
constexpr const char* unknown_assertion =
    "an assertion with a bit that none of rma::no_store, no_put, no_precede, no_succeed, no_check and deferrable has";

/// Calls that get a list of ranks.
bool takes_group(call c) noexcept { return c == call::post || c == call::start || c == call::neighbors; }

std::string bad_argument(const window_core& w, const refusal& r) {
  switch (r.what) {
    case call::attach:
    case call::detach: return bad_attachment(w, r);
    case call::fence_neighbors:
      if (!w.fences.has_neighbors) return "it needs neighbors(), once before";
      [[fallthrough]];
    case call::fence:
    case call::lock_all: return unknown_assertion;
    case call::lock_range:
      if (r.count == 0) return "a range of no bytes";
      return unknown_kind;
    case call::lock: return r.displacement == 0 ? unknown_kind : unknown_assertion;  // see lock_or_raise
    case call::neighbors:
      if (r.target < 0) return "a window's neighbors are given once";
      [[fallthrough]];
    case call::post:
    case call::start:
      if (r.target < 0) return unknown_assertion;
      return fmt::format("rank {} is in the list twice", r.target);
    default:
      return fmt::format("signal {} is none of the window's, which has {} (Hints::signals)", r.displacement,
                         w.hints.signals);
  }
}

/// Names the one thing that an update needs and lacks.
std::string bad_type(const window_core& w, const refusal& r) {
  const auto type = rma::name_of(w.refused_type);
  const auto op = rma::name_of(w.refused_op);
  if (r.what == call::compare_and_swap && w.refused_type > element::u64)
    return fmt::format("compare_and_swap needs an integer type, and {} is none", type);
  if (!defined_for(w.refused_op, w.refused_type)) {
    if (w.refused_op == operation::minloc || w.refused_op == operation::maxloc || is_pair(w.refused_type))
      return fmt::format(
          "operator {} of {}: pairs (rma::ValueIndex) have minloc, maxloc, replace and no_op only, and "
          "no other type has minloc and maxloc",
          op, type);
    const bool orders = w.refused_op == operation::min || w.refused_op == operation::max;
    return fmt::format("operator {} needs {}, and {} has none; use another operator, or another type", op,
                       orders ? "an order of the values" : "integers, whose bits it combines", type);
  }
  if (r.layout != nullptr)
    return fmt::format("the layout of {} has a piece that is no whole number of {}; make its blocks of whole elements",
                       number_of(r.layout->bytes(), "byte"), type);
  return fmt::format(
      "operator {} on {}: the network device updates integers of 8 bytes at most; use another "
      "Hints::accumulate",
      op, type);
}

std::string bad_size(const window_core& w, const refusal& r) {
  const bool overflows = r.layout == nullptr && r.count > static_cast<std::uint64_t>(PTRDIFF_MAX) / w.element_bytes;
  return amount_of(w, r) + (overflows ? ": that is more than memory can hold" : ": the other side has another size");
}

std::string remedy(const window_core& w, refusal r) {
  const auto& [what, code, target, displacement, count, layout] = r;
  if (what == call::wait_until || what == call::test_until) {
    if (code != status::bad_rank)
      r.target = w.team->rank;  // the owner of the part, not the rank that should write there
  }
  switch (code) {
    case status::out_of_window: return outside(w, r);
    case status::wrong_epoch: return wrong_epoch_reason(w, {what, target, displacement, count});
    case status::not_locked: return not_locked(w, r);
    case status::bad_rank:
      return fmt::format("rank {} is not in the team; its ranks are 0 to {}", target, w.size() - 1);
    case status::bad_size: return bad_size(w, r);
    case status::bad_type: return bad_type(w, r);
    case status::misaligned:
      return fmt::format(
          "displacement {} is not a multiple of the element's size; atomic operations need natural alignment",
          displacement);
    case status::window_failed:
      return w.left_by_exception ? "an exception has left the scope of an epoch of this rank; free the window"
                                 : "an epoch of this rank could not be closed at the end of its scope; free the window";
    case status::bad_argument: return bad_argument(w, r);
    case status::wrong_thread: return wrong_thread_remedy;
    case status::not_supported:
      return what == call::attach || what == call::detach ? "only windows made by create_dynamic have ranges"
                                                          : "this window cannot do it";
    case status::unreachable:
      return fmt::format("rank {} is on another node and no network fabric connects the two; run all ranks on one node",
                         target);
    case status::revoked: return "a member has revoked it, or its team; shrink() the team, and make the window anew";
    case status::job_aborted: return "the job is being ended";
    case status::window_freed:
      return fmt::format("rank {} has dropped or freed it; let all finish before one does, by a barrier", target);
    default: return "see rma::status";
  }
}

[[noreturn]] void raise_refusal(const window_view& view, refusal r, const std::source_location& where) {
  const auto& [what, code, target, displacement, count, layout] = r;
  if (is_freed(view)) {
    if (what == call::free && code <= status::peer_failed) {
      throw Error(code, "free", "the window is freed, but not all that was under way came to a good end", -1, where);
    }
    const bool unlock = code == status::not_locked;
    throw Error(unlock ? code : status::window_freed, std::string(name_of(what)),
                unlock ? "this epoch was unlocked already; unlock once"
                       : "the window was freed, moved from or never made; make it before",
                -1, where);
  }
  const window_core& w = core_of(view);
  const window_guard in(w);
  const bool of_member = code == status::bad_rank || code == status::bad_argument || code == status::unreachable;
  if (of_member && takes_group(what)) r.target = w.refused_rank;
  const std::string name = w.hints.name.empty() ? fmt::format("#{:x}", w.id & 0xffff) : quoted(w.hints.name);
  int about = target;
  std::string why;
  if (code == status::peer_failed) {
    about = w.ctx->last_failed();
    why = w.ctx->why_failed(about) + "; go on without it, or team.shrink()";
  } else if (code == status::transfer_failed) {
    about = w.ctx->last_failed();
    why = about >= 0 && about == w.dropped_by.load()
              ? fmt::format("world rank {} has dropped this window; let all finish before it does, by a barrier", about)
              : fmt::format(
                    "a transfer to or from world rank {} ended with an error, though the rank lives; "
                    "what it should have written is undefined: repeat it, unless memory of either is not mapped or "
                    "protected",
                    about);
  } else {
    why = remedy(w, r);
  }
  const std::string towards = target >= 0 && is_towards_one(what) ? fmt::format(" to rank {}", target) : std::string();
  throw Error(code, fmt::format("[rank {}] {}{} (window {})", w.ctx->rank(), name_of(what), towards, name), why, about,
              where);
}

}  // namespace

void raise(const window_view& view, call what, status code, int target, std::uint64_t displacement, std::uint64_t count,
           const std::source_location& where) {
  raise_refusal(view, {what, code, target, displacement, count, nullptr}, where);
}

void raise_layout(const window_view& view, call what, status code, int target, std::uint64_t displacement,
                  const Layout& there, const std::source_location& where) {
  raise_refusal(view, {what, code, target, displacement, 0, &there}, where);
}

void lock_or_raise(window_view& window, lock_kind kind, int target, assertion promises, std::source_location where) {
  const bool known = kind == lock_kind::shared || kind == lock_kind::exclusive;
  require(window, call::lock, lock_slow(window, kind, target, promises), target, known ? 1 : 0, 0, where);
}

void unlock_or_raise(window_view& window, int target, std::source_location where) {
  require(window, call::unlock, unlock_slow(window, target), target, 0, 0, where);
}

void flush_or_raise(window_view& window, int target, std::source_location where) {
  require(window, call::flush, flush_slow(window, target), target, 0, 0, where);
}

}  // namespace rma::detail
