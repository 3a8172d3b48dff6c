// SPDX-License-Identifier: Apache-2.0
/// \file
/// Nonblocking synchronization, which proceeds while its caller computes: ifence, ilock, iunlock, iflush, icomplete.
/// Each is a sync_task behind a request, which every round of progress advances.
/// Source: dissertation, "non-blocking synchronization" (future work); MPI-4.1, chapter 12, has rput and the like only.
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "rma/detail/synchronization_ops.hpp"
#include "sync/epochs.hpp"
#include "sync/fence.hpp"
#include "sync/lock_machine.hpp"
#include "sync/locking.hpp"
#include "sync/merged_ends.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

/// Takes the first step, and makes a request only if there is more to do.
status start_task(window_core& w, std::unique_ptr<sync_task> task, request_node*& node) noexcept {
  const status s = task->advance(w);
  if (s != status::not_yet) return task->conclude(w, s);
  w.count_task(true);
  const std::lock_guard guard(w.ctx->lock());
  node = w.team->rt->ops->new_request(w, std::move(task));
  return status::posted;
}

/// The death of a target ends it by the result of try_complete_target: nothing else can fail.
class completion : public sync_task {
 public:
  status failed(window_core&) noexcept override { return status::done; }

 protected:
  /// Completes all pending operations to all targets.
  static status complete_dirty(window_core& w, status& worst) noexcept {
    for (std::size_t i = w.dirty.size(); i-- > 0;) {  // complete targets leave the list
      const status s = try_complete_target(w, w.dirty[i]);
      if (s != status::done && s != status::not_yet) worst = s;
    }
    return w.dirty.empty() ? status::done : status::not_yet;
  }
};

class flush_task final : public completion {
 public:
  explicit flush_task(int target) noexcept : target_(target) {}
  status advance(window_core& w) noexcept override {
    RMA_ASSERT(target_ < w.size());
    const status s = target_ < 0 ? complete_dirty(w, worst_) : try_complete_target(w, target_);
    if (s == status::not_yet) return s;
    if (target_ >= 0) worst_ = s;
    RMA_ASSERT(worst_ != status::not_yet && (target_ >= 0 || w.dirty.empty()));
    return worst_;
  }
  status conclude(window_core& w, status s) noexcept override {
    full_fence();
    target_view* const t = target_ < 0 ? nullptr : w.view_at(target_);
    if (t != nullptr && t->held != 0 && !w.state_of(target_).dirty) t->flushable = w.inline_sync;
    return s;
  }

 private:
  int target_;
  status worst_ = status::done;
};

/// Waits for the operations that were issued before the task was made.
class issued_task final : public completion {
 public:
  issued_task(window_core& w, int target) {
    if (target >= 0) {
      marks_.push_back({target});
    } else {
      for (const int each : w.dirty) marks_.push_back({each});
    }
    for (issued_mark& mark : marks_) mark_issued(w, mark);
  }
  status advance(window_core& w) noexcept override {
    while (!marks_.empty()) {
      issued_mark& mark = marks_.back();
      RMA_ASSERT(mark.target >= 0 && mark.target < w.size());
      if (!mark.set) mark_issued(w, mark);
      const status s = mark.set ? issued_state(w, mark) : status::not_yet;
      if (s == status::not_yet) return s;
      if (s != status::done) worst_ = s;
      marks_.pop_back();
    }
    RMA_ASSERT(worst_ != status::not_yet);
    return worst_;
  }
  [[nodiscard]] bool may_be_dropped() const noexcept override { return true; }

 private:
  std::vector<issued_mark> marks_;
  status worst_ = status::done;
};

/// Closes the epoch for new operations from the start, as complete() does. The small operations held for a target are
/// sent in one message with the notification (figure 10.5) when all other operations there are complete.
class complete_task final : public completion {
 public:
  explicit complete_task(window_core& w) : due_(w.access_group) {
    for (const int target : w.access_group) {
      issue_all_but_aggregates(w, target);
      if (target_view* const t = w.view_at(target)) window_core::close(*t);
    }
    set_access(w, access_epoch::closing);
    for (const int target : w.access_group) ask_placed(w, target);  // all at once
  }
  status advance(window_core& w) noexcept override {
    RMA_ASSERT(w.access == access_epoch::closing && due_.size() <= w.access_group.size());
    if (!advance_all(w)) return status::not_yet;
    RMA_ASSERT(due_.empty());
    if (!std::exchange(told_, true)) {
      full_fence();
      due_.clear();
      for (const int target : w.access_group) {
        if (has_results_held(w, target)) due_.push_back(target);
        complete_with_rider(w, target);
      }
    }
    return advance_all(w) ? worst_ : status::not_yet;
  }
  status conclude(window_core& w, status s) noexcept override {
    w.access_group.clear();
    set_access(w, access_epoch::none);
    w.allow_locks(true);
    return s;
  }

 private:
  /// True if all operations issued to the targets are complete.
  bool advance_all(window_core& w) noexcept {
    std::erase_if(due_, [&](int target) {
      RMA_ASSERT(target >= 0 && target < w.size());
      const status s = try_complete_issued(w, target);
      if (s != status::done && s != status::not_yet) worst_ = s;
      return s != status::not_yet;
    });
    RMA_ASSERT(worst_ != status::not_yet);
    return due_.empty();
  }

  std::vector<int> due_;
  bool told_ = false;
  status worst_ = status::done;
};

/// Held small operations are sent in one message with the lock's release, if that is a message (figure 10.6).
class unlock_task final : public completion {
 public:
  explicit unlock_task(int target) noexcept : target_(target) {}
  status advance(window_core& w) noexcept override {
    RMA_ASSERT(w.held(target_) != 0 && (ended_ || !told_));
    const status s = try_complete_issued(w, target_);
    if (s != status::done || std::exchange(ended_, true)) return s;
    status failed = status::done;  // all issued operations are complete
    told_ = unlock_with_aggregates(w, target_, w.held(target_), failed);
    RMA_ASSERT(failed == status::done);
    return try_complete_issued(w, target_);
  }
  status conclude(window_core& w, status s) noexcept override {
    const status released = told_ ? close_lock(w, target_, w.held(target_), true) : unlock_slow(w, target_);
    return s != status::done ? s : released;
  }

 private:
  int target_;
  bool ended_ = false;
  bool told_ = false;  ///< the lock manager has been notified
};

/// From its start on the window treats the target as locked, except for operations: no other lock of it, no lock_all,
/// fence, start or post may begin.
class lock_task final : public sync_task {
 public:
  lock_task(window_core& w, std::unique_ptr<lock_machine> machine, int target, lock_kind kind)
      : w_(w), machine_(std::move(machine)), target_(target), kind_(kind) {
    w.wanted.push_back(target);
    ++w.locks_open;
    w.allow_locks(false);
  }
  ~lock_task() override { lock_task::give_up(w_, status::window_freed); }
  status advance(window_core&) noexcept override {
    if (machine_ == nullptr) return lost_;
    RMA_ASSERT(machine_->reached() == lock_step::not_yet);
    const lock_step s = machine_->advance();
    RMA_ASSERT(s == lock_step::not_yet || s == lock_step::held || s == lock_step::failed);
    return s == lock_step::held ? status::done : s == lock_step::failed ? machine_->why() : status::not_yet;
  }
  status conclude(window_core& w, status s) noexcept override {
    if (machine_ == nullptr) return s;
    end(s == status::done);
    if (s == status::done) hold(w);
    return s;
  }
  status failed(window_core&) noexcept override {
    if (machine_ == nullptr || machine_->reached() != lock_step::not_yet) return status::done;
    const status s = machine_->failed();
    if (s == status::done) return s;
    machine_->give_up(s);
    end(false);
    return lost_ = s;
  }
  void forget_window() noexcept override { machine_ = nullptr; }
  void give_up(window_core&, status why) noexcept override {
    if (machine_ == nullptr) return;
    if (machine_->reached() == lock_step::held) {  // by another thread's progress, for a request that is dropped
      (void)release_lock(w_, target_, kind_);
    } else if (machine_->reached() == lock_step::not_yet) {
      machine_->give_up(why);
    }
    end(false);
    lost_ = why;
  }
  [[nodiscard]] bool silent() const noexcept override { return machine_ != nullptr && machine_->resumes_at_ns() >= 0; }
  [[nodiscard]] bool may_be_dropped() const noexcept override { return true; }

 private:
  void end(bool held) noexcept {
    machine_ = nullptr;
    std::erase(w_.wanted, target_);
    if (!held) --w_.locks_open;
    w_.allow_locks(w_.access == access_epoch::none && !w_.failed());
  }
  void hold(window_core& w) const noexcept {
    if (w.is_far(target_)) {
      w.far(target_).held = static_cast<std::uint8_t>(kind_);
      return;
    }
    target_view& t = w.views[w.index_of(target_)];
    t.held = static_cast<std::uint8_t>(kind_);
    t.flushable = w.inline_sync;
    window_core::open(t);
  }

  window_core& w_;
  std::unique_ptr<lock_machine> machine_;  ///< null once it has ended
  int target_;
  lock_kind kind_;
  status lost_ = status::window_freed;  ///< the result of `failed` without a machine
};

/// As in lock(), an empty fence epoch ends here.
status may_lock_now(window_core& w, int target) noexcept {
  if (target < 0 || target >= w.size()) return status::bad_rank;
  if (w.access == access_epoch::fence && !w.used_since_fence()) {
    w.close_all();
    set_access(w, access_epoch::none);
    w.allow_locks(true);
  }
  if (w.access != access_epoch::none || w.held(target) != 0) return status::wrong_epoch;
  if (is_claimed(w, target) || is_wanted(w, target)) return status::wrong_epoch;
  return w.is_far(target) && w.ctx->wide() == nullptr ? status::unreachable : status::done;
}

}  // namespace

status ifence(window_view& view, assertion promises, request_node*& node) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::fence);
  if (!is_assertion(promises)) return status::bad_argument;
  if (!may_fence(w)) return status::wrong_epoch;
  if (const status s = w.revocation(); s != status::done) return s;
  return start_task(w, std::make_unique<fence_run>(w, promises, false, true), node);
}

status ilock(window_view& view, lock_kind kind, int target, request_node*& node) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::lock, target);
  if (!is_kind(kind)) return status::bad_argument;
  if (const status s = may_lock_now(w, target); s != status::done) return s;
  status refused = status::done;
  std::unique_ptr<lock_machine> machine = begin_lock(w, target, kind, refused);
  if (machine == nullptr) return refused;
  return start_task(w, std::make_unique<lock_task>(w, std::move(machine), target, kind), node);
}

status iunlock(window_view& view, int target, request_node*& node) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::unlock, target);
  if (target < 0 || target >= w.size()) return status::bad_rank;
  if (const std::uint8_t held = w.held(target); held == 0 || held == held_by_lock_all) return status::not_locked;
  issue_all_but_aggregates(w, target);
  return start_task(w, std::make_unique<unlock_task>(target), node);
}

status iflush(window_view& view, int target, request_node*& node) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, target < 0 ? call::flush_all : call::flush, target);
  if (target >= w.size()) return status::bad_rank;
  const bool open = w.access == access_epoch::lock_all || (target < 0 ? w.locks_open != 0 : w.held(target) != 0);
  if (!open) return status::wrong_epoch;
  if (const status s = send_waiting(w, target); s != status::done) return s;
  issue_scheduled(w, target);
  return start_task(w, std::make_unique<flush_task>(target), node);
}

status issued_to(window_view& view, int target, request_node*& node) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, target < 0 ? call::flush_local_all : call::flush_local, target);
  if (target >= w.size()) return status::bad_rank;
  if (w.access == access_epoch::none && (target < 0 ? w.locks_open == 0 : w.held(target) == 0))
    return status::wrong_epoch;
  if (w.gathered.count != 0) copy_gathered(w);
  if (const status s = send_waiting(w, target); s != status::done) return s;
  issue_scheduled(w, target);
  return start_task(w, std::make_unique<issued_task>(w, target), node);
}

status icomplete(window_view& view, request_node*& node) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::complete);
  if (w.access != access_epoch::start) return status::wrong_epoch;
  return start_task(w, std::make_unique<complete_task>(w), node);
}

}  // namespace rma::detail
