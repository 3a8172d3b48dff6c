// SPDX-License-Identifier: Apache-2.0
/// \file
/// The entry points of the verbs fabric, present with or without rdma-core.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fabric/fabric.hpp"
#include "fabric/verbs/abilities.hpp"

namespace rma::verbs {

/// The arguments with which a rank starts a fabric.
struct member {
  int rank = 0;
  int size = 1;
  std::string key;                                 ///< key of the job
  std::size_t cache_bytes = std::size_t{1} << 30;  ///< limit of the cached registrations
  std::uint32_t completions = 8192;                ///< entries of the completion queue, with those for receives
  abilities common{};                              ///< abilities that all ranks' devices have
  fabric::directory* peers = nullptr;              ///< has the addresses of the others
};

/// A device that is opened and checked, and not yet in use.
class opened {
 public:
  virtual ~opened() = default;
  /// Makes its fabric. Sets `address` to the text that others need to connect to this rank. Throws Error(unreachable,
  /// out_of_memory).
  virtual std::unique_ptr<fabric::network> start(const member& who, std::string& address) = 0;
  [[nodiscard]] virtual abilities has() const noexcept = 0;
  /// One line for rma-info.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Opens the device of RMA_DEVICE. Throws Error(unreachable) with the reason if there is none.
std::unique_ptr<opened> open(const std::string& wanted);
/// The key of a rank's address in the job's store.
std::string address_key(int rank);

}  // namespace rma::verbs
