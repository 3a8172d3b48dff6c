// SPDX-License-Identifier: Apache-2.0
/// \file
/// The little cryptography of the boot channel: random bytes, and a proof of knowing the job key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rma::boot {

inline constexpr std::size_t digest_bytes = 32;
using digest = std::array<unsigned char, digest_bytes>;

/// Fresh random bytes from the kernel.
digest random_digest();

/// `bytes` random bytes as lower-case hex: job keys and socket names.
std::string random_hex(std::size_t bytes);

/// Which side speaks: each side's proof differs, so that neither can be played back to its author.
enum class prover : std::uint8_t { client, server };

/// Both sides saw this of a handshake.
struct transcript {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  digest client_nonce{};
  digest server_nonce{};
};

/// HMAC-SHA-256 of the transcript under the job key. Throws rma::Error(bad_boot) if the library refuses.
digest prove(std::string_view key, prover who, const transcript& seen);

/// HMAC-SHA-256 of any text under the job key. False if the library refuses.
bool authenticate(std::string_view key, std::string_view said, digest& made) noexcept;

/// Comparison whose time does not depend on where the difference is.
bool equal(const digest& a, std::string_view b) noexcept;

/// The bytes of a digest, to be put into a message.
std::string_view bytes_of(const digest& d) noexcept;

}  // namespace rma::boot
