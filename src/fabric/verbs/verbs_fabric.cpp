// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/verbs_fabric.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "fabric/verbs/open.hpp"
#include "rma/error.hpp"

namespace rma::verbs {
namespace {

constexpr std::size_t message_bytes = 4096;
constexpr std::size_t receive_count = 512;
constexpr std::size_t buffer_count = 256;
constexpr std::size_t word_count = 1024;
constexpr std::uint32_t reads_wanted = 16;
constexpr std::uint32_t flushed_reserve = 256;  // completions of entries that were given up with their queue pair

/// A connection's send queue: at most 16 KiB with the library's own part of it. Entries of a device in software are
/// rounded up to a power of two, and its post is its execution, so that a longer queue gains nothing.
queue_plan plan_for(const adapter& device) noexcept {
  const ibv_device_attr& limits = device.limits();
  const auto at_most = [](std::uint32_t wanted, int has) {
    return static_cast<std::uint32_t>(std::clamp(has, 1, static_cast<int>(wanted)));
  };
  queue_plan plan;
  plan.entries = at_most(device.emulated() ? 15 : 63, limits.max_qp_wr);
  plan.gather = at_most(device.emulated() ? 16 : 8, limits.max_sge);
  plan.inline_bytes = device.emulated() ? inline_bytes_max : 220;
  plan.bulk_gather = at_most(static_cast<std::uint32_t>(bulk_pieces_max), limits.max_sge);
  plan.bulk_entries = at_most(bulk_depth, limits.max_qp_wr);
  plan.reads = at_most(reads_wanted, std::min(limits.max_qp_rd_atom, limits.max_qp_init_rd_atom));
  return plan;
}

}  // namespace

verbs_fabric::verbs_fabric(std::unique_ptr<adapter> device, const member& who)
    : network(*this, *this),
      device_(std::move(device)),
      rank_(who.rank),
      size_(who.size),
      packet_bytes_(std::size_t{128} << device_->mtu()) {
  const ibv_device_attr& limits = device_->limits();
  channel_ = ::ibv_create_comp_channel(device_->device());
  if (channel_ == nullptr) refuse_without("completion channel");
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(channel_->fd, F_SETFD, FD_CLOEXEC);
  const int entries = std::min(limits.max_cqe, static_cast<int>(who.completions));
  completions_ = ::ibv_create_cq(device_->device(), entries, nullptr, channel_, 0);
  if (completions_ == nullptr) refuse_without("completion queue");
  const std::size_t receives = std::min<std::size_t>(
      {receive_count, static_cast<std::size_t>(limits.max_srq_wr), static_cast<std::size_t>(entries / 2)});
  receives_ = std::make_unique<receive_queue>(device_->domain(), receives, message_bytes);
  buffers_ = std::make_unique<buffer_pool>(device_->domain(), buffer_count, message_bytes);
  words_ = std::make_unique<buffer_pool>(device_->domain(), word_count, sizeof(std::uint64_t));
  under_way_max_ = static_cast<std::uint32_t>(entries) - static_cast<std::uint32_t>(receives) - flushed_reserve;

  queue_plan plan = plan_for(*device_);
  plan.completions = completions_;
  plan.receives = receives_->queue();
  manager_ = std::make_unique<connection_manager>(*device_, rank_, who.key, plan);
  memory_ = std::make_unique<memory_regions>(device_->domain(), rank_);
  cache_ = std::make_unique<registration_cache>(*memory_, registration_cache::limits{.bytes = who.cache_bytes});

  events_ = ::epoll_create1(EPOLL_CLOEXEC);
  for (const int descriptor : {channel_->fd, manager_->news_fd()}) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    if (events_ < 0 || ::epoll_ctl(events_, EPOLL_CTL_ADD, descriptor, &interest) != 0)
      refuse_without("event descriptor");
  }

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
  // A device in software says `placed`; each of its packets takes a processor some microseconds.
  if (all.placed) caps_.costs = {27'000, 6'000, 1.0, 45'000, 1.5};
}

// Queue pairs go before what they refer to.
verbs_fabric::~verbs_fabric() {
  for (connection* c : by_index_) {
    if (c != nullptr && c->bulk != nullptr) drop_bulk(*c->bulk);
    for (; c != nullptr && c->tail != c->head; ++c->tail) {
      if (c->at(c->tail).lease != nullptr) cache_->release(c->at(c->tail).lease);
    }
  }
  for (const send_request& o : std::span(queued_.all).first(queued_.count)) {
    if (o.then.lease != nullptr) cache_->release(o.then.lease);
  }
  manager_ = nullptr;
  cache_ = nullptr;
  memory_ = nullptr;
  receives_ = nullptr;
  buffers_ = nullptr;
  words_ = nullptr;
  ::ibv_destroy_cq(completions_);
  ::ibv_destroy_comp_channel(channel_);
  ::close(events_);
}

std::size_t verbs_fabric::entries_per_connection() const noexcept { return plan_for(*device_).entries; }

// ---- regions ------------------------------------------------------------------------------------------------

status verbs_fabric::register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  return memory_->add(at, bytes, key);
}

void verbs_fabric::deregister_region(const fabric::region_key& key) noexcept { memory_->remove(key); }

void verbs_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  const auto of = [&](ibv_wr_opcode what) { return posted_[static_cast<std::size_t>(what) % posted_.size()]; };
  add("verbs_writes", of(IBV_WR_RDMA_WRITE) + of(IBV_WR_RDMA_WRITE_WITH_IMM) - tail_writes_ - word_writes_);
  add("verbs_tail_writes", tail_writes_);
  add("verbs_word_writes", word_writes_);
  add("verbs_reads", of(IBV_WR_RDMA_READ));
  add("verbs_atomics", of(IBV_WR_ATOMIC_CMP_AND_SWP) + of(IBV_WR_ATOMIC_FETCH_AND_ADD));
  std::uint64_t entries = 0;
  for (const std::uint64_t each : posted_) entries += each;
  add("verbs_doorbells", entries - of(IBV_WR_SEND) - listed_ + lists_);
  add("verbs_sends", of(IBV_WR_SEND_WITH_IMM));
  add("verbs_completions", completions_taken_);
  add("verbs_bulk_sends", of(IBV_WR_SEND));
  add("verbs_queue_pairs", manager_->queue_pairs());
  const registration_cache::counters& kept = cache_->counts();
  add("verbs_registrations", kept.misses);
  add("verbs_registration_hits", kept.hits);
  add("verbs_registered_bytes", kept.bytes);
}

// ---- connections --------------------------------------------------------------------------------------------

// `retry_queue_full` until the connection managers have agreed.
status verbs_fabric::reach_another(int peer, connection*& c) noexcept {
  if (const auto at = by_peer_.find(peer); at != by_peer_.end()) {
    last_peer_ = c = at->second;
  } else if (const status s = look_for(peer, channel::control, c); s != status::done) {
    return s;
  } else {
    by_peer_[peer] = c;
  }
  switch (c->state.load(std::memory_order_acquire)) {
    case connection_state::ready:
      if (c->mask == 0) [[unlikely]]
        prepare(*c);
      return c->resend.empty() ? status::done : send_again(*c);
    case connection_state::dead: return status::peer_failed;
    case connection_state::broken:  // until `poll` has ended what was under way
    case connection_state::asking:
    case connection_state::answering: break;
  }
  return status::retry_queue_full;
}

void verbs_fabric::prepare(connection& c) noexcept {
  c.ring.resize(std::bit_ceil(plan_for(*device_).entries + 1));
  c.mask = static_cast<std::uint32_t>(c.ring.size()) - 1;
  list_by_index(c);
}

void verbs_fabric::list_by_index(connection& c) noexcept {
  if (by_index_.size() <= c.index) by_index_.resize(c.index + 1);
  by_index_[c.index] = &c;
}

status verbs_fabric::look_for(int peer, channel of, connection*& c) noexcept {
  c = manager_->find(peer, of);
  if (c == nullptr) {
    std::string text;
    manager_address theirs;
    if (const status s = directory_->look_up(peer, address_key(peer), text); !ok(s)) return s;
    if (!parse(text, theirs)) return status::unreachable;
    c = manager_->ask(peer, theirs, of);
  }
  return status::done;
}

connection* verbs_fabric::source_of(std::uint32_t queue_pair) noexcept {
  connection*& known = by_queue_pair_[queue_pair];
  if (known == nullptr) known = manager_->find_queue_pair(queue_pair);
  return known;
}

// ---- what comes ---------------------------------------------------------------------------------------------

unsigned verbs_fabric::fetch() noexcept {
  if (fetched_count_ != 0) return fetched_count_;
  const int n = ::ibv_poll_cq(completions_, static_cast<int>(fetched_.size()), fetched_.data());
  fetched_first_ = 0;
  fetched_count_ = n > 0 ? static_cast<unsigned>(n) : 0;
  return fetched_count_;
}

// Asked before a sleep: from here on the channel tells.
bool verbs_fabric::pending() noexcept {
  if (fetched_count_ != 0) return true;
  (void)cache_->catch_up();  // memory that is gone is given back while there is time
  ask_for_tails();
  if (queued_.to != nullptr) go_on_with_queued();
  if (manager_->take_news() || manager_->breaks() != breaks_seen_) return true;
  ibv_cq* which = nullptr;
  void* unused = nullptr;
  while (armed_ && ::ibv_get_cq_event(channel_, &which, &unused) == 0) {
    ::ibv_ack_cq_events(which, 1);
    armed_ = false;
  }
  if (!armed_) {
    (void)::ibv_req_notify_cq(completions_, 0);
    armed_ = true;
  }
  return fetch() != 0;
}

unsigned verbs_fabric::poll(fabric::sink& to, unsigned limit) noexcept {
  unsigned found = 0;
  bool more = true;  // a batch that is not full was all there is
  while (found < limit && more && fetch() != 0) {
    more = fetched_first_ + fetched_count_ == fetched_.size();
    for (; found < limit && fetched_count_ != 0; ++found) {
      const ibv_wc& done = fetched_[fetched_first_++];
      --fetched_count_;
      take(done, to);
    }
  }
  if (receives_->has_handled()) receives_->replenish();
  if (manager_->breaks() != breaks_seen_) [[unlikely]]
    abandon_broken(to);
  if (!doubted_.empty()) [[unlikely]]
    resolve_doubts(to);
  if (!stages_.empty()) go_on_with_stages();
  if (!bulk_waiting_.empty()) go_on_with_bulk(to);
  if (!unsent_.empty()) [[unlikely]]
    go_on_with_unsent();
  if (queued_.to != nullptr) go_on_with_queued();
  if (found == 0 && !tails_.empty()) ask_for_tails();
  return found;
}

void verbs_fabric::take(const ibv_wc& done, fabric::sink& to) noexcept {
  if ((done.wr_id >> 63) != 0) {
    take_sent(done, to);
  } else if (is_bulk(done.wr_id)) [[unlikely]] {
    take_bulk(done, to);
  } else {
    take_receive(done, to);
  }
}

void verbs_fabric::take_receive(const ibv_wc& done, fabric::sink& to) noexcept {
  const auto buffer = static_cast<std::int32_t>(done.wr_id);
  if (done.status == IBV_WC_SUCCESS) {
    connection* const from = source_of(done.qp_num);
    const bool known = from != nullptr && from->state.load(std::memory_order_relaxed) != connection_state::dead;
    if (known && done.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      to.on_immediate(from->peer, ntohl(done.imm_data));
    } else if (known) {
      const std::uint32_t label = ntohl(done.imm_data);  // number and kind
      const auto ahead = static_cast<std::int16_t>(static_cast<std::uint16_t>(label >> 16) - from->received);
      if (ahead >= 0) {  // else it has come before the connection broke
        from->received = static_cast<std::uint16_t>((label >> 16) + 1);
        to.on_message(from->peer, static_cast<std::uint16_t>(label), {receives_->at(buffer), done.byte_len});
      }
    }
  }
  receives_->give_back(buffer);
}

// Of a queue pair that was abandoned: another takes its place, or will, or the peer was known dead before that.
bool verbs_fabric::is_over(const connection& c, connection_state state, const ibv_wc& done) noexcept {
  return state == connection_state::asking || c.queue_pair == nullptr || done.qp_num != c.queue_pair->qp_num;
}

// One completion speaks for all entries before it that said nothing. After an error the queue pair does nothing more,
// but what it has done before still counts.
void verbs_fabric::take_sent(const ibv_wc& done, fabric::sink& to) noexcept {
  connection& c = *by_index_[(done.wr_id >> 32) & 0x7fffffff];
  const connection_state state = c.state.load(std::memory_order_acquire);
  if (is_over(c, state, done)) return;
  ++completions_taken_;
  const auto number = static_cast<std::uint32_t>(done.wr_id);
  const bool failed = done.status != IBV_WC_SUCCESS;
  if (failed && state != connection_state::ready) return;  // given up already: abandon ends it, and what was before it
  while (static_cast<std::int32_t>(number - c.tail) > (failed ? 0 : -1)) {
    --under_way_;
    const completion_action& w = c.at(c.tail++);  // nothing is posted meanwhile that could take its place
    if (!w.plain()) {
      if (w.silent) --c.silent;
      end(w, status::done, to);
    } else if (w.token != 0) {
      to.on_completion(w.token, status::done, 0);
    }
  }
  if (!failed) return;
  const bool unreachable = done.status == IBV_WC_RETRY_EXC_ERR;
  if (unreachable) {
    lose(c, to);
  } else {
    manager_->give_up(c);
  }
}

// Connections that are broken, or whose peers are dead: what was under way is over. The broken are made anew.
void verbs_fabric::abandon_broken(fabric::sink& to) noexcept {
  breaks_seen_ = manager_->breaks();
  while (fetch() != 0) {  // what has come before the break is not lost with it
    const ibv_wc done = fetched_[fetched_first_++];
    --fetched_count_;
    take(done, to);
  }
  for (connection* const c : manager_->broken()) {
    if (c->of == channel::bulk) {
      abandon_bulk(*c, to);
      continue;
    }
    const connection_state state = c->state.load(std::memory_order_acquire);
    if (state == connection_state::dead && !std::exchange(c->abandoned, true)) abandon(*c, status::peer_failed, to);
    if (state != connection_state::broken) continue;
    abandon(*c, status::transfer_failed, to);
    manager_->mend(*c);
  }
}

// Messages are kept: nobody waits for the end of a message, but somebody for what it says.
void verbs_fabric::abandon(connection& c, status result, fabric::sink& to) noexcept {
  std::vector<completion_action> kept;
  for (; c.tail != c.head; ++c.tail) {
    const completion_action w = c.at(c.tail);
    --under_way_;
    if (result == status::peer_failed) {
      end(w, result, to);
    } else if (w.message) {
      kept.push_back(w);
    } else if (w.silent) {
      end(w, result, to);
    } else {
      c.unresolved.push_back(w);
    }
  }
  c.unsignalled = 0;
  c.silent = 0;
  c.resend.insert(c.resend.begin(), kept.begin(), kept.end());
  if (!c.resend.empty() && std::find(unsent_.begin(), unsent_.end(), &c) == unsent_.end()) unsent_.push_back(&c);
  stop_stage(c);
  end_queued(c, result, to);
  if (result == status::peer_failed) {
    for (const completion_action& w : std::exchange(c.resend, {})) end(w, result, to);
    end_doubtful(c, result, to);
  } else if (!c.unresolved.empty()) {
    c.doubt_since_ns = detail::clock_ns();
    if (std::find(doubted_.begin(), doubted_.end(), &c) == doubted_.end()) doubted_.push_back(&c);
  }
}

// A transfer of which pieces are still to be posted ends like those that were under way, of which it may have none.
void verbs_fabric::stop_stage(connection& c) noexcept {
  for (auto& [id, s] : stages_) {
    if (s.to != &c || s.all_posted()) continue;
    ++s.under_way;
    s.slice = s.local.size();
    completion_action end_of_it;
    end_of_it.token = id;
    end_of_it.piece = true;
    c.unresolved.push_back(end_of_it);
  }
}

// A process that dies takes its memory away before its queue pairs: an operation that comes meanwhile is refused as one
// that should not have been. Who lives answers to the next greeting, also while it computes; who does not is lost.
void verbs_fabric::resolve_doubts(fabric::sink& to) noexcept {
  const std::int64_t now_ns = detail::clock_ns();
  std::erase_if(doubted_, [&](connection* c) {
    const bool dead = c->state.load(std::memory_order_acquire) == connection_state::dead;
    const bool lives = !dead && c->heard_ns.load(std::memory_order_relaxed) > c->doubt_since_ns;
    const bool late = now_ns - c->doubt_since_ns > doubt_ns;
    if (!dead && !lives && !late) return false;
    if (!dead && !lives) lose(*c, to);
    end_doubtful(*c, lives ? status::transfer_failed : status::peer_failed, to);
    return true;
  });
}

// Nothing reaches the peer.
void verbs_fabric::lose(const connection& c, fabric::sink& to) noexcept {
  manager_->forget(c.peer);
  to.on_broken(c.peer);
}

void verbs_fabric::end_doubtful(connection& c, status result, fabric::sink& to) noexcept {
  for (const completion_action& w : std::exchange(c.unresolved, {})) end(w, result, to);
}

void verbs_fabric::end(const completion_action& w, status result, fabric::sink& to) noexcept {
  if (w.buffer >= 0) {
    buffer_pool& from = w.word ? *words_ : *buffers_;
    if (w.copy_to != nullptr && result == status::done) {
      if (w.bytes == sizeof(std::uint64_t)) {
        std::memcpy(w.copy_to, from.at(w.buffer), sizeof(std::uint64_t));
      } else {
        std::memcpy(w.copy_to, from.at(w.buffer), w.bytes);
      }
    }
    from.give_back(w.buffer);
  }
  if (w.lease != nullptr) cache_->release(w.lease);
  if (w.piece) {
    end_stage(w.token, result, to);
  } else if (w.token != 0 && !w.message) {
    to.on_completion(w.token, result, 0);
  }
}

void verbs_fabric::end_stage(std::uint64_t id, status result, fabric::sink& to) noexcept {
  const auto at = stages_.find(id);
  bounced& s = at->second;
  --s.under_way;
  if (result != status::done) {
    s.result = result;
    s.slice = s.local.size();
  }
  if (s.under_way != 0 || !s.all_posted()) return;
  --s.to->stages;
  const std::uint64_t token = s.token;
  const status all = s.result;
  stages_.erase(at);
  if (token != 0) to.on_completion(token, all, 0);
}

}  // namespace rma::verbs
