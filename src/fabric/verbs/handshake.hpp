// SPDX-License-Identifier: Apache-2.0
/// \file
/// How two ranks connect at first use: datagrams between their connection managers, signed with the job's key.
///
///        asker                          asked
///   asking    -- ask -->                (makes its queue pair, may receive)
///             <-- answer --             answering
///   ready     -- confirm -->            ready
///
/// Ask and answer are sent again until something comes back; each is understood more than once. When both ask at the
/// same time each takes the other's ask for what it needs, and both answer: one queue pair on each side.
///
/// An operation that the target's adapter refuses breaks the connection for both. Whoever finds out makes a new queue
/// pair and asks again, as the next generation of the connection; what belongs to an older one is not listened to. A
/// rank that computes has not ended what was under way on the old one: its connection manager says `later`, so that the
/// asker knows that it lives.
///
/// A rank that leaves the job says `leave`: its queue pairs are gone, and nobody will acknowledge what is on its way
/// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fabric/verbs/adapter.hpp"

namespace rma::verbs {

enum class greeting : std::uint8_t { ask = 1, answer = 2, confirm = 3, later = 4, leave = 5 };

/// A channel is what a connection is for. Each has its own queue pair, made when it is needed.
enum class channel : std::uint8_t { control, bulk };

/// Where a rank's connection manager is. What ranks publish when they join the job.
struct manager_address {
  port_address port;
  std::uint32_t queue_pair = 0;
  std::uint64_t nonce = 0;  ///< of this run: what is signed for another one does not count
};

std::string text_of(const manager_address& at);
/// False if it is not one.
bool parse(const std::string& text, manager_address& at);

/// One datagram.
struct hello {
  std::uint32_t magic;
  greeting what;
  std::uint8_t mtu;
  std::uint16_t lid;
  std::uint8_t gid[16];
  std::int32_t from;
  std::int32_t to;
  std::uint32_t connection_manager;  ///< sender's
  std::uint32_t queue_pair;          ///< sender's, of this connection
  std::uint32_t first_packet;
  std::uint16_t reads;  ///< that the sender serves at a time
  std::uint16_t generation;
  std::uint32_t over;  ///< receives of the sender's that are over (bulk.hpp)
  channel of;
  std::uint8_t unused[3];
  std::uint64_t nonce_from;
  std::uint64_t nonce_to;
  std::uint8_t proof[32];
};
static_assert(sizeof(hello) == 104 && std::has_unique_object_representations_v<hello>);

inline constexpr std::uint32_t hello_magic = 0x31616d72;  // "rma1"

/// Signs it with the job's key. False if the library of digests refuses.
bool sign(hello& h, std::string_view key) noexcept;
/// Whether it is whole, for this rank in this run, and signed with the job's key.
bool genuine(const hello& h, std::string_view key, int me, std::uint64_t nonce) noexcept;

}  // namespace rma::verbs
