// SPDX-License-Identifier: Apache-2.0
/// \file
/// A collective that has been started: the step machine that runs its schedule.
///
///   start --> [ steps of a round: sends, receives, local steps ] --> all of them over --> next round --> ... --> over
///                    |  a local step that is longer than a turn               |
///                    +--> waits for the next round of progress <--------------+
///
/// Any thread that makes progress moves it: messages call `message_over` under the progress lock, and long local steps
/// run in turns of 64 KiB, so that the lock is never held for longer.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <source_location>
#include <vector>

#include "channel/notifications.hpp"
#include "coll/plan.hpp"
#include "p2p/operation.hpp"
#include "rma/detail/collective_call.hpp"
#include "xfer/awaited.hpp"

namespace rma::detail {
struct request_node;
}

namespace rma::detail::coll {

struct put_head;
class team_state;

class running final : public awaited {
 public:
  using hook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

  explicit running(plan& of) : plan_(of), sends_(new sent[of.sends_max]), receives_(new received[of.receives_max]) {}
  running(const running&) = delete;
  running& operator=(const running&) = delete;

  // ---- the caller holds the progress lock ---------------------------------------------------------------------------
  /// Sets the call that it runs. `call` is copied together with its layouts; its other lists are in the plan.
  void prepare(team_state& team, const collective_call& call, const std::source_location& where);
  void start(std::uint64_t turn) noexcept;
  [[nodiscard]] collective_operands& call() noexcept { return call_; }
  /// Runs the next turn of local work. Returns true if there is more.
  bool do_local_work() noexcept;
  /// Ends it with a failure; pending messages are withdrawn.
  void fail(status why) noexcept;
  /// The world ranks of its pending messages.
  [[nodiscard]] std::set<int> pending_with() const;

  /// Called when a member is in a collective of this number in memory: another call, or the same one with a size for
  /// which it goes there.
  void meets_memory(int member, std::int32_t signature) noexcept;
  /// Looks through the team's collectives for those that cannot complete.
  void look_at_team() noexcept;
  /// Looks for a message of this number that belongs to another collective, and that no receive matches.
  void look_for_mismatch() noexcept;
  [[nodiscard]] int member_of(int world_rank) const noexcept;
  /// True if a step of this call receives from that member.
  [[nodiscard]] bool takes_from(int member) const noexcept;

  [[nodiscard]] plan& of() noexcept { return plan_; }
  [[nodiscard]] team_state& team() noexcept { return *team_; }
  [[nodiscard]] std::int32_t signature() const noexcept { return signature_; }
  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }
  [[nodiscard]] std::uint64_t turn() const noexcept { return turn_; }
  [[nodiscard]] bool over() const noexcept { return state_.load(std::memory_order_acquire) != status::not_yet; }
  void set_request(request_node* node) noexcept { node_ = node; }
  [[nodiscard]] request_node* request() const noexcept { return node_; }
  /// Marks that a blocking call waits for it, which returns it by release().
  void set_awaited(bool yes) noexcept { awaited_ = yes; }
  /// Marks that a persistent collective keeps it when it is complete.
  void set_kept(bool yes) noexcept { kept_ = yes; }
  [[nodiscard]] bool kept() const noexcept { return kept_; }
  /// True if no send of its first round is pending.
  [[nodiscard]] bool sends_over() const noexcept;
  [[nodiscard]] std::uint32_t sends_started() const noexcept { return sends_used_; }

  status state() noexcept override { return state_.load(std::memory_order_acquire); }
  status failed() noexcept override;
  void give_up(status why) noexcept override;
  std::shared_ptr<void> release() noexcept override;
  std::string describe(status ended, std::string& reason) const override;
  /// The text of its failure, as reported; empty for a death or a revocation.
  [[nodiscard]] std::string why() const;
  /// Waits, before `why`, for the message with the place of another member's call. Without the lock.
  void wait_for_place() const noexcept;

  /// From now on its signals, which have no data, are notifications of this object: one each way in a round.
  void use_notifications(notifications::slots& of) noexcept;
  void drop_notifications() noexcept;
  [[nodiscard]] notifications::slots* notified_by() const noexcept { return notified_by_; }
  void begin_turn() noexcept;

  hook in_team;
  hook in_work;
  hook in_lane;
  bool working = false;  ///< it is in the list of runs with local work
  bool laned = false;    ///< it is in a lane of the team's put channels

 private:
  /// The header in front of the bytes of a put.
  struct put_header {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    std::uint32_t buffer = 0;
    std::uint32_t signals = 0;
  };
  static constexpr std::int32_t put_tag = 0x7fffffff;
  static constexpr std::int32_t put_data_tag = 0x7ffffffe;
  struct sent : send_operation {
    running* of = nullptr;
    put_header header;
  };
  struct received : receive_operation {
    running* of = nullptr;
    const Schedule::Step* step = nullptr;
    put_header header;
  };
  /// The buffers that are not contiguous, with lists of their own.
  struct shaped_buffers {
    collective_shape in, out;
    std::vector<Layout> layouts[2];
    std::vector<std::ptrdiff_t> offsets[2];
  };
  enum class phase : std::uint8_t { packing, steps, unpacking, over };

  void own_shapes(const collective_call& call);
  void run(std::size_t budget) noexcept;
  bool move_layout(std::size_t& budget, bool pack_it) noexcept;
  bool run_round(std::size_t& budget) noexcept;
  bool run_local(const Schedule::Step& s, std::size_t& budget) noexcept;
  void send(const Schedule::Step& s) noexcept;
  void send_bytes(const std::byte* from, std::size_t bytes, int peer, std::int32_t tag) noexcept;
  void receive(const Schedule::Step& s) noexcept;
  void notify(const Schedule::Step& s) noexcept;
  void await_notification(const Schedule::Step& s) noexcept;
  void post(received& m, std::byte* into, std::size_t bytes) noexcept;
  void put(const Schedule::Step& s) noexcept;
  void await_signal(const Schedule::Step& s) noexcept;
  void take(received& m) noexcept;
  void take_put(received& m) noexcept;
  void message_over(const message_operation& m) noexcept;
  void take_failure(status s, int world_rank) noexcept;
  void start_by_puts() noexcept;
  void end_puts() noexcept;
  void take_failed_send(const message_operation& m, status s) noexcept;
  void went_on() noexcept;
  /// Fails it at all members, for a reason that the others cannot see; `other`: the member that has made a different
  /// call, or -1.
  void fail_refused() noexcept;
  void fail_everywhere(status why, const std::string& text, int other = -1) noexcept;
  /// For a message that no step of this call receives.
  void fail_for_stray(int member, const put_head& head) noexcept;
  /// "member 2 called allreduce (sum of f64) at solver.cpp:31".
  [[nodiscard]] std::string text_of_call() const;
  void finish(status result) noexcept;
  [[nodiscard]] std::byte* at(Schedule::Place p) const noexcept {
    std::byte* const base = base_[static_cast<std::size_t>(p.buffer)];
    return base == nullptr ? base : base + p.offset;  // null for parts without bytes
  }

  plan& plan_;
  team_state* team_ = nullptr;
  request_node* node_ = nullptr;
  notifications::slots* notified_by_ = nullptr;
  unsigned round_ = 0;  ///< round of notifications
  bool awaited_ = false;
  bool kept_ = false;
  std::uint64_t turn_ = 0;
  std::uint64_t context_ = 0;
  std::int32_t signature_ = 0;
  std::byte* base_[3] = {};
  collective_operands call_;
  std::source_location where_;
  std::size_t next_ = 0;       ///< step
  std::size_t step_done_ = 0;  ///< bytes done of that local step, or of the layout
  std::size_t piece_ = 0;      ///< piece of a layout
  std::uint32_t sends_used_ = 0, receives_used_ = 0;
  std::uint32_t open_ = 0;  ///< pending messages
  phase phase_ = phase::over;
  bool posting_ = false;  ///< this thread is running steps
  status result_ = status::done;
  std::atomic<status> state_ = status::done;
  std::unique_ptr<shaped_buffers> shaped_{};  ///< null while its buffers are contiguous
  std::unique_ptr<sent[]> sends_;
  std::unique_ptr<received[]> receives_;
  std::unique_ptr<std::byte[]> memory_;  ///< scratch memory, and packed layouts
  std::size_t memory_bytes_ = 0;
};

template <running::hook running::*Hook>
using running_list = boost::intrusive::list<running, boost::intrusive::member_hook<running, running::hook, Hook>,
                                            boost::intrusive::constant_time_size<false>>;

}  // namespace rma::detail::coll
