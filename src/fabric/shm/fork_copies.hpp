// SPDX-License-Identifier: Apache-2.0
/// \file
/// Gives forked children copies of promoted pages.
#pragma once

namespace rma::shm {

/// From now on a forked child has copies of this process's promoted pages, as they are at the fork, instead of the
/// shared ones, since the program regards them as private memory. A fork takes time and memory for these copies;
/// without memory the child shares the pages. Calls that run no fork handlers (vfork, clone, _Fork) also share them.
void copy_promoted_at_forks();

}  // namespace rma::shm
