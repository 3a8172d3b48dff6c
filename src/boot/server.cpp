// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loop: waiting, accepting, reading, writing, cutting off. The meaning of the frames is in server_session.cpp.
#include "boot/server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "boot/descriptors.hpp"
#include "boot/server_connection.hpp"
#include "core/threads.hpp"
#include "rma/error.hpp"

namespace rma::boot {

namespace {

constexpr std::size_t strangers_beyond_size = 64;
constexpr std::size_t out_bytes_max = std::size_t{8} << 20;  // a rank that does not read is not served
constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::chrono::milliseconds departure_patience{200};
constexpr int pending_reads_max = 256;        // more than a socket holds; what a dead rank has forked may go on sending
constexpr std::size_t fixed_descriptors = 2;  // in `watched`, before the connections

unique_fd make_event() {
  unique_fd made{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!made) throw Error(status::bad_boot, "cannot create an eventfd: " + error_text(errno));
  return made;
}

server_options checked(const server_options& how) {
  if (how.size < 1) throw Error(status::bad_boot, "a job needs at least one rank, not " + std::to_string(how.size));
  if (how.key.size() < key_chars_min) {
    throw Error(status::bad_boot, "the job key (RMA_KEY) needs at least " + std::to_string(key_chars_min) +
                                      " characters, got " + std::to_string(how.key.size()));
  }
  return how;
}

}  // namespace

server::server(const server_options& how)
    : size_(checked(how).size),
      key_(how.key),
      handshake_timeout_(how.handshake_timeout_ms),
      peer_timeout_ms_(how.peer_timeout_ms),
      strangers_max_(how.strangers_max != 0 ? how.strangers_max
                                            : static_cast<std::size_t>(how.size) + strangers_beyond_size),
      where_(parse_address(how.address)),
      listener_(listen_at(where_)),
      wake_event_(make_event()),
      abort_event_(make_event()),
      next_round_(static_cast<std::size_t>(how.size), 0),
      ended_(static_cast<std::size_t>(how.size), false) {}

server::~server() { stop(); }

void server::start() {
  thread_ = detail::start_thread("a thread for the job's server", [this] { run(); });
}

void server::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_loop();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  for (const auto& [number, seated] : rounds_)
    seated->logic.broadcast(frame_writer(message::closing).u32(static_cast<std::uint32_t>(number)).finish());
  for (const auto& each : connections_) flush(*each);
  rounds_.clear();
  connections_.clear();
  listener_.reset();
}

void server::wake_loop() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_event_.get(), &one, sizeof one);  // full means already awake
}

void server::run() {
  std::vector<pollfd> polled;
  for (;;) {
    wait_for_work(polled);
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    serve(polled);
  }
}

/// Fills `watched`: wake event, listener, then the connections in their order.
void server::wait_for_work(std::vector<pollfd>& polled) {
  auto earliest = boot_clock::time_point::max();
  polled.clear();
  {
    const std::lock_guard lock(mutex_);
    const bool accepting = boot_clock::now() >= accept_again_;
    if (!accepting) earliest = accept_again_;
    polled.push_back({wake_event_.get(), POLLIN, 0});
    polled.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
    for (const auto& each : connections_) {
      const bool reading = each->out.size() - each->out_at < out_bytes_max;
      const int events = (reading ? POLLIN : 0) | (each->has_output() ? POLLOUT : 0);
      polled.push_back({each->fd.get(), static_cast<short>(events), 0});
      if (each->now != connection::phase::member) earliest = std::min(earliest, each->deadline);
    }
    for (const auto& [number, seated] : rounds_) earliest = std::min(earliest, seated->tell_at);
  }
  const int timeout_ms = earliest == boot_clock::time_point::max() ? -1 : ms_until(earliest);
  (void)::poll(polled.data(), polled.size(), timeout_ms);  // an error shows as "nothing ready"
}

void server::serve(const std::vector<pollfd>& polled) {
  std::uint64_t count = 0;
  (void)!::read(wake_event_.get(), &count, sizeof count);
  for (std::size_t i = fixed_descriptors; i < polled.size(); ++i) {
    connection& each = *connections_[i - fixed_descriptors];
    if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !each.doomed) read_from(each);
  }
  if (polled[1].revents != 0) accept_all();
  const auto now = boot_clock::now();
  for (const auto& each : connections_) {
    if (each->now != connection::phase::member && each->deadline <= now) each->doomed = true;
  }
  drop_doomed();
  tell_departures();
  for (const auto& each : connections_) flush(*each);
  forget_old_rounds();
}

void server::accept_all() {
  for (;;) {
    unique_fd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!fd) {
      const int error = errno;
      if (error == EINTR || error == ECONNABORTED) continue;
      // Out of descriptors the listener stays readable; without a pause the loop would spin.
      if (error != EAGAIN) accept_again_ = boot_clock::now() + accept_pause;
      if (out_of_descriptors(error)) complain();
      return;
    }
    if (where_.local && !peer_is_same_user(fd.get())) continue;
    if (!where_.local) tune(fd.get(), peer_timeout_ms_);
    make_room();
    connections_.push_back(std::make_unique<connection>(std::move(fd), boot_clock::now() + handshake_timeout_));
  }
}

/// Ranks that join wait, without a word from here.
void server::complain() {
  if (std::exchange(has_complained_, true)) return;
  std::fprintf(stderr, "rma: the server of this job has no descriptor left for the ranks that join, which wait (%s)\n",
               descriptors_remedy().c_str());
}

/// Drops the oldest unauthenticated connection: a rank of the job needs only one round trip.
void server::make_room() {
  connection* oldest = nullptr;
  std::size_t strangers = 0;
  for (const auto& each : connections_) {
    if (!each->stranger() || each->doomed) continue;
    if (oldest == nullptr) oldest = each.get();
    ++strangers;
  }
  if (strangers >= strangers_max_) oldest->doomed = true;
}

/// False if there is nothing more, now or ever.
bool server::read_from(connection& from) {
  std::array<char, 65536> chunk;
  const ssize_t got = ::recv(from.fd.get(), chunk.data(), chunk.size(), 0);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) from.doomed = true;
  if (got <= 0 || from.now == connection::phase::parting) return false;
  from.in.feed({chunk.data(), static_cast<std::size_t>(got)});
  frame received;
  while (!from.doomed && from.now != connection::phase::parting) {
    const auto result = from.in.next(received);
    if (result == frame_reader::result::garbage) from.doomed = true;
    if (result != frame_reader::result::ready) break;
    on_frame(from, received);
  }
  return !from.doomed;
}

void server::read_pending(int rank) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : connections_) {
      if (each->rank != rank) continue;
      int reads = pending_reads_max;
      while (each->now == connection::phase::member && !each->doomed && read_from(*each) && --reads > 0) {}
    }
  }
  wake_loop();
}

/// Mostly all ranks leave at once, so that no remaining rank has to be notified of each departure.
void server::tell_departures() {
  const auto now = boot_clock::now();
  for (const auto& [number, seated] : rounds_) {
    if (!seated->logic.has_departures()) continue;
    if (seated->tell_at == boot_clock::time_point::max()) seated->tell_at = now + departure_patience;
    if (seated->tell_at > now) continue;
    seated->logic.tell_departures();
    seated->tell_at = boot_clock::time_point::max();
  }
}

void server::drop_doomed() {
  // A death can doom further connections, never fewer: repeat until all that are doomed have left the round.
  for (bool repeat = true; repeat;) {
    repeat = false;
    for (const auto& each : connections_) {
      if (!each->doomed || each->now != connection::phase::member) continue;
      const int rank = each->rank;
      flush(*each);
      unseat(*each);
      death_of(rank);
      repeat = true;
    }
  }
  std::erase_if(connections_, [](const auto& each) { return each->doomed; });
}

void server::flush(connection& to) {
  while (to.has_output()) {
    const ssize_t sent = ::send(to.fd.get(), to.out.data() + to.out_at, to.out.size() - to.out_at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // full: poll says when to go on; broken: reading says so too
    to.out_at += static_cast<std::size_t>(sent);
  }
  to.out.clear();
  to.out_at = 0;
}

}  // namespace rma::boot
