// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/connection_manager.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/threads.hpp"
#include "rma/error.hpp"

namespace rma::verbs {
namespace {

constexpr std::uint32_t receives_posted = 64;
constexpr std::uint32_t queue_key = 0x726d6131;
constexpr std::size_t route_bytes = 40;  // size of the header before every received datagram
constexpr std::size_t datagram_bytes = route_bytes + sizeof(hello);
constexpr std::int64_t first_pause_ns = 20'000'000;
constexpr std::int64_t longest_pause_ns = 1'000'000'000;
constexpr unsigned asks_without_a_word = 10;  // 5 s
constexpr std::int64_t never_ns = INT64_MAX;
constexpr std::int64_t leave_ns = 100'000'000;  // datagrams not sent by then are dropped

}  // namespace

connection_manager::connection_manager(adapter& device, int rank, std::string key, const queue_plan& plan)
    : device_(device), rank_(rank), key_(std::move(key)), plan_(plan) {
  std::uint64_t random[2] = {};
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) refuse_without("random bytes");
  mine_.nonce = random[0];
  next_packet_ = static_cast<std::uint32_t>(random[1]);
  kick_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  news_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (kick_ < 0 || news_ < 0) refuse_without("event descriptors");
  make_own_queue_pair();
  mine_.port = device_.address();
  mine_.queue_pair = queue_pair_->qp_num;
  for (std::uint32_t i = 0; i < receives_posted; ++i) post_receive(i);
  thread_ = detail::start_thread("the thread that answers for an RDMA device", [this] { run(); });
}

connection_manager::~connection_manager() {
  stopping_.store(true);
  kick(kick_);
  if (thread_.joinable()) thread_.join();
  say_leave();
  for (connection& c : connections_) {
    if (c.queue_pair != nullptr) ::ibv_destroy_qp(c.queue_pair);
  }
  for (ibv_qp* each : retired_) ::ibv_destroy_qp(each);
  if (queue_pair_ != nullptr) ::ibv_destroy_qp(queue_pair_);
  for (sending& s : sendings_) {
    if (s.way != nullptr) ::ibv_destroy_ah(s.way);
  }
  if (region_ != nullptr) ::ibv_dereg_mr(region_);
  if (completions_ != nullptr) ::ibv_destroy_cq(completions_);
  if (channel_ != nullptr) ::ibv_destroy_comp_channel(channel_);
  if (kick_ >= 0) ::close(kick_);
  if (news_ >= 0) ::close(news_);
}

void connection_manager::make_own_queue_pair() {
  const std::size_t sends = sendings_.size();
  memory_.resize(receives_posted * datagram_bytes + sends * sizeof(hello));
  region_ = ::ibv_reg_mr(device_.domain(), memory_.data(), memory_.size(), int{IBV_ACCESS_LOCAL_WRITE});
  if (region_ == nullptr) refuse_without("memory for its greetings");
  channel_ = ::ibv_create_comp_channel(device_.device());
  if (channel_ == nullptr) refuse_without("completion channel");
  completions_ = ::ibv_create_cq(device_.device(), static_cast<int>(receives_posted + sends), nullptr, channel_, 0);
  if (completions_ == nullptr) refuse_without("completion queue");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = completions_;
  wanted.qp_type = IBV_QPT_UD;
  wanted.cap.max_send_wr = static_cast<std::uint32_t>(sends);
  wanted.cap.max_recv_wr = receives_posted;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  queue_pair_ = ::ibv_create_qp(device_.domain(), &wanted);
  if (queue_pair_ == nullptr) refuse_without("queue pair for datagrams");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = device_.port();
  attr.qkey = queue_key;
  if (::ibv_modify_qp(queue_pair_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0)
    refuse_without("queue pair for datagrams");
  attr.qp_state = IBV_QPS_RTR;
  if (::ibv_modify_qp(queue_pair_, &attr, IBV_QP_STATE) != 0) refuse_without("queue pair for datagrams");
  attr.qp_state = IBV_QPS_RTS;
  if (::ibv_modify_qp(queue_pair_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
    refuse_without("queue pair for datagrams");
  for (const int descriptor : {channel_->fd, device_.device()->async_fd}) {
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
  if (::ibv_req_notify_cq(completions_, 0) != 0) refuse_without("notification");
}

void connection_manager::kick(int descriptor) const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(descriptor, &one, sizeof one);
}

bool connection_manager::take_news() noexcept {
  std::uint64_t count = 0;
  return ::read(news_, &count, sizeof count) == static_cast<ssize_t>(sizeof count);
}

connection* connection_manager::find(int peer, channel of) {
  const std::lock_guard guard(lock_);
  const auto at = by_peer_.find({peer, of});
  return at == by_peer_.end() ? nullptr : at->second;
}

connection* connection_manager::find_queue_pair(std::uint32_t number) {
  const std::lock_guard guard(lock_);
  const auto at = by_queue_pair_.find(number);
  return at == by_queue_pair_.end() ? nullptr : at->second;
}

std::vector<connection*> connection_manager::broken() {
  const std::lock_guard guard(lock_);
  std::vector<connection*> found;
  for (connection& c : connections_) {
    const connection_state state = c.state.load();
    if (state == connection_state::broken || state == connection_state::dead) found.push_back(&c);
  }
  return found;
}

std::size_t connection_manager::queue_pairs() const {
  const std::lock_guard guard(lock_);
  return by_queue_pair_.size();
}

connection& connection_manager::connection_with(int peer, channel of) {
  connection*& known = by_peer_[{peer, of}];
  if (known == nullptr) {
    known = &connections_.emplace_back(peer, of, static_cast<std::uint32_t>(connections_.size()));
    known->first_packet = next_packet_ & 0xffffff;
    next_packet_ = next_packet_ * 0x9e3779b1U + 1;
    known->due_ns = never_ns;
  }
  return *known;
}

connection* connection_manager::connect(int peer, const manager_address& theirs, channel of) {
  const std::lock_guard guard(lock_);
  connection& c = connection_with(peer, of);
  c.connection_manager = theirs;
  if (c.state.load() != connection_state::asking || c.asked) return &c;
  c.asked = true;
  c.due_ns = 0;
  kick(kick_);
  return &c;
}

void connection_manager::forget(int peer) noexcept {
  const std::lock_guard guard(lock_);
  for (const channel of : {channel::control, channel::bulk}) {
    connection& c = connection_with(peer, of);
    c.due_ns = never_ns;
    set_state(c, connection_state::dead);
    put_in_error(c);
  }
}

void connection_manager::put_in_error(connection& c) noexcept {
  if (c.queue_pair == nullptr) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  (void)::ibv_modify_qp(c.queue_pair, &attr, IBV_QP_STATE);
}

void connection_manager::stop(connection& c) noexcept {
  const std::lock_guard guard(lock_);
  put_in_error(c);
}

void connection_manager::set_state(connection& c, connection_state state) noexcept {
  if (c.state.load() == connection_state::dead) return;
  c.state.store(state, std::memory_order_release);
  if (state == connection_state::dead || state == connection_state::broken)
    breaks_.fetch_add(1, std::memory_order_release);
  kick(news_);
}

void connection_manager::give_up(connection& c) noexcept {
  const std::lock_guard guard(lock_);
  set_state(c, connection_state::broken);
}

void connection_manager::mend(connection& c, std::uint32_t over) {
  const std::lock_guard guard(lock_);
  if (c.state.load() != connection_state::broken) return;
  c.over = over;
  put_in_error(c);
  if (c.queue_pair != nullptr) retired_.push_back(std::exchange(c.queue_pair, nullptr));
  c.first_packet = next_packet_ & 0xffffff;
  next_packet_ = next_packet_ * 0x9e3779b1U + 1;
  c.pause_ns = 0;
  c.asks = 0;
  c.state.store(connection_state::asking);
  if (c.newer) {
    const hello h = *std::exchange(c.newer, std::nullopt);
    c.generation = h.generation;
    answer(c, h);
  } else {
    ++c.generation;
    c.asked = true;
    c.due_ns = 0;
    kick(kick_);
  }
}

// ---- the thread ---------------------------------------------------------------------------------------------

void connection_manager::run() noexcept {
  while (!stopping_.load()) {
    std::int64_t timeout_ms = -1;
    if (const std::int64_t due_ns = next_due_ns(); due_ns != never_ns)
      timeout_ms = std::max<std::int64_t>(0, (due_ns - detail::clock_ns()) / 1'000'000 + 1);
    pollfd polled[3] = {{kick_, POLLIN, 0}, {channel_->fd, POLLIN, 0}, {device_.device()->async_fd, POLLIN, 0}};
    (void)::poll(polled, std::size(polled), static_cast<int>(timeout_ms));
    std::uint64_t count = 0;
    (void)!::read(kick_, &count, sizeof count);
    if ((polled[1].revents & POLLIN) != 0) take_datagrams();
    if ((polled[2].revents & POLLIN) != 0) take_device_events();
    say_what_is_due(detail::clock_ns());
  }
}

std::int64_t connection_manager::next_due_ns() noexcept {
  const std::lock_guard guard(lock_);
  std::int64_t due_ns = never_ns;
  for (const connection& c : connections_) due_ns = std::min(due_ns, c.due_ns);
  return due_ns;
}

void connection_manager::post_receive(std::uint32_t slot) noexcept {
  ibv_sge into{reinterpret_cast<std::uint64_t>(memory_.data() + slot * datagram_bytes), datagram_bytes, region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = slot;
  request.sg_list = &into;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  (void)::ibv_post_recv(queue_pair_, &request, &bad);
}

void connection_manager::take_datagrams() noexcept {
  ibv_cq* which = nullptr;
  void* unused = nullptr;
  while (::ibv_get_cq_event(channel_, &which, &unused) == 0) ::ibv_ack_cq_events(which, 1);
  (void)::ibv_req_notify_cq(completions_, 0);
  take_completions();
}

void connection_manager::take_completions() noexcept {
  ibv_wc done{};
  while (::ibv_poll_cq(completions_, 1, &done) == 1) {
    if (done.wr_id >= receives_posted) {
      const std::lock_guard guard(lock_);
      sending& s = sendings_[done.wr_id - receives_posted];
      ::ibv_destroy_ah(s.way);
      s = {};
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(done.wr_id);
    if (done.status == IBV_WC_SUCCESS && done.byte_len == datagram_bytes) {
      hello h{};
      std::memcpy(&h, memory_.data() + slot * datagram_bytes + route_bytes, sizeof h);
      if (genuine(h, key_, rank_, mine_.nonce)) hear(h);
    }
    if (done.status != IBV_WC_WR_FLUSH_ERR) post_receive(slot);
  }
}

// The only event that matters is the end of the device, which outstanding operations report. Events are acknowledged,
// because a queue pair cannot be destroyed before its events are.
void connection_manager::take_device_events() noexcept {
  ibv_async_event event{};
  while (::ibv_get_async_event(device_.device(), &event) == 0) ::ibv_ack_async_event(&event);
}

// Handles a greeting whose proof has been checked; it may be a duplicate, late, or out of order.
void connection_manager::hear(const hello& h) noexcept {
  if (h.of != channel::control && h.of != channel::bulk) return;
  const std::lock_guard guard(lock_);
  connection& c = connection_with(h.from, h.of);
  std::memcpy(c.connection_manager.port.gid.raw, h.gid, sizeof h.gid);
  c.connection_manager.port.lid = h.lid;
  c.connection_manager.queue_pair = h.connection_manager;
  c.connection_manager.nonce = h.nonce_from;
  c.heard_ns.store(detail::clock_ns(), std::memory_order_relaxed);
  if (h.what == greeting::goodbye) c.left.store(true, std::memory_order_relaxed);
  if (h.what == greeting::later || h.what == greeting::goodbye) return kick(news_);
  const auto newer = static_cast<std::int16_t>(h.generation - c.generation);
  if (newer < 0 || c.state.load() == connection_state::dead) return;
  if (newer > 0 && c.queue_pair != nullptr) {  // its owner has to end outstanding entries first
    c.newer = h;
    c.due_ns = never_ns;
    set_state(c, connection_state::broken);
    say(c, greeting::later);
    return;
  }
  c.generation = h.generation;
  answer(c, h);
}

void connection_manager::answer(connection& c, const hello& h) noexcept {
  const connection_state before = c.state.load();
  if (before == connection_state::broken) return;
  if (before == connection_state::asking && h.what != greeting::confirm) {
    if (!make_ready_to_receive(c, h) || !make_ready_to_send(c, h.reads)) {
      complain(c);
      return;  // retried when the peer repeats it
    }
    c.peers_over = h.over;
    c.due_ns = never_ns;
    set_state(c, connection_state::answering);
  }
  switch (h.what) {
    case greeting::request: say(c, greeting::answer); break;
    case greeting::answer: say(c, greeting::confirm); break;
    case greeting::confirm:
    case greeting::later:
    case greeting::goodbye: break;
  }
  if (h.what == greeting::request && c.state.load() == connection_state::answering) {
    c.pause_ns = first_pause_ns;
    c.due_ns = detail::clock_ns() + c.pause_ns;
  }
  if (h.what != greeting::request && c.state.load() == connection_state::answering) {
    c.due_ns = never_ns;
    set_state(c, connection_state::ready);
  }
}

void connection_manager::say_what_is_due(std::int64_t now_ns) noexcept {
  const std::lock_guard guard(lock_);
  for (connection& c : connections_) {
    if (c.due_ns > now_ns) continue;
    c.pause_ns = std::clamp(2 * c.pause_ns, first_pause_ns, longest_pause_ns);
    c.due_ns = now_ns + c.pause_ns;
    const bool asking = c.state.load() == connection_state::asking;
    say(c, asking ? greeting::request : greeting::answer);
    if (asking && ++c.asks == asks_without_a_word) say_unheard(c);
  }
}

// Called after the end of the thread. A peer that misses the datagram waits longer than necessary, but not for ever.
void connection_manager::say_leave() noexcept {
  const std::int64_t until_ns = detail::clock_ns() + leave_ns;
  const auto all_busy = [this] { return std::ranges::all_of(sendings_, &sending::busy); };
  const auto any_busy = [this] { return std::ranges::any_of(sendings_, &sending::busy); };
  const auto wait_while = [&](const auto& holds) {
    while (holds() && detail::clock_ns() < until_ns) take_completions();
    return !holds();
  };
  for (connection& c : connections_) {
    const connection_state state = c.state.load();
    if (c.of != channel::control || c.peer == rank_ ||
        (state != connection_state::ready && state != connection_state::answering))
      continue;
    if (!wait_while(all_busy)) return;
    say(c, greeting::goodbye);
  }
  (void)wait_while(any_busy);
}

// Warns once: an answer may still arrive. A computing peer answers as well, and a death would be reported.
void connection_manager::say_unheard(const connection& c) noexcept {
  if (std::exchange(unheard_said_, true)) return;
  std::fprintf(stderr,
               "rma: rank %d: rank %d does not answer on %s: still asking; are both devices on one network, and may "
               "packets pass? See RMA_DEVICE, and rma-info there\n",
               rank_, c.peer, device_.describe().c_str());
}

// Warns once: operations keep waiting for the connection, since the device may have room later.
void connection_manager::complain(const connection& c) noexcept {
  if (std::exchange(complained_, true)) return;
  std::fprintf(stderr, "rma: rank %d: the RDMA device cannot connect to rank %d (%s): trying again\n", rank_, c.peer,
               std::strerror(errno));
}

// Both the asking and the asked side make their queue pair when it is needed.
bool connection_manager::prepare(connection& c) noexcept {
  if (c.queue_pair != nullptr) return true;
  std::uint32_t inline_bytes = 0;
  ibv_qp* const made = make_queue_pair(c, inline_bytes);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = device_.port();
  if (c.of == channel::control)
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  constexpr int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (made == nullptr || ::ibv_modify_qp(made, &attr, mask) != 0) {
    complain(c);
    if (made != nullptr) ::ibv_destroy_qp(made);
    return false;
  }
  c.queue_pair = made;
  c.inline_max.store(inline_bytes, std::memory_order_relaxed);
  by_queue_pair_[made->qp_num] = &c;
  return true;
}

ibv_qp* connection_manager::make_queue_pair(const connection& c, std::uint32_t& inline_bytes) noexcept {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = plan_.completions;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_sge = plan_.gather;
  if (c.of == channel::bulk) {
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = plan_.bulk_gather;
    wanted.cap.max_send_wr = wanted.cap.max_recv_wr = plan_.bulk_entries;
    return ::ibv_create_qp(device_.domain(), &wanted);
  }
  wanted.srq = plan_.receives;
  wanted.cap.max_send_wr = plan_.entries;
  wanted.cap.max_inline_data = plan_.inline_bytes;
  ibv_qp* made = ::ibv_create_qp(device_.domain(), &wanted);
  if (made == nullptr && errno == EINVAL) {  // the device supports less inline data
    wanted.cap.max_inline_data = 0;
    made = ::ibv_create_qp(device_.domain(), &wanted);
  }
  inline_bytes = std::min(wanted.cap.max_inline_data, plan_.inline_bytes);
  return made;
}

void connection_manager::say(connection& c, greeting what) noexcept {
  if (!prepare(c)) return;
  const auto free = std::find_if(sendings_.begin(), sendings_.end(), [](const sending& s) { return !s.busy; });
  if (free == sendings_.end()) return;  // repeated when it is due
  const auto slot = static_cast<std::size_t>(free - sendings_.begin());
  hello h{};
  h.magic = hello_magic;
  h.what = what;
  h.mtu = static_cast<std::uint8_t>(device_.mtu());
  h.lid = mine_.port.lid;
  std::memcpy(h.gid, mine_.port.gid.raw, sizeof h.gid);
  h.from = rank_;
  h.to = c.peer;
  h.connection_manager = mine_.queue_pair;
  h.queue_pair = c.queue_pair->qp_num;
  h.first_packet = c.first_packet;
  h.reads = static_cast<std::uint16_t>(plan_.reads);
  h.generation = c.generation;
  h.over = c.over;
  h.of = c.of;
  h.nonce_from = mine_.nonce;
  h.nonce_to = c.connection_manager.nonce;
  if (!sign(h, key_)) return;
  std::byte* const at = memory_.data() + receives_posted * datagram_bytes + slot * sizeof h;
  std::memcpy(at, &h, sizeof h);
  ibv_ah_attr way = device_.way_to(c.connection_manager.port);
  free->way = ::ibv_create_ah(device_.domain(), &way);
  if (free->way == nullptr) return;
  ibv_sge from{reinterpret_cast<std::uint64_t>(at), sizeof h, region_->lkey};
  ibv_send_wr request{};
  request.wr_id = receives_posted + slot;
  request.sg_list = &from;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud.ah = free->way;
  request.wr.ud.remote_qpn = c.connection_manager.queue_pair;
  request.wr.ud.remote_qkey = queue_key;
  ibv_send_wr* bad = nullptr;
  if (::ibv_post_send(queue_pair_, &request, &bad) != 0) {
    ::ibv_destroy_ah(std::exchange(free->way, nullptr));
    return;
  }
  free->busy = true;
}

// Packets that never leave the device may have its largest MTU; if the driver refuses that, the network's.
bool connection_manager::make_ready_to_receive(connection& c, const hello& h) noexcept {
  if (!prepare(c)) return false;
  const auto theirs = static_cast<ibv_mtu>(std::clamp<int>(h.mtu, IBV_MTU_256, IBV_MTU_4096));
  const ibv_mtu common = std::min(device_.mtu(), theirs);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = device_.is_own(c.connection_manager.port) ? device_.loop_back_mtu() : common;
  attr.dest_qp_num = h.queue_pair;
  attr.rq_psn = h.first_packet & 0xffffff;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(plan_.reads);
  attr.min_rnr_timer = 12;  // 0.64 ms
  attr.ah_attr = device_.way_to(c.connection_manager.port);
  constexpr int all = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (::ibv_modify_qp(c.queue_pair, &attr, all) == 0) return true;
  if (attr.path_mtu == common) return false;
  attr.path_mtu = common;
  return ::ibv_modify_qp(c.queue_pair, &attr, all) == 0;
}

// With a short time-out a device in software would time out repeatedly in a stream of writes, and retransmit
// outstanding packets, although none is lost (docs/decisions/0011).
bool connection_manager::make_ready_to_send(connection& c, std::uint32_t reads) noexcept {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = device_.emulated() ? 18 : 16;  // 1.07 s, 0.27 s
  attr.retry_cnt = 7;  // fails after 2 s without the peer; Linux's software retries until the job reports it
  attr.rnr_retry = 7;  // for ever: the peer may compute
  attr.sq_psn = c.first_packet;
  attr.max_rd_atomic = static_cast<std::uint8_t>(std::clamp(reads, 1U, plan_.reads));
  return ::ibv_modify_qp(c.queue_pair, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

}  // namespace rma::verbs
