// SPDX-License-Identifier: Apache-2.0
/// \file
/// Regions, connections, and how they begin and end.
#include "fabric/tcp/tcp_fabric.hpp"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "boot/descriptors.hpp"
#include "core/clock.hpp"
#include "rma/error.hpp"

namespace rma::tcp {
namespace {

constexpr std::int64_t doubt_ns = 500'000'000;  // deaths are news by then, and so is the job's end
constexpr std::int64_t no_descriptor_ns = 50'000'000;
constexpr std::int64_t goodbye_ns = 500'000'000;  // what does not go out in this time stays
constexpr std::size_t strangers_max = 64;         // more than the job has ranks
constexpr unsigned attempts_max = 3;
constexpr std::size_t pieces_max = 32;
constexpr int looks_per_timeout = 8;  // whether a line is silent

/// False if the kernel does not say.
bool report_of(int line, line_report& r) noexcept {
  tcp_info said{};
  socklen_t bytes = sizeof said;
  if (::getsockopt(line, IPPROTO_TCP, TCP_INFO, &said, &bytes) != 0) return false;
  r = {std::min(said.tcpi_last_ack_recv, said.tcpi_last_data_recv), said.tcpi_probes, said.tcpi_total_retrans};
  return true;
}

}  // namespace

std::string address_key(int rank) { return fmt::format("tcp/{}", rank); }

tcp_fabric::tcp_fabric(start how)
    : network(*this, *this), how_(std::move(how)), where_{.local = false, .host = how_.host, .port = "0"} {
  try {
    listener_ = boot::listen_at(where_);
  } catch (const Error& e) {
    throw Error(status::unreachable, fmt::format("the TCP fabric cannot listen at {}: {}", how_.host, e.what()));
  }
  events_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!events_ || !watch(listener_.get(), EPOLLIN, true))
    throw Error(status::unreachable, "the TCP fabric gets no epoll set: " + boot::error_text(errno));
  caps_.name = "tcp";
  caps_.gather_max = pieces_max;
  caps_.scatter_max = pieces_max;
  caps_.bulk_pieces_max = bulk_pieces_max;
  caps_.handler_bytes_max = 0;
  caps_.handler_pieces_bytes_max = 4096;
  caps_.message_bytes_max = message_bytes;
  caps_.transfer_bytes_max = transfer_bytes;
  caps_.messages_after_writes = true;
  caps_.write_means = fabric::write_completion::placed;
  caps_.write_with_immediate = true;
  caps_.atomics = true;
}

tcp_fabric::~tcp_fabric() { say_goodbye(); }

void tcp_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  add("tcp_puts", puts_);
  add("tcp_gets", gets_);
  add("tcp_atomics", atomics_);
  add("tcp_messages", messages_);
  add("tcp_batches", batches_sent_);
  add("tcp_connections", connections_);
  add("tcp_strangers", strangers_);
}

std::string tcp_fabric::route(int peer) {
  constexpr std::string_view scheme = "tcp://";
  std::string text;
  if (peer == how_.rank || !ok(directory_->look_up(peer, address_key(peer), text)) || !text.starts_with(scheme))
    return {};
  return text.substr(scheme.size());
}

// ---- regions ------------------------------------------------------------------------------------------------

status tcp_fabric::register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  key = {reinterpret_cast<std::uint64_t>(at), bytes, 0};
  if (bytes == 0) return status::done;
  key.key = next_key_++;
  regions_.emplace(key.key, registered{key.address, bytes});
  return status::done;
}

// What is on its way into the region goes nowhere. Keys are never used twice.
void tcp_fabric::deregister_region(const fabric::region_key& key) noexcept {
  if (regions_.erase(key.key) == 0) return;
  for (auto& [peer, c] : by_peer_) {
    if (!c->lands() || c->answers || c->landing_key != key.key) continue;
    for (; c->lands(); ++c->landed) c->dropping += c->landing[c->landed].bytes;
    c->put_error = status::transfer_failed;
  }
}

// ---- how connections begin ----------------------------------------------------------------------------------

connection& tcp_fabric::known(int peer) noexcept {
  auto& c = by_peer_[peer];
  if (c == nullptr) c = std::make_unique<connection>(peer);
  return *c;
}

// What is said before there is a line waits in `out`.
status tcp_fabric::reach(int peer, connection*& c) noexcept {
  if (last_peer_ == nullptr || last_peer_->peer != peer) [[unlikely]]
    last_peer_ = &known(peer);
  c = last_peer_;
  if (c->state >= connection_state::left) [[unlikely]]
    return status::peer_failed;
  if (c->doubt_until_ns != 0) [[unlikely]]
    return status::retry_queue_full;
  return c->state != connection_state::none ? status::done : connect(*c);
}

status tcp_fabric::connect(connection& c) noexcept {
  std::string text;
  if (const status s = directory_->look_up(c.peer, address_key(c.peer), text); !ok(s)) return s;
  try {
    boot::unique_fd line = boot::begin_connect(boot::parse_address(text));
    if (!line && boot::out_of_descriptors(errno)) {
      c.state = connection_state::postponed;
      postponed_.push_back(&c);
      wait_for_descriptors();
      return status::done;
    }
    c.state = connection_state::asking;
    ++c.attempts;
    if (line) {
      boot::tune(line.get(), how_.peer_timeout_ms);
      greetings_.push_back(
          std::make_unique<greeting>(std::move(line), how_.rank, how_.size, greeted_until_ns(), c.peer));
      if (watch(greetings_.back()->fd(), EPOLLOUT, true)) return status::done;
      greetings_.pop_back();
    }
  } catch (...) {
    // no such address, or no memory: as if nobody listened
    c.state = connection_state::asking;
  }
  doubt(c);
  return status::done;
}

// Nobody listens there any more, or not yet to so many.
void tcp_fabric::retry_or_doubt(connection& c) noexcept {
  if (c.state != connection_state::asking) return;
  if (c.attempts < attempts_max) {
    (void)connect(c);
  } else {
    doubt(c);
  }
}

// That is nobody's fault but this process's. Who connects waits, and the listener, which has news all the time, is not
// asked meanwhile.
void tcp_fabric::wait_for_descriptors() noexcept {
  try_again_at_ns_ = detail::clock_ns() + no_descriptor_ns;
  (void)watch(listener_.get(), 0, false);
  if (std::exchange(has_complained_, true)) return;
  std::fprintf(stderr, "rma: rank %d: no descriptor left for a connection to another rank: it waits for one (%s)\n",
               how_.rank, boot::descriptors_remedy().c_str());
}

void tcp_fabric::try_again() noexcept {
  if (detail::clock_ns() < try_again_at_ns_) return;
  try_again_at_ns_ = 0;
  (void)watch(listener_.get(), EPOLLIN, false);
  for (connection* c : std::exchange(postponed_, {})) {
    if (c->state != connection_state::postponed) continue;
    c->state = connection_state::none;  // and stays so if the job does not say any more where the peer is
    (void)connect(*c);
  }
}

std::int64_t tcp_fabric::greeted_until_ns() const noexcept {
  return detail::clock_ns() + std::int64_t{how_.stranger_ms} * 1'000'000;
}

void tcp_fabric::accept_all() noexcept {
  for (;;) {
    boot::unique_fd line(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!line) {
      if (boot::out_of_descriptors(errno)) wait_for_descriptors();
      return;
    }
    const auto waiting = std::ranges::count_if(greetings_, [](const auto& g) { return !g->connects(); });
    if (static_cast<std::size_t>(waiting) >= strangers_max + static_cast<std::size_t>(how_.size))
      drop_eldest_stranger();
    boot::tune(line.get(), how_.peer_timeout_ms);
    try {
      greetings_.push_back(std::make_unique<greeting>(std::move(line), how_.rank, how_.size, greeted_until_ns()));
    } catch (...) {
      return;  // no memory, no random numbers: not now
    }
    if (!watch(greetings_.back()->fd(), EPOLLIN, true)) greetings_.pop_back();
  }
}

void tcp_fabric::step_greeting(int fd) noexcept {
  const auto at = std::ranges::find_if(greetings_, [fd](const auto& g) { return g->fd() == fd; });
  if (at == greetings_.end()) return;
  const bool was_connecting = (*at)->connecting();
  const greeting::outcome came = (*at)->step(how_.key);
  if (came == greeting::outcome::goes_on) {
    if (was_connecting) (void)watch(fd, EPOLLIN, false);
    return;
  }
  const std::unique_ptr<greeting> g = std::move(*at);
  greetings_.erase(at);
  switch (came) {
    case greeting::outcome::welcome: return open(known(g->peer()), g->take_line());
    case greeting::outcome::mine_comes: known(g->peer()).state = connection_state::awaited; return;
    case greeting::outcome::introduced:
      if (welcome(*g)) open(known(g->peer()), g->take_line());
      return;
    default: break;
  }
  if (!g->connects()) {
    ++strangers_;
    return;
  }
  connection& c = known(g->peer());
  // The peer may have lost patience with a rank that computes: that was no attempt.
  if (!g->connecting() && g->until_ns() < detail::clock_ns()) c.attempts = 0;
  retry_or_doubt(c);
}

// Of two attempts at the same time the lower rank's counts.
bool tcp_fabric::welcome(greeting& g) noexcept {
  connection& c = known(g.peer());
  if (c.state >= connection_state::alive) return false;
  if (c.state == connection_state::asking && how_.rank < g.peer() && c.doubt_until_ns == 0) {
    (void)g.answer(how_.key, word::mine_comes);
    return false;
  }
  drop_own_attempt(g.peer());
  return g.answer(how_.key, word::welcome);
}

void tcp_fabric::drop_own_attempt(int peer) noexcept {
  std::erase_if(greetings_, [peer](const auto& g) { return g->connects() && g->peer() == peer; });
}

void tcp_fabric::drop_eldest_stranger() noexcept {
  const auto eldest = std::ranges::find_if(greetings_, [](const auto& g) { return !g->connects(); });
  if (eldest == greetings_.end()) return;
  greetings_.erase(eldest);
  ++strangers_;
}

void tcp_fabric::expire_strangers() noexcept {
  const std::int64_t now_ns = detail::clock_ns();
  strangers_ += std::erase_if(greetings_, [now_ns](const auto& g) { return !g->connects() && g->until_ns() < now_ns; });
}

void tcp_fabric::open(connection& c, boot::unique_fd line) noexcept {
  if (c.state >= connection_state::alive || !watch(line.get(), EPOLLIN, false)) return;
  boot::let_data_wait(line.get(), how_.peer_timeout_ms);
  c.line = std::move(line);
  c.state = connection_state::alive;
  by_line_[c.line.get()] = &c;
  ++connections_;
  if (std::exchange(c.doubt_until_ns, 0) != 0) std::erase(broken_, &c);
  heat(c, 0);
  flush(c);
}

// ---- how they end -------------------------------------------------------------------------------------------

void tcp_fabric::close(connection& c) noexcept {
  if (!c.line) return;
  watch_room(c, false);
  by_line_.erase(c.line.get());
  std::ranges::replace(hot_, &c, static_cast<connection*>(nullptr));
  (void)::shutdown(c.line.get(), SHUT_WR);
  c.line.reset();
  c.out.clear();
}

// The peer may have died, ended the job or left. If the job does not say so soon, it is taken for lost.
void tcp_fabric::lose(connection& c) noexcept {
  close(c);
  if (c.state == connection_state::left) {
    abandon(c);
  } else {
    doubt(c);
  }
}

// A host that does not answer while data wait for it; where none wait, the kernel ends the line.
void tcp_fabric::lose_the_silent() noexcept {
  const std::int64_t now_ns = detail::clock_ns();
  if (now_ns < ask_silence_at_ns_) return;
  ask_silence_at_ns_ = now_ns + std::int64_t{how_.peer_timeout_ms} * 1'000'000 / looks_per_timeout;
  for (auto& [peer, c] : by_peer_) {
    line_report r;
    if (c->line && report_of(c->line.get(), r) && c->quiet.lasts(r, now_ns / 1'000'000, how_.peer_timeout_ms)) lose(*c);
  }
}

void tcp_fabric::doubt(connection& c) noexcept {
  if (c.doubt_until_ns != 0) return;
  c.doubt_until_ns = detail::clock_ns() + doubt_ns;
  broken_.push_back(&c);
}

bool tcp_fabric::doubt_is_over(const connection& c) const noexcept {
  return c.state >= connection_state::left || detail::clock_ns() >= c.doubt_until_ns;
}

void tcp_fabric::resolve_doubts(fabric::sink& to) noexcept {
  std::vector<int> lost;
  std::erase_if(broken_, [&](connection* c) {
    if (!doubt_is_over(*c)) return false;
    if (c->state < connection_state::left) {
      c->state = connection_state::broken;
      lost.push_back(c->peer);
    }
    abandon(*c);
    return true;
  });
  for (const int peer : lost) to.on_broken(peer);
}

// Nothing is heard of the peer any more, and everything that it has not answered ends.
void tcp_fabric::abandon(connection& c) noexcept {
  drop_own_attempt(c.peer);
  close(c);
  c.in.clear();
  c.out.clear();
  c.landing.clear();
  c.landed = c.dropping = 0;
  abandon_bulk(c);
  while (c.first != nullptr) end_first(c, status::peer_failed);
  for (const std::uint64_t token : c.written) end(token, status::peer_failed);
  c.written.clear();
  c.unflushed = 0;
}

// From any thread, which may hold locks of its own: the next poll does it, before anything else is taken.
void tcp_fabric::forget(int peer) noexcept {
  const std::lock_guard guard(deaths_lock_);
  deaths_.push_back(peer);
  has_deaths_.store(true, std::memory_order_release);
}

void tcp_fabric::take_deaths() noexcept {
  std::vector<int> news;
  {
    const std::lock_guard guard(deaths_lock_);
    news.swap(deaths_);
    has_deaths_.store(false, std::memory_order_relaxed);
  }
  for (const int peer : news) {
    connection& c = known(peer);
    c.state = connection_state::dead;
    abandon(c);
  }
}

// Who leaves goes on serving until this rank has nothing under way there.
void tcp_fabric::answer_leavers() noexcept {
  std::erase_if(leavers_, [this](connection* c) {
    if (c->state != connection_state::left || !c->line) return true;
    if (!c->idle()) return false;
    transmit(*c, static_cast<std::uint16_t>(own_kind::understood), {}, {}, departure::now);
    return true;
  });
}

// It is the last thing that a peer sends.
bool tcp_fabric::expects_goodbye(int peer) noexcept {
  const auto at = by_peer_.find(peer);
  return at != by_peer_.end() && at->second->state == connection_state::alive && at->second->doubt_until_ns == 0;
}

// Others learn that what ends now is no failure, and are served until they say that nothing is under way; who does not
// call the library now is not waited for long.
void tcp_fabric::say_goodbye() noexcept {
  sink_ = nullptr;
  std::vector<connection*> told;
  for (auto& [peer, c] : by_peer_) {
    if (c->state == connection_state::none || c->state > connection_state::alive || c->doubt_until_ns != 0) continue;
    transmit(*c, static_cast<std::uint16_t>(own_kind::goodbye), {}, {}, departure::now);
    told.push_back(c.get());
  }
  progress_until(detail::clock_ns() + goodbye_ns, [this, &told] {
    if (has_deaths_.load(std::memory_order_acquire)) take_deaths();
    take_unread();
    answer_leavers();
    flush_batches();
    std::erase_if(told, [](const connection* c) {
      return c->understood || c->state > connection_state::alive || c->doubt_until_ns != 0;
    });
    const bool sent = std::ranges::all_of(by_peer_, [](const auto& each) { return each.second->out.empty(); });
    return told.empty() && leavers_.empty() && under_way_ == 0 && sent;
  });
  for (auto& [peer, c] : by_peer_) close(*c);
}

template <class Over>
void tcp_fabric::progress_until(std::int64_t until_ns, Over over) noexcept {
  while (!over()) {
    const std::int64_t left_ns = until_ns - detail::clock_ns();
    if (left_ns <= 0) return;
    if (look_at_all() != 0) continue;
    pollfd news{events_.get(), POLLIN, 0};
    const std::int64_t nap_ms = std::min<std::int64_t>(left_ns / 1'000'000 + 1, 10);  // deaths are told otherwise
    (void)::poll(&news, 1, static_cast<int>(nap_ms));
  }
}

// ---- what the kernel is asked about -------------------------------------------------------------------------

bool tcp_fabric::watch(int fd, std::uint32_t what, bool is_new) noexcept {
  epoll_event event{};
  event.events = what;
  event.data.fd = fd;
  return ::epoll_ctl(events_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0;
}

void tcp_fabric::watch_room(connection& c, bool on) noexcept {
  if (c.waits_for_room == on || !c.line) return;
  c.waits_for_room = on;
  blocked_ += on ? 1U : ~0U;
  (void)watch(c.line.get(), on ? EPOLLIN | EPOLLOUT : EPOLLIN, false);
}

}  // namespace rma::tcp
