// SPDX-License-Identifier: Apache-2.0
#include "boot/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <vector>

#include "boot/protocol.hpp"
#include "rma/error.hpp"

namespace rma::boot {

namespace {

void fill_random(unsigned char* at, std::size_t bytes) {
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got = ::getrandom(at + have, bytes - have, 0);
    if (got < 0 && errno != EINTR) throw Error(status::bad_boot, "the kernel gives no random bytes (getrandom)");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
}

void append_u32(std::string& to, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) to.push_back(static_cast<char>((value >> shift) & 0xffu));
}

}  // namespace

digest random_digest() {
  digest made;
  fill_random(made.data(), made.size());
  return made;
}

std::string random_hex(std::size_t bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::vector<unsigned char> raw(bytes);
  fill_random(raw.data(), raw.size());
  std::string text;
  for (const unsigned char byte : raw) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15u]);
  }
  return text;
}

digest prove(std::string_view key, prover who, const transcript& seen) {
  std::string said = std::string(hello_magic) + (who == prover::client ? " client" : " server");
  append_u32(said, seen.rank);
  append_u32(said, seen.size);
  said += bytes_of(seen.client_nonce);
  said += bytes_of(seen.server_nonce);
  digest made;
  if (!authenticate(key, said, made)) {
    throw Error(status::bad_boot, "OpenSSL cannot compute HMAC-SHA-256, so the job key cannot be proven");
  }
  return made;
}

bool authenticate(std::string_view key, std::string_view said, digest& made) noexcept {
  unsigned int made_bytes = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(said.data());
  const unsigned char* done =
      ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), data, said.size(), made.data(), &made_bytes);
  return done != nullptr && made_bytes == made.size();
}

bool equal(const digest& a, std::string_view b) noexcept {
  return b.size() == a.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view bytes_of(const digest& d) noexcept { return {reinterpret_cast<const char*>(d.data()), d.size()}; }

}  // namespace rma::boot
