// SPDX-License-Identifier: Apache-2.0
/// \file
/// Put and get, once with everybody's help (fences) and once without the target's (a lock).
///
/// \code
/// rmarun -n 4 02_put_get
/// \endcode

#include <array>
#include <rma/rma.hpp>

#include <fmt/format.h>

namespace {

/// Everybody's answer, told by rank 0.
bool report(const rma::Runtime& rt, const char* what, bool mine) {
  const bool all = rt.world().allreduce(mine ? 1 : 0, rma::min) == 1;
  if (rt.rank() == 0) fmt::print("{}: {}\n", what, all ? "yes" : "no");
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const int left = (rt.rank() + rt.size() - 1) % rt.size();
  const int right = (rt.rank() + 1) % rt.size();
  auto window = rma::Window<int>::allocate(rt.world(), 4);

  // Active target: every rank calls fence, and what was put between two fences is there after the second.
  const std::array<int, 4> mine{rt.rank(), rt.rank() + 10, rt.rank() + 20, rt.rank() + 30};
  window.fence();
  window.put(mine, right, 0);
  window.fence(rma::no_succeed);  // no operations follow: this also ends the fences, so that locks may be used
  const bool put_worked = window[0] == left && window[3] == left + 30;

  // Passive target: only the origin does something. The get is complete when its epoch's scope ends.
  std::array<int, 4> theirs{};
  {
    const auto epoch = window.lock(rma::shared, right);
    window.get(theirs, right, 0);
  }
  const bool get_worked = theirs == mine;

  const bool sent = report(rt, "every rank was sent its left neighbor's numbers", put_worked);
  const bool read = report(rt, "every rank read back what it had put", get_worked);
  return sent && read ? 0 : 1;
}
