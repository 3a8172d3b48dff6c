// SPDX-License-Identifier: Apache-2.0
/// \file
/// The handshake by which two ranks connect at first use: datagrams between their connection managers, signed with the
/// job's key.
///
///        asker                          asked
///   asking    -- ask -->                (makes its queue pair, may receive)
///             <-- answer --             answering
///   ready     -- confirm -->            ready
///
/// Ask and answer are repeated until a reply arrives; duplicates are harmless. When both ask at the same time, each
/// uses the other's ask as the information it needs, and both answer: each side has one queue pair.
///
/// An operation that the target's adapter refuses breaks the connection on both sides. The side that detects it makes a
/// new queue pair and asks again, as the next generation of the connection; datagrams of older generations are ignored.
/// A computing rank has not ended the outstanding entries of the old one: its connection manager replies `later`, so
/// that the asker knows that it is alive.
///
/// A rank that leaves the job sends `leave`: its queue pairs are gone, and operations in flight to them will not be
/// acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fabric/verbs/adapter.hpp"

namespace rma::verbs {

enum class greeting : std::uint8_t { request = 1, answer = 2, confirm = 3, later = 4, goodbye = 5 };

/// The purpose of a connection. Each channel has its own queue pair, made when it is needed.
enum class channel : std::uint8_t { control, bulk };

/// The address of a rank's connection manager, which ranks publish when they join the job.
struct manager_address {
  port_address port;
  std::uint32_t queue_pair = 0;
  std::uint64_t nonce = 0;  ///< number of this run: signatures for another run are invalid
};

std::string text_of(const manager_address& at);
/// False if the text is no address.
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
  std::uint16_t reads;  ///< outstanding reads that the sender serves
  std::uint16_t generation;
  std::uint32_t over;  ///< complete receives of the sender (bulk.hpp)
  channel of;
  std::uint8_t unused[3];
  std::uint64_t nonce_from;
  std::uint64_t nonce_to;
  std::uint8_t proof[32];
};
static_assert(sizeof(hello) == 104 && std::has_unique_object_representations_v<hello>);

inline constexpr std::uint32_t hello_magic = 0x31616d72;  // "rma1"

/// Signs it with the job's key. False if the digest library fails.
bool sign(hello& h, std::string_view key) noexcept;
/// True if it is complete, addressed to this rank in this run, and signed with the job's key.
bool genuine(const hello& h, std::string_view key, int me, std::uint64_t nonce) noexcept;

}  // namespace rma::verbs
