// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sending of posted operations.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fabric/tcp/tcp_fabric.hpp"

namespace rma::tcp {

// Limits the bytes that wait for the kernel.
bool tcp_fabric::has_room(messaged::peer& p) noexcept {
  connection& c = connection_of(p);
  if (c.out.size() < out_bytes_max && c.questions < under_way_max) [[likely]]
    return true;
  flush(c);
  return c.out.size() < out_bytes_max && c.questions < under_way_max;
}

std::byte* tcp_fabric::room_for(messaged::peer& p, std::uint16_t kind, std::size_t bytes) noexcept {
  connection& c = connection_of(p);
  const front f{static_cast<std::uint32_t>(bytes), kind, 0};
  if (c.out.size() + sizeof f + bytes > batch_bytes && !c.waits_for_room) flush(c);
  std::byte* const at = c.out.room(sizeof f + bytes);
  std::memcpy(at, &f, sizeof f);
  c.out.append(sizeof f + bytes);
  return at + sizeof f;
}

void tcp_fabric::transmit_straight(messaged::peer& p, std::uint16_t kind, std::span<const std::byte> head, slices data,
                                   std::size_t bytes) noexcept {
  // The length in the front includes the bytes that follow outside the batch.
  connection& c = connection_of(p);
  const front f{static_cast<std::uint32_t>(head.size() + bytes), kind, 0};
  c.out.append(&f, sizeof f);
  c.out.append(head.data(), head.size());
  ++messages_;
  send_straight(c, data, bytes);
}

// Sends the batch, followed by data from their place in memory. Data that the kernel does not accept now are copied.
void tcp_fabric::send_straight(connection& c, slices data, std::size_t bytes) noexcept {
  std::size_t taken = 0;
  if (c.line && !c.waits_for_room) {
    std::array<iovec, messaged::straight_slices_max + 1> pieces;
    std::size_t count = 0;
    pieces[count++] = {c.out.data(), c.out.size()};
    for (const fabric::local_slice& each : data) pieces[count++] = {each.at, each.bytes};
    msghdr all{};
    all.msg_iov = pieces.data();
    all.msg_iovlen = count;
    c.batched = 0;
    ++batches_sent_;
    const ssize_t n = ::sendmsg(c.line.get(), &all, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return c.out.clear();  // as in `flush`
    taken = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  const std::size_t of_batch = std::min(taken, c.out.size());
  c.out.consume(of_batch);
  std::size_t skipped = taken - of_batch;
  if (skipped == bytes) return;
  for (const fabric::local_slice& each : data) {
    const std::size_t gone = std::min(skipped, each.bytes);
    skipped -= gone;
    c.out.append(static_cast<const std::byte*>(each.at) + gone, each.bytes - gone);
  }
  list_batch(c);
  watch_room(c, true);
}

void tcp_fabric::flush(connection& c) noexcept {
  c.batched = 0;
  if (!c.line) return;
  while (!c.out.empty()) {
    ++batches_sent_;
    const ssize_t n = ::send(c.line.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return watch_room(c, true);
      c.out.clear();  // the peer does not read any more; its earlier data are still to be received, and then its
                      // end
      break;
    }
    c.out.consume(static_cast<std::size_t>(n));
  }
  watch_room(c, false);
}

// If the kernel has no room, epoll reports when it has.
void tcp_fabric::send_batch(messaged::peer& p) noexcept {
  connection& c = connection_of(p);
  if (!c.waits_for_room) flush(c);
}

}  // namespace rma::tcp
