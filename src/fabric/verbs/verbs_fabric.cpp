// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/verbs_fabric.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "fabric/verbs/open.hpp"
#include "rma/error.hpp"

namespace rma::verbs {
namespace {

constexpr std::size_t message_bytes = 4096;
constexpr std::size_t receive_count = 512;
constexpr std::uint32_t reads_wanted = 16;
constexpr std::uint32_t flushed_reserve = 256;  // for completions of entries of abandoned queue pairs

/// Plans a connection's send queue of at most 16 KiB, with the library's own part of it. Entries of a device in
/// software are rounded up to a power of two, and it executes entries in the post, so that a longer queue gains
/// nothing.
queue_plan plan_for(const adapter& device, ibv_cq* completions = nullptr, ibv_srq* receives = nullptr) noexcept {
  const ibv_device_attr& limits = device.limits();
  const auto at_most = [](std::uint32_t wanted, int has) {
    return static_cast<std::uint32_t>(std::clamp(has, 1, static_cast<int>(wanted)));
  };
  queue_plan plan;
  plan.completions = completions;
  plan.receives = receives;
  plan.entries = at_most(device.emulated() ? 15 : 63, limits.max_qp_wr);
  plan.gather = at_most(device.emulated() ? 16 : 8, limits.max_sge);
  plan.inline_bytes = device.emulated() ? inline_bytes_max : 220;
  plan.bulk_gather = at_most(static_cast<std::uint32_t>(bulk_pieces_max), limits.max_sge);
  plan.bulk_entries = at_most(bulk_depth, limits.max_qp_wr);
  plan.reads = at_most(reads_wanted, std::min(limits.max_qp_rd_atom, limits.max_qp_init_rd_atom));
  return plan;
}

/// The size of the completion queue.
int completions_of(const adapter& device, const member& who) noexcept {
  return std::min(device.limits().max_cqe, static_cast<int>(who.completions));
}

std::size_t receives_of(const adapter& device, const member& who) noexcept {
  return std::min<std::size_t>({receive_count, static_cast<std::size_t>(device.limits().max_srq_wr),
                                static_cast<std::size_t>(completions_of(device, who) / 2)});
}

}  // namespace

verbs_fabric::verbs_fabric(std::unique_ptr<adapter> device, const member& who)
    : network(*this, *this),
      device_(std::move(device)),
      rank_(who.rank),
      size_(who.size),
      completions_(device_->device(), completions_of(*device_, who)),
      receives_(device_->domain(), receives_of(*device_, who), message_bytes),
      memory_(device_->domain(), rank_, message_bytes, who.cache_bytes, caps_),
      connections_(*device_, rank_, who.key, plan_for(*device_, completions_.queue(), receives_.queue())),
      sends_(connections_, memory_, budget_),
      bounced_(sends_, memory_),
      queued_(sends_, memory_, std::size_t{128} << device_->mtu()),
      broken_(connections_, memory_, sends_, bounced_, queued_),
      bulk_(connections_, memory_, budget_, caps_) {
  budget_.max = static_cast<std::uint32_t>(completions_of(*device_, who)) -
                static_cast<std::uint32_t>(receives_of(*device_, who)) - flushed_reserve;
  watch_events();
  describe_abilities(who);
}

void verbs_fabric::watch_events() {
  events_ = ::epoll_create1(EPOLL_CLOEXEC);
  for (const int descriptor : {completions_.fd(), connections_.manager().news_fd()}) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    if (events_ < 0 || ::epoll_ctl(events_, EPOLL_CTL_ADD, descriptor, &interest) != 0)
      refuse_without("event descriptor");
  }
}

void verbs_fabric::describe_abilities(const member& who) {
  const queue_plan plan = plan_for(*device_);
  caps_.name = "verbs";
  caps_.gather_max = plan.gather;
  caps_.scatter_max = plan.gather;
  caps_.bulk_pieces_max = plan.bulk_gather;
  caps_.inline_bytes_max = plan.inline_bytes;
  caps_.remote_slices_max = std::min<std::size_t>(chain_.size(), plan.entries / 2);
  caps_.message_bytes_max = message_bytes;
  caps_.transfer_bytes_max = std::size_t{1} << 30;
  abilities all = device_->has();
  all.meet(who.common);
  caps_.write_means = all.placed ? fabric::write_completion::placed : fabric::write_completion::acked;
  caps_.messages_after_writes = true;
  caps_.write_with_immediate = true;
  caps_.atomics = all.atomics;
  caps_.words = true;
  caps_.one_sided = true;
  caps_.pins_memory = true;
  // Devices in software have `placed`; each of their packets takes some microseconds of a processor.
  if (all.placed) caps_.costs = {27'000, 6'000, 1.0, 45'000, 1.5};
}

verbs_fabric::~verbs_fabric() {
  for (connection* c : connections_.all()) {
    if (c != nullptr && c->bulk != nullptr) bulk_.drop(*c->bulk);
    for (; c != nullptr && c->tail != c->head; ++c->tail) memory_.release(c->at(c->tail));
  }
  queued_.drop();
  ::close(events_);
}

std::size_t verbs_fabric::entries_per_connection() const noexcept { return plan_for(*device_).entries; }

// ---- regions ------------------------------------------------------------------------------------------------

status verbs_fabric::register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  return memory_.regions().add(at, bytes, key);
}

void verbs_fabric::deregister_region(const fabric::region_key& key) noexcept { memory_.regions().remove(key); }

void verbs_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  const send_queues::counters& sent = sends_.counts();
  const std::uint64_t writes = sent.of(IBV_WR_RDMA_WRITE) + sent.of(IBV_WR_RDMA_WRITE_WITH_IMM);
  add("verbs_writes", writes - sent.tail_writes - word_writes_);
  add("verbs_tail_writes", sent.tail_writes);
  add("verbs_word_writes", word_writes_);
  add("verbs_reads", sent.of(IBV_WR_RDMA_READ));
  add("verbs_atomics", sent.of(IBV_WR_ATOMIC_CMP_AND_SWP) + sent.of(IBV_WR_ATOMIC_FETCH_AND_ADD));
  std::uint64_t entries = 0;
  for (const std::uint64_t each : sent.posted) entries += each;
  add("verbs_doorbells", entries - sent.listed + sent.lists);
  add("verbs_sends", sent.of(IBV_WR_SEND_WITH_IMM));
  add("verbs_completions", completions_taken_);
  add("verbs_bulk_sends", bulk_.posted());
  add("verbs_queue_pairs", connections_.queue_pairs());
  const registration_cache::counters& kept = memory_.cache().counts();
  add("verbs_registrations", kept.misses);
  add("verbs_registration_hits", kept.hits);
  add("verbs_registered_bytes", kept.bytes);
}

// ---- progress -----------------------------------------------------------------------------------------------

// Called before a sleep: from here on the channel reports completions.
bool verbs_fabric::pending() noexcept {
  if (completions_.has_fetched()) return true;
  (void)memory_.cache().catch_up();  // idle time: withdraws registrations of unmapped memory
  sends_.ask_for_tails();
  queued_.go_on();
  if (connections_.manager().take_news() || connections_.have_broken()) return true;
  completions_.arm();
  return completions_.fetch() != 0;
}

// Called before the end of the job: silent messages must be complete as well. Those to peers that have left count as
// complete.
bool verbs_fabric::quiet() noexcept {
  return sends_.quiet() && queued_.empty() && broken_.empty() && bounced_.empty() && bulk_.quiet();
}

unsigned verbs_fabric::poll(fabric::sink& to, unsigned limit) noexcept {
  unsigned found = 0;
  bool more = true;  // a batch that is not full was the last
  while (found < limit && more && completions_.fetch() != 0) {
    more = completions_.filled_batch();
    for (; found < limit && completions_.has_fetched(); ++found) take(completions_.take(), to);
  }
  if (receives_.has_handled()) receives_.replenish();
  if (connections_.have_broken()) [[unlikely]]
    take_broken(to);
  if (broken_.have_doubts()) [[unlikely]]
    broken_.resolve_doubts(to);
  if (!bounced_.empty()) bounced_.go_on();
  if (bulk_.are_waiting()) bulk_.go_on(to);
  if (broken_.have_unsent()) [[unlikely]]
    broken_.go_on();
  queued_.go_on();
  if (found == 0 && sends_.has_tails()) sends_.ask_for_tails();
  return found;
}

void verbs_fabric::take(const ibv_wc& done, fabric::sink& to) noexcept {
  if ((done.wr_id >> 63) != 0) {
    take_sent(done, to);
  } else if (bulk_channels::is_bulk(done.wr_id)) [[unlikely]] {
    bulk_.take(done, to);
  } else {
    take_receive(done, to);
  }
}

void verbs_fabric::take_receive(const ibv_wc& done, fabric::sink& to) noexcept {
  const auto buffer = static_cast<std::int32_t>(done.wr_id);
  if (done.status == IBV_WC_SUCCESS) {
    connection* const from = connections_.source_of(done.qp_num);
    const bool known = from != nullptr && from->state.load(std::memory_order_relaxed) != connection_state::dead;
    if (known && done.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      to.on_immediate(from->peer, ntohl(done.imm_data));
    } else if (known) {
      const std::uint32_t label = ntohl(done.imm_data);  // number and kind
      const auto ahead = static_cast<std::int16_t>(static_cast<std::uint16_t>(label >> 16) - from->received);
      if (ahead >= 0) {  // else it arrived before the connection broke
        from->received = static_cast<std::uint16_t>((label >> 16) + 1);
        to.on_message(from->peer, static_cast<std::uint16_t>(label), {receives_.at(buffer), done.byte_len});
      }
    }
  }
  receives_.give_back(buffer);
}

// One completion stands for all unsignaled entries before it. After an error the queue pair executes no more entries,
// but those before the error are complete.
void verbs_fabric::take_sent(const ibv_wc& done, fabric::sink& to) noexcept {
  connection& c = connections_.at((done.wr_id >> 32) & 0x7fffffff);
  const connection_state state = c.state.load(std::memory_order_acquire);
  if (connections::is_over(c, state, done)) return;
  ++completions_taken_;
  const auto number = static_cast<std::uint32_t>(done.wr_id);
  const bool failed = done.status != IBV_WC_SUCCESS;
  if (failed && state != connection_state::ready) return;  // given up: abandon ends it and those before it
  while (static_cast<std::int32_t>(number - c.tail) > (failed ? 0 : -1)) {
    const completion_action& w = sends_.retire(c);  // no post can overwrite it meanwhile
    if (!w.plain()) {
      if (w.silent) --c.silent;
      bounced_.end(w, status::done, to);
    } else if (w.token != 0) {
      to.on_completion(w.token, status::done, 0);
    }
  }
  if (!failed) return;
  const bool unreachable = done.status == IBV_WC_RETRY_EXC_ERR;
  if (unreachable) {
    connections_.lose(c, to);
  } else {
    connections_.manager().give_up(c);
  }
}

// Ends the outstanding entries of connections that are broken, or whose peers are dead. Reconnects the broken ones.
void verbs_fabric::take_broken(fabric::sink& to) noexcept {
  connections_.note_breaks();
  while (completions_.fetch() != 0) {  // completions from before the break are not lost
    const ibv_wc done = completions_.take();
    take(done, to);
  }
  for (connection* const c : connections_.manager().broken()) {
    if (c->of == channel::bulk) {
      bulk_.abandon(*c, to);
    } else {
      broken_.take(*c, to);
    }
  }
}

}  // namespace rma::verbs
