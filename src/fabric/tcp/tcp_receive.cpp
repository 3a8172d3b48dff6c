// SPDX-License-Identifier: Apache-2.0
/// \file
/// What comes, and progress.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fabric/tcp/tcp_fabric.hpp"
#include "rma/detail/copy.hpp"

namespace rma::tcp {
namespace {

constexpr std::size_t in_bytes = 64 << 10;  // asked of the kernel at once, beside what lands in memory
constexpr std::size_t landing_pieces_max = bulk_pieces_max;
constexpr unsigned looks_max = 4;  // at the hot connections, before all are asked
constexpr int events_max = 64;
constexpr std::size_t much_bytes = 4096;

/// A word by itself may be looked at meanwhile.
void place(void* to, const std::byte* from, std::size_t bytes) noexcept {
  std::uint64_t word = 0;
  if (bytes == sizeof word && reinterpret_cast<std::uintptr_t>(to) % sizeof word == 0) {
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(to)).store(word, std::memory_order_relaxed);
  } else {
    detail::copy_bytes(to, from, bytes);
  }
}

}  // namespace

// ---- looking ------------------------------------------------------------------------------------------------

// The one that something came from last is the first. Who sends much is not asked directly: a question that finds
// nothing stands in the way of what the kernel brings.
void tcp_fabric::heat(connection& c, std::size_t bytes) noexcept {
  if (bytes >= much_bytes) return (void)std::ranges::replace(hot_, &c, static_cast<connection*>(nullptr));
  if (hot_[0] == &c) return;
  hot_[1] = std::exchange(hot_[0], &c);
}

unsigned tcp_fabric::look() noexcept {
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

// One question to the kernel: what lands in memory goes there, what follows is looked at.
bool tcp_fabric::receive(connection& c) noexcept {
  if (c.unread) return false;  // first what is there
  std::array<iovec, landing_pieces_max + 1> pieces;
  std::size_t count = 0, wanted = 0;
  for (std::size_t i = c.landed; i < c.landing.size(); ++i) {
    pieces[count++] = {c.landing[i].at, c.landing[i].bytes};
    wanted += c.landing[i].bytes;
  }
  pieces[count++] = {c.in.room(in_bytes), in_bytes};
  ssize_t n = 0;
  if (count == 1) {
    n = ::recv(c.line.get(), pieces[0].iov_base, in_bytes, 0);
  } else {
    msghdr all{};
    all.msg_iov = pieces.data();
    all.msg_iovlen = count;
    n = ::recvmsg(c.line.get(), &all, 0);
  }
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (n <= 0) {
    lose(c);
    return true;
  }
  const std::size_t bytes = static_cast<std::size_t>(n);
  heat(c, bytes);
  const std::size_t landed = std::min(bytes, wanted);
  c.in.append(bytes - landed);
  if (landed != 0) land(c, landed);
  take(c);
  return true;
}

// Whole messages. Where no more can be handed on, the rest waits for the next poll.
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
    const bool has_data = kind == own_kind::put || kind == own_kind::give_get || kind == own_kind::bulk;
    if (!(has_data ? begin_landing(c, f) : take_message(c, f))) return;
  }
}

// False if there is nothing more to take now.
bool tcp_fabric::take_message(connection& c, const front& f) noexcept {
  const bool is_own = f.kind < static_cast<std::uint16_t>(own_kind::count_);
  if (f.bytes > message_bytes || (!is_own && f.kind < fabric::first_kind)) {
    lose(c);  // this is no rank of ours, or its memory is damaged
    return false;
  }
  if (c.in.size() < sizeof f + f.bytes) return false;
  const bool is_handed = !is_own || f.kind == static_cast<std::uint16_t>(own_kind::immediate);
  if (is_handed && (sink_ == nullptr || handed_ >= handed_max_)) {
    if (sink_ == nullptr) {
      c.in.consume(sizeof f + f.bytes);  // this rank leaves: nobody handles it
      return true;
    }
    if (!std::exchange(c.unread, true)) unread_.push_back(&c);
    return false;
  }
  const std::span<const std::byte> payload(c.in.data() + sizeof f, f.bytes);
  if (is_handed) {
    hand_on(c.peer, f.kind, payload);
  } else {
    take_own(c, static_cast<own_kind>(f.kind), payload);
  }
  if (!c.line) return false;  // lost meanwhile, and all that came with it
  c.in.consume(sizeof f + f.bytes);
  return true;
}

void tcp_fabric::take_unread() noexcept {
  for (connection* c : std::exchange(unread_, {})) {
    c->unread = false;
    if (c->line) take(*c);
  }
}

void tcp_fabric::hand_on(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  ++handed_;
  std::uint32_t immediate = 0;
  if (kind >= fabric::first_kind) {
    sink_->on_message(source, kind, payload);
  } else if (payload.size() == sizeof immediate) {
    std::memcpy(&immediate, payload.data(), sizeof immediate);
    sink_->on_immediate(source, immediate);
  }
}

void tcp_fabric::hand_arrivals() noexcept {
  while (!arrivals_.empty() && handed_ < handed_max_) {
    const arrival a = std::move(arrivals_.front());
    arrivals_.pop_front();
    hand_on(how_.rank, a.kind, a.bytes);
  }
}

// ---- data that belong into memory ---------------------------------------------------------------------------

// A put, the answer to a get, or a bulk send: as soon as it is known where the data go. False if more has to come
// first.
bool tcp_fabric::begin_landing(connection& c, const front& f) noexcept {
  const bool is_put = f.kind == static_cast<std::uint16_t>(own_kind::put);
  const bool is_bulk = f.kind == static_cast<std::uint16_t>(own_kind::bulk);
  const std::size_t head = is_put ? sizeof(placement) : is_bulk ? sizeof(bulk_head) : sizeof(answer);
  if (f.bytes < head || f.bytes - head > transfer_bytes) {
    lose(c);
    return false;
  }
  const std::size_t bytes = f.bytes - head;
  const bool is_whole = is_put && bytes <= straight_bytes;  // nobody shall see a word of it in parts
  if (c.in.size() < sizeof f + head + (is_whole ? bytes : 0)) return false;
  if (!(is_put ? place_put(c, bytes) : is_bulk ? place_bulk(c, bytes) : place_answer(c, bytes))) return false;
  c.in.consume(sizeof f + head);
  const std::size_t there = std::min(c.in.size(), bytes - c.dropping);
  std::size_t left = there;
  const std::byte* from = c.in.data();
  for (std::size_t i = c.landed; left != 0; ++i) {
    const std::size_t piece = std::min(left, c.landing[i].bytes);
    place(c.landing[i].at, from, piece);
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
  operation* const o = c.first;
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

// So many more bytes are where they belong.
void tcp_fabric::land(connection& c, std::size_t bytes) noexcept {
  while (bytes != 0) {
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

// ---- messages of the fabric's own ---------------------------------------------------------------------------

void tcp_fabric::take_own(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept {
  switch (kind) {
    case own_kind::goodbye:
      if (c.state != connection_state::alive) break;
      c.state = connection_state::left;
      leavers_.push_back(&c);
      break;
    case own_kind::understood: c.understood = true; break;
    case own_kind::ask_placed:
    case own_kind::ask_get:
    case own_kind::ask_atomic: take_question(c, kind, payload); break;
    case own_kind::result: take_result(c, payload); break;
    case own_kind::bulk_ready:
    case own_kind::bulk_over: take_bulk_message(c, kind, payload); break;
    default: break;
  }
}

void tcp_fabric::take_question(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept {
  answer a;
  question asked;
  if (kind != own_kind::ask_placed) {
    if (payload.size() != sizeof asked) return lose(c);
    std::memcpy(&asked, payload.data(), sizeof asked);
  }
  status found = status::done;
  std::byte* at = nullptr;
  if (kind == own_kind::ask_placed) {
    found = std::exchange(c.put_error, status::done);
  } else {
    at = own_memory(asked.key, asked.address, asked.bytes);
    const bool is_word = asked.bytes == sizeof a.found && asked.address % sizeof a.found == 0;
    if ((at == nullptr && asked.bytes != 0) || (kind == own_kind::ask_get ? asked.bytes > transfer_bytes : !is_word))
      found = status::transfer_failed;
  }
  a.result = static_cast<std::int64_t>(found);
  if (kind == own_kind::ask_get) {
    const fabric::local_slice data{at, found == status::done ? asked.bytes : 0};
    return transmit_data(c, own_kind::give_get, bytes_of(a), {&data, 1}, departure::soon);
  }
  if (kind == own_kind::ask_atomic && found == status::done) a.found = apply(asked, at);
  transmit(c, static_cast<std::uint16_t>(own_kind::result), bytes_of(a), {}, departure::soon);
}

void tcp_fabric::take_result(connection& c, std::span<const std::byte> payload) noexcept {
  answer a;
  operation* const o = c.first;
  if (payload.size() != sizeof a || o == nullptr || o->answered_by != own_kind::result) return lose(c);
  std::memcpy(&a, payload.data(), sizeof a);
  const status result = static_cast<status>(a.result);
  if (o->old != nullptr && result == status::done) *o->old = a.found;
  end_first(c, result);
}

std::byte* tcp_fabric::own_memory(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) noexcept {
  const auto at = regions_.find(key);
  if (at == regions_.end()) return nullptr;
  const std::uint64_t begin = at->second.address;
  const bool inside = address >= begin && bytes <= at->second.bytes && address - begin <= at->second.bytes - bytes;
  return inside ? reinterpret_cast<std::byte*>(address) : nullptr;
}

std::uint64_t tcp_fabric::apply(const question& asked, std::byte* at) noexcept {
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
  if (asked.swap == 0) return word.fetch_add(asked.operand);
  std::uint64_t found = asked.operand;
  (void)word.compare_exchange_strong(found, asked.desired);
  return found;
}

// ---- progress -----------------------------------------------------------------------------------------------

unsigned tcp_fabric::poll(fabric::sink& to, unsigned limit) noexcept {
  sink_ = &to;
  handed_ = 0;
  handed_max_ = limit;
  if (has_deaths_.load(std::memory_order_acquire)) [[unlikely]]
    take_deaths();
  if (!unplaced_.empty()) start_flushes();
  if (!batches_.empty()) flush_batches();
  if (!arrivals_.empty()) hand_arrivals();
  if (!unread_.empty()) take_unread();
  unsigned found = handed_ == 0 && ended_.empty() ? std::min(look(), 1U) : 0;
  if (!leavers_.empty()) [[unlikely]]
    answer_leavers();
  if (!batches_.empty()) flush_batches();  // what was answered meanwhile leaves together
  if (!broken_.empty()) [[unlikely]]
    resolve_doubts(to);
  found = std::max(found, handed_);
  if (!ended_.empty()) {
    handing_.swap(ended_);
    found += static_cast<unsigned>(handing_.size());
    for (const ended& e : handing_) to.on_completion(e.token, e.result, e.bytes);
    handing_.clear();
  }
  sink_ = nullptr;
  return found;
}

// Asked before a sleep: from here on the descriptor tells, and the next look asks it.
bool tcp_fabric::pending() noexcept {
  if (!unplaced_.empty()) start_flushes();
  flush_batches();
  looks_ = 8 * looks_max;
  if (std::ranges::any_of(leavers_, [](const connection* c) { return c->idle() || !c->line; })) return true;
  if (!arrivals_.empty() || !unread_.empty() || !ended_.empty() || has_deaths_.load(std::memory_order_acquire))
    return true;
  return std::ranges::any_of(broken_, [this](const connection* c) { return doubt_is_over(*c); });
}

namespace {

/// The peer's kernel has taken all, or has room for it: it will be there when this process is gone. What does not fit
/// there, since the peer does not look, would be given up after some seconds. (SIOCOUTQNSD says the same, but valgrind
/// does not know it and warns.)
bool has_left_this_host(int line) noexcept {
  tcp_info said{};
  socklen_t bytes = sizeof said;
  return ::getsockopt(line, IPPROTO_TCP, TCP_INFO, &said, &bytes) != 0 || said.tcpi_notsent_bytes == 0;
}

}  // namespace

bool tcp_fabric::quiet() noexcept {
  return under_way_ == 0 && unplaced_.empty() && arrivals_.empty() &&
         std::ranges::all_of(by_peer_, [](const auto& each) {
           const connection& c = *each.second;
           if (c.state >= connection_state::left || c.doubt_until_ns != 0) return true;
           return c.out.empty() && (!c.line || has_left_this_host(c.line.get()));
         });
}

}  // namespace rma::tcp
