// SPDX-License-Identifier: Apache-2.0
/// \file
/// Windows: memory that the ranks of a team put into, get from and update atomically.
///
/// `Window<T>` counts in elements of T. `Window<std::byte>` is the untyped window: byte displacements, element
/// type and operator chosen at run time, any layout on either side.
///
/// Epochs: operations are allowed between two fences, between start and complete, or while a lock is held.
/// An operation is over, at origin and target, after the call that closes or flushes its epoch.
///
/// Headings that hold for every operation below, unless it says otherwise:
///
/// Shape      one-sided: only the origin calls
/// Completes  value forms (`T get`, `fetch_and_op`, `compare_and_swap`): when they return. Span and layout forms:
///            at the next flush, unlock, complete or fence; r... forms (rma/request_forms.hpp) also when their Request
///            is complete
/// Memory     no order among operations of an epoch, but accumulates from one origin to one location keep their
///            order. flush, unlock, complete and fence order everything before them before everything after
/// Units      displacements count `displacement_unit` (default: elements; in dynamic windows bytes) from the start of
///            the target's part
/// Target     a rank of the window's team. rma::no_rank (rma/ranks.hpp): nothing happens, whatever the epoch; a fetched
///            value is T{}, and a try_ form leaves it as it was
/// Errors     out_of_window, wrong_epoch, bad_rank, bad_size, bad_type, misaligned, bad_argument, unreachable,
///            window_freed, window_failed, wrong_thread; peer_failed and transfer_failed, by the operation or by the
///            call that completes it. The `try_` form (of lock, wait and recv, which may wait for long, the `_nothrow`
///            form) returns them, the other throws rma::Error; that is all that they differ in. What never waits are
///            `test`, `test_signal`, `test_until`, and the requests of rma/synchronization.hpp
/// Misuse     an operation on mapped memory leaves no trace behind: that a fence epoch was used, so that lock, start or
///            post must not end it and no_precede is not true, is told between nodes, and on one node with RMA_CHECK=1,
///            which a debug build of the library has unless it is told not to (no call is inlined then)
/// Threads    for one thread at a time. At thread_level::multiple for any number at once, which share its epochs: one
///            may lock a target, another put there and a third flush; a collective call is for one of them
/// Cost       mapped memory: a store, a load or a locked instruction, no allocation (perf/latency.cpp)
/// Source     MPI-4.1 chapter 12; docs/architecture.md "Life of one put"
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rma/aggregate.hpp"
#include "rma/atomic_forms.hpp"
#include "rma/detail/copy.hpp"
#include "rma/detail/window_ops.hpp"
#include "rma/epoch.hpp"
#include "rma/epoch_scope.hpp"
#include "rma/hints.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"
#include "rma/ranks.hpp"
#include "rma/request.hpp"
#include "rma/request_forms.hpp"
#include "rma/run_time_types.hpp"
#include "rma/signals.hpp"
#include "rma/synchronization.hpp"
#include "rma/team.hpp"
#include "rma/window_facts.hpp"
#include "rma/words.hpp"

#pragma GCC visibility push(default)

namespace rma {

template <class T>
class Aggregator;

/// A window whose elements are T. Move-only; see the top of this file for what holds for all operations.
template <class T>
class Window : public window_facts,
               public Synchronization<Window<T>>,
               public AtomicForms<Window<T>, T>,
               public RequestForms<Window<T>, T>,
               public Signals<Window<T>, T>,
               public Words<Window<T>, T>,
               public RunTimeTypes<Window<T>> {
  friend class Synchronization<Window<T>>;
  friend class AtomicForms<Window<T>, T>;
  friend class RequestForms<Window<T>, T>;
  friend class Signals<Window<T>, T>;
  friend class Words<Window<T>, T>;
  friend class RunTimeTypes<Window<T>>;
  friend class Aggregator<T>;
  static_assert(std::is_trivially_copyable_v<T>, "rma::Window needs a trivially copyable T: bytes travel, not objects");
  using source = std::source_location;

 public:
  using value_type = T;  ///< the element

  // ---- life -----------------------------------------------------------------------------------------------

  /// Memory of the library: `count` elements here (each rank may choose its own), zeroed, mapped by the node's
  /// ranks, registered once for the network.
  /// Shape      collective over the team
  /// Errors     throws Error: out_of_memory with what was asked and what there is, on every rank alike. The `try_`
  ///            forms of this and the next three return the status, and assign to `made` if that is done
  /// Cost       O(1) memory per rank beyond what is used
  [[nodiscard]] static Window allocate(const Team& team, std::size_t count, const Hints& hints = {},
                                       source where = source::current()) {
    return make(team, plan(detail::call::allocate, nullptr, count, where), hints);
  }
  [[nodiscard]] static status try_allocate(const Team& team, std::size_t count, Window& made,
                                           const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::allocate, nullptr, count), made, hints);
  }
  /// The user's memory, which must live until `free`. Slower between processes than `allocate` unless promoted.
  /// Memory that cannot be written may be given, for others to get from: updates of it end with transfer_failed at
  /// their origin (out of the same process they are stores, and fault). What it allows is looked at once, here: who
  /// protects or unmaps it while the window lives is as if others' stores were the program's own.
  /// Shape      collective over the team
  [[nodiscard]] static Window create(const Team& team, std::span<T> memory, const Hints& hints = {},
                                     source where = source::current()) {
    return make(team, plan(detail::call::create, memory.data(), memory.size(), where), hints);
  }
  [[nodiscard]] static status try_create(const Team& team, std::span<T> memory, Window& made,
                                         const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::create, memory.data(), memory.size()), made, hints);
  }
  /// `allocate` for a team on one node: each part can be reached by plain loads and stores through `pointer_to`.
  /// Shape      collective over the team
  /// Errors     unreachable if the team spans nodes (use `team.node()`)
  [[nodiscard]] static Window allocate_shared(const Team& team, std::size_t count, const Hints& hints = {},
                                              source where = source::current()) {
    return make(team, plan(detail::call::allocate_shared, nullptr, count, where), hints);
  }
  [[nodiscard]] static status try_allocate_shared(const Team& team, std::size_t count, Window& made,
                                                  const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::allocate_shared, nullptr, count), made, hints);
  }
  /// Starts empty; memory is attached later by each rank for itself. Displacements are bytes: what the owner's `attach`
  /// returned, plus those within the range, or within ranges that follow it without a gap.
  /// Shape      collective over the team; attach and detach are local, in any number
  /// Errors     bad_argument if Hints::displacement_unit is neither 0 nor 1
  [[nodiscard]] static Window create_dynamic(const Team& team, const Hints& hints = {},
                                             source where = source::current()) {
    return make(team, plan(detail::call::create_dynamic, nullptr, 0, where), hints);
  }
  [[nodiscard]] static status try_create_dynamic(const Team& team, Window& made, const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::create_dynamic, nullptr, 0), made, hints);
  }

  Window() noexcept = default;
  Window(Window&& other) noexcept : window_facts(std::exchange(other.view_, detail::no_window())) {}
  Window& operator=(Window&& other) noexcept {
    if (this != &other) {
      detail::drop_window(view_);
      view_ = std::exchange(other.view_, detail::no_window());
    }
    return *this;
  }
  /// Not collective, waits for nobody: the memory of `allocate` is given back once every rank has dropped its handle,
  /// that of `create` is the program's again at once. Operations that come for this rank's handler are not done any
  /// more: they end with transfer_failed at their origin. So let the others finish first.
  ~Window() { detail::drop_window(view_); }

  /// Ends the window and gives its memory back. Completes what a fence epoch has under way.
  /// Shape      collective; no lock, start or post may be open
  /// Errors     wrong_epoch, wrong_thread: nothing has happened. After any other the window is freed all the same.
  ///            A dead member is no error; the memory of `allocate` is then given back once the living have all freed
  ///            or dropped the window, since others that do not know of the death yet may be using it
  void free(source where = source::current()) {
    const status s = try_free();
    detail::require(*view_, detail::call::free, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_free() noexcept {
    const status s = detail::free_window(view_);
    if (s != status::window_freed && s != status::wrong_epoch && s != status::wrong_thread) view_ = detail::no_window();
    return s;
  }

  /// Revokes the window: on every living member all waits for other members on it end with `revoked`, those under way
  /// and all later ones. A rank calls this when it finds that the others cannot continue, as after a death that not all
  /// of them see. Calls that wait for no member go on: operations in an open epoch, flush, unlock. Free or drop the
  /// window then.
  /// Shape      local; the others are told by messages
  void revoke(source where = source::current()) {
    detail::require(*view_, detail::call::revoke, try_revoke(), -1, 0, 0, where);
  }
  [[nodiscard]] status try_revoke() noexcept { return detail::revoke(*view_); }

  /// Lets others reach `memory`, which must live until `detach`, through this dynamic window (for memory that
  /// cannot be written, see `create`). One operation may cover
  /// several ranges that lie one behind the other without a gap.
  /// Shape      local; returns its displacement, the address of its first byte, which the others have to be told
  ///            (Team::allgather): that orders this call before their operations. A fence with no_precede does not
  /// Errors     bad_argument if it is empty or overlaps an attached range; not_supported unless the window is dynamic;
  ///            out_of_memory
  /// Cost       between nodes each range is registered by itself, so that an operation which covers several is done by
  ///            the target's handler
  std::uint64_t attach(std::span<T> memory, source where = source::current()) {
    std::uint64_t at = 0;
    const status s = try_attach(memory, at);
    detail::require(*view_, detail::call::attach, s, -1, at, memory.size(), where);
    return at;
  }
  [[nodiscard]] status try_attach(std::span<T> memory, std::uint64_t& at) noexcept {
    return detail::attach(*view_, memory.data(), memory.size_bytes(), at);
  }
  /// Ends that; `memory` must begin where an attached range begins.
  /// Errors     bad_argument if none begins there; not_supported unless the window is dynamic
  void detach(std::span<T> memory, source where = source::current()) {
    const auto at = reinterpret_cast<std::uint64_t>(memory.data());
    detail::require(*view_, detail::call::detach, try_detach(memory), -1, at, memory.size(), where);
  }
  [[nodiscard]] status try_detach(std::span<T> memory) noexcept { return detail::detach(*view_, memory.data()); }

  // ---- what it is -----------------------------------------------------------------------------------------

  /// This rank's own part.
  [[nodiscard]] std::span<T> local() const noexcept {
    return {static_cast<T*>(detail::local_base(*view_)), detail::local_bytes(*view_) / sizeof(T)};
  }
  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(detail::local_base(*view_)); }
  [[nodiscard]] std::size_t size() const noexcept { return detail::local_bytes(*view_) / sizeof(T); }
  /// Elements of `rank`'s part. See part_bytes.
  [[nodiscard]] std::size_t size(int rank, source where = source::current()) const {
    return part_bytes(rank, where) / sizeof(T);
  }
  T& operator[](std::size_t i) const noexcept { return data()[i]; }
  /// The part of `rank` if it is mapped here, else null.
  [[nodiscard]] T* pointer_to(int rank) const noexcept { return static_cast<T*>(detail::mapped_base(*view_, rank)); }

  // ---- several operations at once ----------------------------------------------------------------------------

  /// A handle whose small operations go together, see rma/aggregate.hpp.
  Aggregate<T> aggregate() noexcept { return Aggregate<T>(*view_); }

  // ---- put ------------------------------------------------------------------------------------------------

  /// Writes one element.
  void put(const T& value, int target, std::size_t at, source where = source::current()) {
    if (!detail::fast_put(*view_, value, target, at)) [[unlikely]]
      detail::put_or_raise<T>(*view_, value, target, at, where);
  }
  [[nodiscard]] status try_put(const T& value, int target, std::size_t at) noexcept {
    if (detail::fast_put(*view_, value, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::put_args(&value, sizeof(T), target, at));
  }
  /// Writes a range. `from` may be reused after the next flush_local, flush or end of epoch.
  void put(std::span<const T> from, int target, std::size_t at, source where = source::current()) {
    const status s = try_put(from, target, at);
    detail::require(*view_, detail::call::put, s, target, at, from.size(), where);
  }
  [[nodiscard]] status try_put(std::span<const T> from, int target, std::size_t at) noexcept {
    if (std::byte* const to = detail::fast_range(*view_, from.size(), sizeof(T), target, at)) [[likely]] {
      detail::copy_bytes(to, from.data(), from.size_bytes(), &view_->turn);
      return status::done;
    }
    return detail::issue(*view_, detail::put_args(from.data(), from.size_bytes(), target, at), nullptr);
  }
  /// `{}` may mean a value or no range at all: write T{} or std::span<const T>().
  template <class... More>
  void put(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;
  template <class... More>
  void try_put(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;
  /// Writes what `from_layout` selects of `from` to where `to_layout` says, from displacement `at` on.
  void put(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
           source where = source::current()) {
    const status s = try_put(from, from_layout, target, at, to_layout);
    detail::require(*view_, detail::call::put, s, target, at, to_layout, where);
  }
  [[nodiscard]] status try_put(const T* from, const Layout& from_layout, int target, std::size_t at,
                               const Layout& to_layout) noexcept {
    return detail::issue(
        *view_, detail::layout_args(detail::call::put, from, nullptr, from_layout, target, at, to_layout), nullptr);
  }

  // ---- get ------------------------------------------------------------------------------------------------

  /// Reads one element, complete when it returns.
  [[nodiscard]] T get(int target, std::size_t at, source where = source::current()) {
    T value;
    if (detail::fast_get(*view_, value, target, at)) [[likely]]
      return value;
    return detail::get_or_raise<T>(*view_, target, at, where);
  }
  [[nodiscard]] status try_get(T& value, int target, std::size_t at) noexcept {
    if (detail::fast_get(*view_, value, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::get_args(&value, sizeof(T), target, at));
  }
  /// Reads a range into `to`, complete at the next flush, flush_local or end of epoch.
  void get(std::span<T> to, int target, std::size_t at, source where = source::current()) {
    const status s = try_get(to, target, at);
    detail::require(*view_, detail::call::get, s, target, at, to.size(), where);
  }
  [[nodiscard]] status try_get(std::span<T> to, int target, std::size_t at) noexcept {
    if (const std::byte* const from = detail::fast_range(*view_, to.size(), sizeof(T), target, at)) [[likely]] {
      detail::copy_bytes(to.data(), from, to.size_bytes(), &view_->turn);
      return status::done;
    }
    return detail::issue(*view_, detail::get_args(to.data(), to.size_bytes(), target, at), nullptr);
  }
  void get(T* to, const Layout& to_layout, int target, std::size_t at, const Layout& from_layout,
           source where = source::current()) {
    const status s = try_get(to, to_layout, target, at, from_layout);
    detail::require(*view_, detail::call::get, s, target, at, from_layout, where);
  }
  [[nodiscard]] status try_get(T* to, const Layout& to_layout, int target, std::size_t at,
                               const Layout& from_layout) noexcept {
    return detail::issue(
        *view_, detail::layout_args(detail::call::get, nullptr, to, to_layout, target, at, from_layout), nullptr);
  }

  // ---- atomic updates: element by element atomic towards each other -------------------------------------------

  /// target[at] = target[at] op value
  template <operation Op>
    requires accumulable<T>
  void accumulate(const T& value, int target, std::size_t at, operation_tag<Op> op, source where = source::current()) {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    if (detail::fast_accumulate<Op>(*view_, value, target, at)) [[likely]]
      return;
    detail::accumulate_or_raise<T>(*view_, value, target, at, op, where);
  }
  template <operation Op>
    requires accumulable<T>
  [[nodiscard]] status try_accumulate(const T& value, int target, std::size_t at, operation_tag<Op>) noexcept {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    if (detail::fast_accumulate<Op>(*view_, value, target, at)) [[likely]]
      return status::done;
    return detail::issue(*view_, detail::accumulate_args(&value, sizeof(T), element_of<T>, Op, target, at), nullptr);
  }
  /// A range; one call may be far larger than a stripe, each element is atomic, the whole is not.
  void accumulate(std::span<const T> from, int target, std::size_t at, operation op, source where = source::current())
    requires accumulable<T>
  {
    const status s = try_accumulate(from, target, at, op);
    detail::require(*view_, detail::call::accumulate, s, target, at, from.size(), where);
  }
  [[nodiscard]] status try_accumulate(std::span<const T> from, int target, std::size_t at, operation op) noexcept
    requires accumulable<T>
  {
    return detail::issue(*view_, detail::accumulate_args(from.data(), from.size_bytes(), element_of<T>, op, target, at),
                         nullptr);
  }
  template <class... More>
  void accumulate(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;  // as put
  template <class... More>
  void try_accumulate(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;
  void accumulate(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
                  operation op, source where = source::current())
    requires accumulable<T>
  {
    const status s = try_accumulate(from, from_layout, target, at, to_layout, op);
    detail::require(*view_, detail::call::accumulate, s, target, at, to_layout, where);
  }
  [[nodiscard]] status try_accumulate(const T* from, const Layout& from_layout, int target, std::size_t at,
                                      const Layout& to_layout, operation op) noexcept
    requires accumulable<T>
  {
    return this->accumulate_as(element_of<T>, op, from, from_layout, target, at, to_layout);
  }

  /// result[i] = target[at+i], then target[at+i] = target[at+i] op from[i]. With no_op `from` is not looked at, and may
  /// be empty.
  void get_accumulate(std::span<const T> from, std::span<T> result, int target, std::size_t at, operation op,
                      source where = source::current())
    requires accumulable<T>
  {
    const status s = try_get_accumulate(from, result, target, at, op);
    detail::require(*view_, detail::call::get_accumulate, s, target, at, result.size(), where);
  }
  [[nodiscard]] status try_get_accumulate(std::span<const T> from, std::span<T> result, int target, std::size_t at,
                                          operation op) noexcept
    requires accumulable<T>
  {
    if (op != operation::no_op && from.size() != result.size()) return status::bad_size;
    return detail::issue(*view_,
                         detail::get_accumulate_args(detail::operand(op, from.data()), result.data(),
                                                     result.size_bytes(), element_of<T>, op, target, at),
                         nullptr);
  }

  /// One element: returns the old value, complete when it returns.
  template <operation Op>
    requires accumulable<T>
  T fetch_and_op(const T& value, int target, std::size_t at, operation_tag<Op> op, source where = source::current()) {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    T old;
    if (detail::fast_fetch<Op>(*view_, value, old, target, at)) [[likely]]
      return old;
    return detail::fetch_or_raise<T>(*view_, value, target, at, op, where);
  }
  template <operation Op>
    requires accumulable<T>
  [[nodiscard]] status try_fetch_and_op(const T& value, T& old, int target, std::size_t at,
                                        operation_tag<Op>) noexcept {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    if (detail::fast_fetch<Op>(*view_, value, old, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::fetch_args(element_of<T>, Op, &value, &old, target, at));
  }
  /// If target[at] == expected then target[at] = desired. Returns what was there.
  [[gnu::always_inline]] T compare_and_swap(const T& expected, const T& desired, int target, std::size_t at,
                                            source where = source::current())
    requires accumulable<T>
  {
    static_assert(std::is_integral_v<T>, "compare_and_swap needs an integer window");
    T old;
    if (detail::fast_swap(*view_, expected, desired, old, target, at)) [[likely]]
      return old;
    return detail::swap_or_raise<T>(*view_, expected, desired, target, at, where);
  }
  [[nodiscard]] status try_compare_and_swap(const T& expected, const T& desired, T& old, int target,
                                            std::size_t at) noexcept
    requires accumulable<T>
  {
    static_assert(std::is_integral_v<T>, "compare_and_swap needs an integer window");
    if (detail::fast_swap(*view_, expected, desired, old, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::swap_args(element_of<T>, &expected, &desired, &old, target, at));
  }

  // ---- active target epochs -----------------------------------------------------------------------------------

  /// Closes this window's fence epoch on every rank and opens the next.
  /// Shape      collective over the window's team
  /// Completes  every operation issued by or aimed at this rank in the closed epoch
  /// Memory     those effects happen before the return: plain loads see them
  /// Errors     wrong_epoch if a lock or a start/post epoch is open or a promise is broken; bad_argument; peer_failed
  /// Cost       2 ranks of a node: one line transfer each way (perf/sync.cpp)
  void fence(assertion promises = assertion::none, source where = source::current()) {
    const status s = detail::fence(*view_, promises);
    detail::require(*view_, detail::call::fence, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_fence(assertion promises = assertion::none) noexcept {
    return detail::fence(*view_, promises);
  }

  /// Opens this rank's part to the ranks of `group`, until `wait`. Does not block.
  /// Errors     wrong_epoch if it is open so already, or a lock or a fence epoch with operations is; bad_rank;
  ///            bad_argument for a rank twice
  void post(std::span<const int> group, assertion promises = assertion::none, source where = source::current()) {
    detail::require(*view_, detail::call::post, try_post(group, promises), -1, 0, group.size(), where);
  }
  [[nodiscard]] status try_post(std::span<const int> group, assertion promises = assertion::none) noexcept {
    return detail::post(*view_, group.data(), group.size(), promises);
  }
  /// Starts an epoch towards the ranks of `group`; blocks until each has posted.
  /// Errors     as post; peer_failed if a rank of the group that has not posted is dead or has left. A start that
  ///            fails uses up nobody's post: start again with the others
  void start(std::span<const int> group, assertion promises = assertion::none, source where = source::current()) {
    detail::require(*view_, detail::call::start, try_start(group, promises), -1, 0, group.size(), where);
  }
  [[nodiscard]] status try_start(std::span<const int> group, assertion promises = assertion::none) noexcept {
    return detail::start(*view_, group.data(), group.size(), promises);
  }
  /// Ends the epoch of `start`: everything issued in it is complete here and will be at the target's `wait`.
  /// Errors     wrong_epoch without `start`; transfer_failed, peer_failed: the epoch is over all the same
  void complete(source where = source::current()) {
    const status s = try_complete();
    detail::require(*view_, detail::call::complete, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_complete() noexcept { return detail::complete(*view_); }
  /// Ends the epoch of `post`: blocks until every rank of its group has completed.
  /// Memory     their operations are visible to plain loads
  /// Errors     wrong_epoch without `post`; peer_failed if a rank of the group that has not completed is dead or has
  ///            left. The epoch is over then, but what was posted to the others stays posted: the next wait for one of
  ///            them waits for that, too
  void wait(source where = source::current()) {
    const status s = wait_nothrow();
    detail::require(*view_, detail::call::wait, s, -1, 0, 0, where);
  }
  [[nodiscard]] status wait_nothrow() noexcept { return detail::wait(*view_); }
  /// `wait` without blocking: true if the epoch has ended (once; then it is over).
  [[nodiscard]] bool test(source where = source::current()) {
    const status s = try_test();
    if (!ok(s) && s != status::not_yet) [[unlikely]]
      detail::raise(*view_, detail::call::test, s, -1, 0, 0, where);
    return s == status::done;
  }
  /// done, not_yet, or an error as of `wait`.
  [[nodiscard]] status try_test() noexcept { return detail::test(*view_); }

  // ---- passive target epochs ----------------------------------------------------------------------------------

  /// Locks the target's part; the epoch ends with the returned scope. When lock returns the lock is held, whatever the
  /// window's lock_protocol is, unless the program has asked for less: `deferrable` takes it later, `no_check` never.
  /// Errors     wrong_epoch if this rank has it locked already or another kind of epoch is open (a fence epoch in which
  ///            nothing is under way ends here); bad_rank; bad_argument for another lock_kind; peer_failed
  /// Cost       uncontended on a node: one locked instruction each for lock and unlock (perf/sync.cpp); in the network
  ///            one atomic each, of which the second goes out behind puts without waiting for them. A small epoch that
  ///            is deferrable: one message to the target's lock manager and its answer
  Epoch lock(lock_kind kind, int target, assertion promises = assertion::none, source where = source::current()) {
    if (!detail::takes_lock(promises) || !detail::fast_lock(*view_, kind, target)) [[unlikely]]
      detail::lock_or_raise(*view_, kind, target, promises, where);
    return Epoch(view_, target);
  }
  /// As `lock` without the scope, to be closed by `unlock`.
  [[nodiscard]] status lock_nothrow(lock_kind kind, int target, assertion promises = assertion::none) noexcept {
    return detail::lock(*view_, kind, target, promises);
  }
  /// Completes what was issued to the target, here and there, and gives the lock back.
  /// Errors     not_locked; transfer_failed, peer_failed: the lock is given back all the same
  void unlock(int target, source where = source::current()) {
    if (!detail::fast_unlock(*view_, target)) [[unlikely]]
      detail::unlock_or_raise(*view_, target, where);
  }
  [[nodiscard]] status try_unlock(int target) noexcept { return detail::unlock(*view_, target); }

  /// Opens a shared epoch towards every rank. Each target's lock is taken at its first use, so that an operation may
  /// wait there for who holds it exclusively, or say peer_failed; lock_scheme::fompi takes one for all of them here,
  /// and no_check takes none.
  /// Errors     as lock
  Epoch lock_all(assertion promises = assertion::none, source where = source::current()) {
    const status s = lock_all_nothrow(promises);
    detail::require(*view_, detail::call::lock_all, s, -1, 0, 0, where);
    return Epoch(view_, -1);
  }
  [[nodiscard]] status lock_all_nothrow(assertion promises = assertion::none) noexcept {
    return detail::lock_all(*view_, promises);
  }
  void unlock_all(source where = source::current()) {
    const status s = try_unlock_all();
    detail::require(*view_, detail::call::unlock_all, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_unlock_all() noexcept { return detail::unlock_all(*view_); }

  /// Completes, here and at the target, everything issued to it in this epoch.
  /// Memory     orders it before every later operation and load
  /// Errors     wrong_epoch unless this rank holds a lock there (lock, lock_all, lock_range); peer_failed,
  ///            transfer_failed
  void flush(int target, source where = source::current()) {
    if (!detail::fast_flush(*view_, target)) [[unlikely]]
      detail::flush_or_raise(*view_, target, where);
  }
  [[nodiscard]] status try_flush(int target) noexcept { return detail::flush(*view_, target); }
  /// `flush` of every target that is locked.
  void flush_all(source where = source::current()) {
    const status s = try_flush_all();
    detail::require(*view_, detail::call::flush_all, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_flush_all() noexcept { return detail::flush_all(*view_); }
  /// Completes at the origin only: buffers may be reused, results of gets are there. Errors as flush.
  /// Cost       by adapters that acknowledge writes before they are in memory one read less than flush; elsewhere,
  ///            where the end of an operation here says that it is over there, as flush
  void flush_local(int target, source where = source::current()) {
    const status s = try_flush_local(target);
    detail::require(*view_, detail::call::flush_local, s, target, 0, 0, where);
  }
  [[nodiscard]] status try_flush_local(int target) noexcept { return detail::flush_local(*view_, target); }
  void flush_local_all(source where = source::current()) {
    const status s = try_flush_local_all();
    detail::require(*view_, detail::call::flush_local_all, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_flush_local_all() noexcept { return detail::flush_local_all(*view_); }
  /// Memory     orders this rank's plain loads and stores of its own part with what others do to it
  void sync(source where = source::current()) {
    const status s = try_sync();
    detail::require(*view_, detail::call::sync, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_sync() noexcept { return detail::sync(*view_); }

 private:
  explicit Window(detail::window_view* view) noexcept : window_facts(view) {}
  static detail::window_plan plan(detail::call kind, T* memory, std::size_t count, source where = {}) noexcept {
    return {kind, memory, count, sizeof(T), alignof(T), where};
  }
  static Window make(const Team& team, const detail::window_plan& what, const Hints& hints) {
    return Window(detail::make_window(team, what, hints));
  }
  static status try_make(const Team& team, const detail::window_plan& what, Window& made, const Hints& hints) noexcept {
    detail::window_view* view = nullptr;
    const status s = detail::try_make_window(team, what, hints, view);
    if (s == status::done) made = Window(view);
    return s;
  }
};

}  // namespace rma

#pragma GCC visibility pop
