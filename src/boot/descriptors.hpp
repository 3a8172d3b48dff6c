// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which descriptors this process has, and how many it may have open. A connection to each rank of a large job is more
/// than the usual 1024.
#pragma once

#include <string>

namespace rma::boot {

/// Opens /dev/null in the place of each standard stream that is closed: else the next descriptor would take its number,
/// and what the program prints.
void fill_standard_streams() noexcept;

/// Raises the soft limit of this process to its hard one, unless it suffices for the connections of a job of so many
/// ranks and for a program of the usual size. Processes that it starts later inherit that.
void allow_connections(int ranks) noexcept;

/// True if this process, or its system, has no more descriptors. Others have done nothing wrong then.
bool out_of_descriptors(int error) noexcept;

/// A message says this about it.
std::string descriptors_remedy();

}  // namespace rma::boot
