// SPDX-License-Identifier: Apache-2.0
/// \file
/// The way into the verbs fabric that is there however the library was built.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fabric/fabric.hpp"
#include "fabric/verbs/abilities.hpp"

namespace rma::verbs {

/// A member starts a fabric, with these.
struct member {
  int rank = 0;
  int size = 1;
  std::string key;                                 ///< of the job
  std::size_t cache_bytes = std::size_t{1} << 30;  ///< of registrations that are kept
  std::uint32_t completions = 8192;                ///< that the completion queue holds, receives among them
  abilities common{};                              ///< that all ranks' devices have
  fabric::directory* peers = nullptr;              ///< says where the others are
};

/// A device, opened and checked, and not used yet.
class opened {
 public:
  virtual ~opened() = default;
  /// Makes the fabric of it. What others need to find this rank comes out in `address`. Throws Error(unreachable,
  /// out_of_memory).
  virtual std::unique_ptr<fabric::network> start(const member& who, std::string& address) = 0;
  [[nodiscard]] virtual abilities has() const noexcept = 0;
  /// One line for rma-info.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Opens the device that RMA_DEVICE wants. Throws Error(unreachable) that says why there is none.
std::unique_ptr<opened> open(const std::string& wanted);
/// The key of the job's store under which a rank's address stands.
std::string address_key(int rank);

}  // namespace rma::verbs
