// SPDX-License-Identifier: Apache-2.0
#include "nbody.hpp"

namespace perf {

namespace sim = rma::sim;

sim::PatternOutcome simulate_exchange(const sim::Config& machine, const exchange& of, barrier_at where,
                                      sim::IntraNode intra_node, const nbody_choice& chosen) {
  const auto meet = [](sim::PatternRank& me) {
    me.phase("barrier");
    me.barrier();
  };
  const auto pack = [&](sim::PatternRank& me, std::uint64_t particles) {
    me.phase("pack");
    me.compute(sim::picoseconds(static_cast<std::int64_t>(static_cast<double>(particles) * chosen.pack_ns * 1000)));
  };
  const bool each = where == barrier_at::before_pack && !chosen.pack_all_first;
  const auto rank_main = [&](sim::PatternRank& me) {
    if (where == barrier_at::before_pack) meet(me);
    if (!each) pack(me, of.leaving(me.rank()));
    if (where == barrier_at::after_pack) meet(me);
    for (int i = 0; i < me.size(); ++i) {
      const int to = chosen.order == put_order::next ? (me.rank() + i) % me.size() : i;
      const std::uint64_t count = of.of(me.rank(), to);
      if (to == me.rank() || count == 0) continue;
      if (each) pack(me, count);
      me.phase("put");
      me.put(to, static_cast<std::int64_t>(count * sizeof(particle)), 0);
    }
    me.phase("put");
    me.complete_all();
  };
  return sim::run_pattern(machine, rank_main, intra_node);
}

}  // namespace perf
