// SPDX-License-Identifier: Apache-2.0
/// \file
/// Receiving of messages, and progress.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "fabric/tcp/tcp_fabric.hpp"

namespace rma::tcp {
namespace {

constexpr std::size_t in_bytes = 64 << 10;  // read at once, besides data that land in memory
constexpr std::size_t landing_pieces_max = bulk_pieces_max;
constexpr unsigned looks_max = 4;  // at the hot connections, before all are polled
constexpr int events_max = 64;
constexpr std::size_t much_bytes = 4096;

bool is_bulk(const front& f) noexcept { return f.kind == static_cast<std::uint16_t>(bulk_kind::data); }

}  // namespace

// ---- looking ------------------------------------------------------------------------------------------------

// Makes the connection of the last arrival the first. A connection with much data is not read directly: a read without
// a result would delay the kernel's receiving.
void tcp_fabric::heat(connection& c, std::size_t bytes) noexcept {
  if (bytes >= much_bytes) return (void)std::ranges::replace(hot_, &c, static_cast<connection*>(nullptr));
  if (hot_[0] == &c) return;
  hot_[1] = std::exchange(hot_[0], &c);
}

unsigned tcp_fabric::look() noexcept {
  if (!unread_.empty()) take_unread();
  return has_told() ? 0 : std::min(look_at_hot(), 1U);
}

bool tcp_fabric::progress() noexcept {
  take_unread();
  return look_at_all() != 0;
}

unsigned tcp_fabric::look_at_hot() noexcept {
  unsigned found = 0;
  for (connection* c : std::array(hot_)) {
    if (c != nullptr && c->line && receive(*c)) ++found;
  }
  if (found != 0 && blocked_ == 0 && ++looks_ < 8 * looks_max) return found;
  if (found == 0 && hot_[0] != nullptr && blocked_ == 0 && ++looks_ < looks_max) return 0;
  return found + look_at_all();
}

unsigned tcp_fabric::look_at_all() noexcept {
  looks_ = 0;
  if (try_again_at_ns_ != 0) [[unlikely]]
    try_again();
  std::array<epoll_event, events_max> events;
  const int count = ::epoll_wait(events_.get(), events.data(), events_max, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& e = events[static_cast<std::size_t>(i)];
    const int fd = e.data.fd;
    if (fd == listener_.get()) {
      accept_all();
      continue;
    }
    const auto at = by_line_.find(fd);
    if (at == by_line_.end()) {
      step_greeting(fd);
      continue;
    }
    connection& c = *at->second;
    if ((e.events & EPOLLOUT) != 0) flush(c);
    if ((e.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && c.line) (void)receive(c);
  }
  if (!greetings_.empty()) expire_strangers();
  lose_the_silent();
  return static_cast<unsigned>(std::max(count, 0));
}

// Makes one system call: data that land in memory are read there, the following bytes into `in`. It is not inlined, so
// that its lists are off the stack when handlers run.
[[gnu::noinline]] ssize_t tcp_fabric::read_line(connection& c, std::size_t& wanted) noexcept {
  std::array<iovec, landing_pieces_max + 1> pieces;
  std::size_t count = 0;
  for (std::size_t i = c.landed; i < c.landing.size(); ++i) {
    pieces[count++] = {c.landing[i].at, c.landing[i].bytes};
    wanted += c.landing[i].bytes;
  }
  pieces[count++] = {c.in.room(in_bytes), in_bytes};
  if (count == 1) return ::recv(c.line.get(), pieces[0].iov_base, in_bytes, 0);
  msghdr all{};
  all.msg_iov = pieces.data();
  all.msg_iovlen = count;
  return ::recvmsg(c.line.get(), &all, 0);
}

bool tcp_fabric::receive(connection& c) noexcept {
  if (c.unread) return false;  // messages in `in` come first
  std::size_t wanted = 0;
  const ssize_t n = read_line(c, wanted);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (n <= 0) {
    lose(c);
    return true;
  }
  const std::size_t bytes = static_cast<std::size_t>(n);
  heat(c, bytes);
  RMA_ASSERT(wanted == 0 || c.lands());
  const std::size_t landed = std::min(bytes, wanted);
  c.in.append(bytes - landed);
  if (landed != 0) land(c, landed);
  take(c);
  return true;
}

// Processes complete messages. If no more can be handed on, the rest waits for the next poll.
void tcp_fabric::take(connection& c) noexcept {
  while (!c.lands()) {
    if (c.dropping != 0) {
      const std::size_t gone = std::min(c.dropping, c.in.size());
      c.dropping -= gone;
      c.in.consume(gone);
      if (c.dropping != 0) return;
    }
    front f;
    if (c.in.size() < sizeof f) return;
    std::memcpy(&f, c.in.data(), sizeof f);
    const auto kind = static_cast<own_kind>(f.kind);
    const bool has_data = kind == own_kind::put || kind == own_kind::give_get || is_bulk(f);
    if (!(has_data ? begin_landing(c, f) : take_message(c, f))) return;
  }
}

// Returns false if no more can be taken now.
bool tcp_fabric::take_message(connection& c, const front& f) noexcept {
  RMA_ASSERT(c.line && !c.lands() && c.dropping == 0);
  const bool is_own = f.kind < static_cast<std::uint16_t>(bulk_kind::count_);
  if (f.bytes > message_bytes || (!is_own && f.kind < fabric::first_kind)) {
    lose(c);  // the peer is no rank of the job, or its memory is damaged
    return false;
  }
  if (c.in.size() < sizeof f + f.bytes) return false;
  const bool is_handed = !is_own || f.kind == static_cast<std::uint16_t>(own_kind::immediate);
  if (is_handed && !may_hand()) {
    if (sink_ == nullptr) {
      c.in.consume(sizeof f + f.bytes);  // this rank is leaving: the message is dropped
      return true;
    }
    RMA_ASSERT(!c.unread);  // it would not have been read
    if (!std::exchange(c.unread, true)) unread_.push_back(&c);
    return false;
  }
  const std::span<const std::byte> payload(c.in.data() + sizeof f, f.bytes);
  if (is_handed) {
    hand_on(c.rank, f.kind, payload);
  } else if (f.kind >= messaged::first_line_kind) {
    take_line_message(c, f.kind, payload);
  } else {
    take_own(c, static_cast<own_kind>(f.kind), payload);
  }
  if (!c.line) return false;  // the line was lost meanwhile, with its bytes
  c.in.consume(sizeof f + f.bytes);
  return true;
}

void tcp_fabric::take_unread() noexcept {
  for (connection* c : std::exchange(unread_, {})) {
    c->unread = false;
    if (c->line) take(*c);
  }
}

// ---- data that belong into memory ---------------------------------------------------------------------------

// Starts to receive a put, the reply to a get, or a bulk send, once the destination is known. False if more bytes are
// needed first.
bool tcp_fabric::begin_landing(connection& c, const front& f) noexcept {
  RMA_ASSERT(!c.lands() && c.dropping == 0);
  const bool is_put = f.kind == static_cast<std::uint16_t>(own_kind::put);
  const std::size_t head = is_put ? sizeof(placement) : is_bulk(f) ? sizeof(bulk_head) : sizeof(answer);
  if (f.bytes < head || f.bytes - head > transfer_bytes) {
    lose(c);
    return false;
  }
  const std::size_t bytes = f.bytes - head;
  const bool is_whole = is_put && bytes <= straight_bytes;  // no word of it may be visible in parts
  if (c.in.size() < sizeof f + head + (is_whole ? bytes : 0)) return false;
  if (!(is_put ? place_put(c, bytes) : is_bulk(f) ? place_bulk(c, bytes) : place_answer(c, bytes))) return false;
  c.in.consume(sizeof f + head);
  const std::size_t there = std::min(c.in.size(), bytes - c.dropping);
  std::size_t left = there;
  const std::byte* from = c.in.data();
  for (std::size_t i = c.landed; left != 0; ++i) {
    const std::size_t piece = std::min(left, c.landing[i].bytes);
    messaged::copy_in(c.landing[i].at, from, piece);
    from += piece;
    left -= piece;
  }
  c.in.consume(there);
  land(c, there);
  return true;
}

bool tcp_fabric::place_put(connection& c, std::size_t bytes) noexcept {
  placement where;
  std::memcpy(&where, c.in.data() + sizeof(front), sizeof where);
  std::byte* const at = own_memory(where.key, where.address, bytes);
  c.landing.clear();
  c.landed = 0;
  c.answers = false;
  if (at == nullptr && bytes != 0) {
    c.put_error = status::transfer_failed;
    c.dropping = bytes;
  } else if (bytes != 0) {
    c.landing.push_back({at, bytes});
    c.landing_key = where.key;
  }
  return true;
}

bool tcp_fabric::place_answer(connection& c, std::size_t bytes) noexcept {
  answer a;
  std::memcpy(&a, c.in.data() + sizeof(front), sizeof a);
  messaged::unanswered* const o = c.first;
  if (o == nullptr || o->answered_by != own_kind::give_get) {
    lose(c);
    return false;
  }
  c.landing.clear();
  c.landed = 0;
  if (static_cast<status>(a.result) == status::done && bytes == o->bytes) {
    c.landing.swap(o->into);
    c.answers = true;
    if (bytes == 0) c.landing.clear();
    std::erase_if(c.landing, [](const fabric::local_slice& each) { return each.bytes == 0; });
  } else {
    c.answers = false;
    c.dropping = bytes;
    end_first(c, status::transfer_failed);
  }
  return true;
}

// Advances the landing by so many received bytes.
void tcp_fabric::land(connection& c, std::size_t bytes) noexcept {
  while (bytes != 0) {
    RMA_ASSERT(c.lands());
    fabric::local_slice& next = c.landing[c.landed];
    const std::size_t piece = std::min(bytes, next.bytes);
    next.at = static_cast<std::byte*>(next.at) + piece;
    next.bytes -= piece;
    bytes -= piece;
    if (next.bytes == 0) ++c.landed;
  }
  if (c.lands()) return;
  if (std::exchange(c.answers, false)) end_first(c, status::done);
  if (std::exchange(c.lands_bulk, false)) end_bulk_receive(c, status::done, c.bulk_bytes);
}

// ---- progress -----------------------------------------------------------------------------------------------

// Makes the next look poll all connections.
bool tcp_fabric::pending() noexcept {
  looks_ = 8 * looks_max;
  return messaged_fabric::pending() || !unread_.empty();
}

namespace {

/// True if the peer's kernel has received all bytes, or has room for them: they arrive even after the end of this
/// process. Bytes that do not fit, since the peer does not read, would be dropped after some seconds. (SIOCOUTQNSD
/// reports the same, but valgrind does not know it and warns.)
bool has_left_this_host(int line) noexcept {
  tcp_info said{};
  socklen_t bytes = sizeof said;
  return ::getsockopt(line, IPPROTO_TCP, TCP_INFO, &said, &bytes) != 0 || said.tcpi_notsent_bytes == 0;
}

}  // namespace

bool tcp_fabric::quiet() noexcept {
  return messaged_fabric::quiet() && std::ranges::all_of(by_rank_, [](const auto& each) {
           const connection& c = connection_of(*each.second);
           if (c.state != messaged::connection_state::open || c.suspected_until_ns != 0) return true;
           return c.out.empty() && (!c.line || has_left_this_host(c.line.get()));
         });
}

}  // namespace rma::tcp
