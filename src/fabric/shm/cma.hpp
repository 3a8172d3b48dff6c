// SPDX-License-Identifier: Apache-2.0
/// \file
/// Cross-memory attach: one system call copies between two processes' private memory (1.2 us and 12 GB/s; a shared
/// mapping reaches 60 GB/s).
#pragma once

#include <cstdint>
#include <span>

#include "fabric/fabric.hpp"

namespace rma::shm {

enum class cma_direction : std::uint8_t { write, read };

/// Copies between local memory and process `pid`; both lists have the same number of bytes.
/// `peer_failed` if the process has ended, `not_supported` if the system forbids it, `transfer_failed` if some of the
/// memory, on either side, is not mapped or not accessible.
status cma_copy(cma_direction direction, std::uint32_t pid, std::span<const fabric::local_slice> local,
                std::span<const fabric::remote_slice> remote) noexcept;

}  // namespace rma::shm
