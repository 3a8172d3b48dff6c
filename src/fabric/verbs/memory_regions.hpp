// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/verbs/registration_cache.hpp"

namespace rma::verbs {

/// The memory that a device may reach: regions that others have keys for, and what the registration cache asks for.
class memory_regions final : public registrar {
 public:
  memory_regions(ibv_pd* domain, int rank) noexcept : domain_(domain), rank_(rank) {}
  /// Memory that the cache has enrolled is withdrawn before.
  ~memory_regions();
  memory_regions(const memory_regions&) = delete;
  memory_regions& operator=(const memory_regions&) = delete;

  /// `not_supported`: the device does not take it, and one line on standard error has said so.
  status add(void* at, std::size_t bytes, fabric::region_key& key) noexcept;
  void remove(const fabric::region_key& key) noexcept;
  /// The region with all of this memory, or null.
  [[nodiscard]] const ibv_mr* find(const void* at, std::size_t bytes) noexcept;
  /// Says once that the device does not take memory, by errno.
  void complain(std::size_t bytes) noexcept;

  status enroll(void* at, std::size_t bytes, registration& made) noexcept override;
  void withdraw(const registration& made) noexcept override;

 private:
  ibv_pd* const domain_;
  const int rank_;
  std::vector<ibv_mr*> regions_;  ///< by address
  const ibv_mr* last_ = nullptr;  ///< found last
  bool complained_ = false;
};

}  // namespace rma::verbs
