// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/verbs/registration_cache.hpp"

namespace rma::verbs {

/// The memory that a device may access: regions that others have keys for, and registrations of the registration cache.
class memory_regions final : public registrar {
 public:
  memory_regions(ibv_pd* domain, int rank) noexcept : domain_(domain), rank_(rank) {}
  /// The cache has withdrawn its registrations before.
  ~memory_regions();
  memory_regions(const memory_regions&) = delete;
  memory_regions& operator=(const memory_regions&) = delete;

  /// Returns `not_supported` if the device refuses the memory; a line on standard error reports the first time.
  status add(void* at, std::size_t bytes, fabric::region_key& key) noexcept;
  void remove(const fabric::region_key& key) noexcept;
  /// The region that contains all of this memory, or null.
  [[nodiscard]] const ibv_mr* find(const void* at, std::size_t bytes) noexcept;
  /// Reports once that the device refuses memory, with the reason in errno.
  void complain(std::size_t bytes) noexcept;

  status enroll(void* at, std::size_t bytes, registration& made) noexcept override;
  void withdraw(const registration& made) noexcept override;

 private:
  ibv_pd* const domain_;
  const int rank_;
  std::vector<ibv_mr*> regions_;  ///< sorted by address
  const ibv_mr* last_ = nullptr;  ///< the last one found
  bool complained_ = false;
};

}  // namespace rma::verbs
