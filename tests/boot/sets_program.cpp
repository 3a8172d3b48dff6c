// SPDX-License-Identifier: Apache-2.0
/// \file
/// sets_program NAME...: what each rank learns of the process sets of its job, for tests of launchers. The members of
/// each NAME make two teams of it, and use both.
#include <algorithm>
#include <cstdio>
#include <string>

#include <rma/rma.hpp>

namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return text;
}

void use(rma::Runtime& rt, const std::string& set) {
  const std::vector<int> ranks = rt.ranks_of(set);
  if (!std::binary_search(ranks.begin(), ranks.end(), rt.rank())) {
    try {
      (void)rt.team_of(set);
    } catch (const rma::Error& error) {
      const std::string what = error.what();  // call, place, status, reason
      std::printf("rank %d: team_of: %s\n", rt.rank(), what.substr(what.find("bad_argument: ")).c_str());
    }
    return;
  }
  rma::Team one = rt.team_of(set);
  rma::Team other = rt.team_of(set);
  auto words = rma::Window<int>::allocate(other, 1);
  words.fence();
  words.put(rt.rank(), (other.rank() + 1) % other.size(), 0);
  const int sum = one.allreduce(rt.rank(), rma::sum);  // while the other has an epoch open
  words.fence();
  std::printf("rank %d: %s has %d members, sum %d; after %d\n", rt.rank(), set.c_str(), one.size(), sum, words[0]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rma::Runtime rt(argc, argv);
    if (rt.rank() == 0) std::printf("sets:%s\n", listed(rt.process_sets()).c_str());
    for (int i = 1; i < argc; ++i) use(rt, argv[i]);
    rt.world().barrier();
    return 0;
  } catch (const rma::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 9;
  }
}
