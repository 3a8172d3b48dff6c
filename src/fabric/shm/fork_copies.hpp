// SPDX-License-Identifier: Apache-2.0
/// \file
/// A forked child finds copies in promoted pages.
#pragma once

namespace rma::shm {

/// From now on a forked child has copies of this process's promoted pages, as they are at the fork, instead of the
/// shared ones: they are private memory to the program. A fork takes the time and the memory for these copies; where
/// there is none, the child shares the pages. What does not run fork handlers (vfork, clone, _Fork) shares them, too.
void copy_promoted_at_forks();

}  // namespace rma::shm
