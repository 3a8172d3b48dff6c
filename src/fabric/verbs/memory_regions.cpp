// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/memory_regions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace rma::verbs {

memory_regions::~memory_regions() {
  for (ibv_mr* region : regions_) ::ibv_dereg_mr(region);
}

status memory_regions::add(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  key = {reinterpret_cast<std::uint64_t>(at), bytes, 0};
  if (bytes == 0) return status::done;
  constexpr int all =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  ibv_mr* const region = ::ibv_reg_mr(domain_, at, bytes, all);
  if (region == nullptr) {
    complain(bytes);
    return status::not_supported;
  }
  key.key = region->rkey;
  const auto before = std::upper_bound(regions_.begin(), regions_.end(), at,
                                       [](const void* here, const ibv_mr* r) { return here < r->addr; });
  regions_.insert(before, region);
  return status::done;
}

void memory_regions::remove(const fabric::region_key& key) noexcept {
  const auto at = std::find_if(regions_.begin(), regions_.end(),
                               [&](const ibv_mr* r) { return key.bytes != 0 && r->rkey == key.key; });
  if (at == regions_.end()) return;
  last_ = nullptr;
  ::ibv_dereg_mr(*at);
  regions_.erase(at);
}

// Only this rank's adapter uses these registrations: others have no key.
status memory_regions::enroll(void* at, std::size_t bytes, registration& made) noexcept {
  ibv_mr* const region = ::ibv_reg_mr(domain_, at, bytes, int{IBV_ACCESS_LOCAL_WRITE});
  if (region == nullptr) {
    const bool room = errno == ENOMEM || errno == EAGAIN;
    return room ? status::out_of_memory : status::not_supported;
  }
  made = {region, region->lkey, region->rkey};
  return status::done;
}

void memory_regions::withdraw(const registration& made) noexcept { ::ibv_dereg_mr(static_cast<ibv_mr*>(made.handle)); }

const ibv_mr* memory_regions::find(const void* at, std::size_t bytes) noexcept {
  const auto* const first = static_cast<const std::byte*>(at);
  const auto covers = [&](const ibv_mr* r) {
    const auto* const begin = static_cast<const std::byte*>(r->addr);
    return first >= begin && first + bytes <= begin + r->length;
  };
  if (last_ != nullptr && covers(last_)) return last_;
  const auto after = std::upper_bound(regions_.begin(), regions_.end(), at,
                                      [](const void* here, const ibv_mr* r) { return here < r->addr; });
  if (after == regions_.begin() || !covers(*(after - 1))) return nullptr;
  last_ = *(after - 1);
  return last_;
}

// Warns once: the rank continues, only slower. Read-only memory, like a literal, is not reported: no limit would help.
void memory_regions::complain(std::size_t bytes) noexcept {
  if (errno == EFAULT || std::exchange(complained_, true)) return;
  std::fprintf(
      stderr,
      "rma: rank %d: the RDMA device cannot register %zu bytes (%s): such memory is reached through its rank's "
      "calls and by copies; a higher limit of locked memory (ulimit -l) makes it faster\n",
      rank_, bytes, std::strerror(errno));
}

}  // namespace rma::verbs
