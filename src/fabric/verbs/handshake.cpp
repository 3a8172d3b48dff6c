// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/handshake.hpp"

#include <fmt/format.h>

#include <cstring>
#include <sstream>

#include "boot/digest.hpp"

namespace rma::verbs {
namespace {

std::string_view signed_part(const hello& h) noexcept {
  return {reinterpret_cast<const char*>(&h), offsetof(hello, proof)};
}

}  // namespace

std::string text_of(const manager_address& at) {
  return fmt::format("{:x} {:x} {:x} {:x} {:x}", at.port.gid.global.subnet_prefix, at.port.gid.global.interface_id,
                     at.port.lid, at.queue_pair, at.nonce);
}

bool parse(const std::string& text, manager_address& at) {
  std::istringstream in(text);
  in >> std::hex >> at.port.gid.global.subnet_prefix >> at.port.gid.global.interface_id >> at.port.lid >>
      at.queue_pair >> at.nonce;
  return !in.fail();
}

bool sign(hello& h, std::string_view key) noexcept {
  boot::digest proof{};
  if (!boot::authenticate(key, signed_part(h), proof)) return false;
  std::memcpy(h.proof, proof.data(), sizeof h.proof);
  return true;
}

bool genuine(const hello& h, std::string_view key, int me, std::uint64_t nonce) noexcept {
  if (h.magic != hello_magic || h.to != me || h.nonce_to != nonce) return false;
  boot::digest proof{};
  return boot::authenticate(key, signed_part(h), proof) &&
         boot::equal(proof, {reinterpret_cast<const char*>(h.proof), sizeof h.proof});
}

}  // namespace rma::verbs
