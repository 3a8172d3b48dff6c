// SPDX-License-Identifier: Apache-2.0
/// \file
/// Regions, and the begin and the end of connections.
#include "fabric/tcp/tcp_fabric.hpp"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "boot/descriptors.hpp"
#include "core/assert.hpp"
#include "core/clock.hpp"
#include "rma/error.hpp"

namespace rma::tcp {
namespace {

constexpr std::int64_t no_descriptor_ns = 50'000'000;
constexpr std::int64_t goodbye_ns = 500'000'000;  // messages not sent in this time are dropped
constexpr std::size_t strangers_max = 64;         // besides one for each rank of the job
constexpr unsigned attempts_max = 3;
constexpr std::size_t pieces_max = 32;
constexpr int looks_per_timeout = 8;  // checks of a line for silence

/// Returns false if the kernel has no report.
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
    : messaged_fabric(how.rank, how.size),
      how_(std::move(how)),
      where_{.local = false, .host = how_.host, .port = "0"} {
  try {
    listener_ = boot::listen_at(where_);
  } catch (const Error& e) {
    throw Error(status::unreachable, fmt::format("the TCP fabric cannot listen at {}: {}", how_.host, e.what()));
  }
  events_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!events_ || !watch(listener_.get(), EPOLLIN, true))
    throw Error(status::unreachable, "the TCP fabric gets no epoll set: " + boot::error_text(errno));
  straight_bytes_ = straight_bytes;
  caps_.name = "tcp";
  caps_.gather_max = pieces_max;
  caps_.scatter_max = pieces_max;
  caps_.bulk_pieces_max = bulk_pieces_max;
  caps_.handler_bytes_max = 0;
  caps_.handler_pieces_bytes_max = 4096;
  caps_.message_bytes_max = message_bytes;
  caps_.transfer_bytes_max = transfer_bytes;
  caps_.costs = {.write_ns = 10'600,  // by rma-tune on a loopback device, median of three
                 .piece_ns = 105,
                 .byte_ns = 0.14,
                 .message_ns = 10'600,
                 .message_byte_ns = 0.21,
                 .list_entry_ns = 3};
  caps_.messages_after_writes = true;
  caps_.write_means = fabric::write_completion::placed;
  caps_.write_with_immediate = true;
  caps_.atomics = true;
}

tcp_fabric::~tcp_fabric() {
  say_goodbye(detail::clock_ns() + goodbye_ns);
  for (auto& [rank, p] : by_rank_) close(connection_of(*p));
}

void tcp_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  messaged_fabric::counts(add);
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

// Data in flight to the region are discarded.
void tcp_fabric::deregister_region(const fabric::region_key& key) noexcept {
  messaged_fabric::deregister_region(key);
  if (key.key == 0) return;
  for (auto& [rank, p] : by_rank_) {
    connection& c = connection_of(*p);
    if (!c.lands() || c.answers || c.landing_key != key.key) continue;
    for (; c.lands(); ++c.landed) c.dropping += c.landing[c.landed].bytes;
    c.put_error = status::transfer_failed;
  }
}

// ---- begin of connections -----------------------------------------------------------------------------------

// Messages that are sent before the line is open wait in `out`.
status tcp_fabric::connect(messaged::peer& p) noexcept {
  connection& c = connection_of(p);
  std::string text;
  if (const status s = directory_->look_up(c.rank, address_key(c.rank), text); !ok(s)) return s;
  c.begun = true;
  try {
    boot::unique_fd line = boot::begin_connect(boot::parse_address(text));
    if (!line && boot::out_of_descriptors(errno)) {
      c.way = phase::postponed;
      postponed_.push_back(&c);
      wait_for_descriptors();
      return status::done;
    }
    c.way = phase::asking;
    ++c.attempts;
    if (line) {
      boot::tune(line.get(), how_.peer_timeout_ms);
      greetings_.push_back(
          std::make_unique<greeting>(std::move(line), how_.rank, how_.size, greeted_until_ns(), c.rank));
      if (watch(greetings_.back()->fd(), EPOLLOUT, true)) return status::done;
      greetings_.pop_back();
    }
  } catch (...) {
    // invalid address, or no memory: treated as a refused connection
    c.way = phase::asking;
  }
  suspect(c);
  return status::done;
}

// Called when a connection was refused: the peer does not listen any more, or its backlog is full.
void tcp_fabric::retry_or_suspect(connection& c) noexcept {
  if (c.way != phase::asking || c.state != messaged::connection_state::open) return;
  if (c.attempts < attempts_max) {
    (void)connect(c);
  } else {
    suspect(c);
  }
}

// Called when this process has no descriptor left. Connecting peers wait, and epoll does not watch the listener
// meanwhile, which would be readable all the time.
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
    if (c->way != phase::postponed || c->state != messaged::connection_state::open) continue;
    c->way = phase::none;
    c->begun = false;  // and stays so if the job has no address of the peer any more
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
      return;  // no memory or random numbers: retried later
    }
    if (!watch(greetings_.back()->fd(), EPOLLIN, true)) greetings_.pop_back();
  }
}

void tcp_fabric::step_greeting(int fd) noexcept {
  const auto at = std::ranges::find_if(greetings_, [fd](const auto& g) { return g->fd() == fd; });
  if (at == greetings_.end()) return;
  const bool was_connecting = (*at)->connecting();
  const greeting::outcome came = (*at)->step(how_.key);
  RMA_ASSERT(came == greeting::outcome::goes_on || (*at)->connects() == (came != greeting::outcome::introduced) ||
             came == greeting::outcome::failed);
  if (came == greeting::outcome::goes_on) {
    if (was_connecting) (void)watch(fd, EPOLLIN, false);
    return;
  }
  const std::unique_ptr<greeting> g = std::move(*at);
  greetings_.erase(at);
  RMA_ASSERT(came == greeting::outcome::failed || (g->peer() >= 0 && g->peer() < how_.size));
  switch (came) {
    case greeting::outcome::accept: return open(met_or_new(g->peer()), g->take_line());
    case greeting::outcome::mine_comes: met_or_new(g->peer()).way = phase::awaited; return;
    case greeting::outcome::introduced:
      if (accept(*g)) open(met_or_new(g->peer()), g->take_line());
      return;
    default: break;
  }
  if (!g->connects()) {
    ++strangers_;
    return;
  }
  connection& c = met_or_new(g->peer());
  // The peer may have timed out because this rank was computing: this does not count as an attempt.
  if (!g->connecting() && g->until_ns() < detail::clock_ns()) c.attempts = 0;
  retry_or_suspect(c);
}

// If both ranks connect at the same time, the lower rank's connection is used.
bool tcp_fabric::accept(greeting& g) noexcept {
  connection& c = met_or_new(g.peer());
  if (c.met || c.state != messaged::connection_state::open) return false;
  if (c.way == phase::asking && how_.rank < g.peer() && c.suspected_until_ns == 0) {
    (void)g.answer(how_.key, word::mine_comes);
    return false;
  }
  drop_own_attempt(g.peer());
  return g.answer(how_.key, word::accept);
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
  if (c.met || c.state != messaged::connection_state::open || !watch(line.get(), EPOLLIN, false)) return;
  boot::let_data_wait(line.get(), how_.peer_timeout_ms);
  c.line = std::move(line);
  c.way = phase::met;
  c.begun = c.met = true;
  by_line_[c.line.get()] = &c;
  ++connections_;
  clear_suspicion(c);
  heat(c, 0);
  flush(c);
}

// ---- end of connections -------------------------------------------------------------------------------------

void tcp_fabric::close(connection& c) noexcept {
  if (!c.line) return;
  watch_room(c, false);
  by_line_.erase(c.line.get());
  std::ranges::replace(hot_, &c, static_cast<connection*>(nullptr));
  (void)::shutdown(c.line.get(), SHUT_WR);
  c.line.reset();
  c.out.clear();
}

void tcp_fabric::lose(connection& c) noexcept {
  close(c);
  if (c.state == messaged::connection_state::left) {
    abandon(c);
  } else {
    suspect(c);
  }
}

// Closes lines to hosts that do not acknowledge waiting data; the kernel ends lines without waiting data.
void tcp_fabric::lose_the_silent() noexcept {
  const std::int64_t now_ns = detail::clock_ns();
  if (now_ns < ask_silence_at_ns_) return;
  ask_silence_at_ns_ = now_ns + std::int64_t{how_.peer_timeout_ms} * 1'000'000 / looks_per_timeout;
  for (auto& [rank, p] : by_rank_) {
    connection& c = connection_of(*p);
    line_report r;
    if (c.line && report_of(c.line.get(), r) && c.quiet.lasts(r, now_ns / 1'000'000, how_.peer_timeout_ms)) lose(c);
  }
}

void tcp_fabric::drop(messaged::peer& p) noexcept {
  connection& c = connection_of(p);
  drop_own_attempt(c.rank);
  close(c);
  c.in.clear();
  c.out.clear();
  c.landing.clear();
  c.landed = c.dropping = 0;
  abandon_bulk(c);
}

bool tcp_fabric::all_sent() noexcept {
  return std::ranges::all_of(by_rank_, [](const auto& each) { return connection_of(*each.second).out.empty(); });
}

// ---- events of the kernel -----------------------------------------------------------------------------------

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
