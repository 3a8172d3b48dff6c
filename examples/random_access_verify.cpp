// SPDX-License-Identifier: Apache-2.0
#include "random_access_verify.hpp"

#include "random_access_run.hpp"

namespace random_access {

namespace {

/// The stream of all ranks is one stream: read it through and keep what is ours.
void undo_locally(rma::Runtime& rt, Table& table, Variant variant, const Partition& updates) {
  const std::span<word> mine = table.window().local();
  for (Stream stream(0, updates.total()); stream.left() > 0;) {
    const word x = stream.draw();
    const auto [rank, offset] = table.place_of(x);
    if (rank != rt.rank()) continue;
    word& value = mine[offset];
    value = adds(variant) ? value - x : value ^ x;
  }
  rt.compute(time_to_draw(updates.total()));
}

}  // namespace

Verdict verify(rma::Runtime& rt, Table& table, Variant variant, const Partition& updates, Verification how) {
  rma::Team world = rt.world();
  Verdict verdict;
  // The benchmark's rule allows 1 % to everyone; only one variant has a reason to need it.
  verdict.allowed = variant == Variant::gmp ? table.parts().total() / 100 : 0;
  if (how == Verification::none) return verdict;

  const auto begin = rt.now();
  table.window().sync();
  if (how == Verification::local) {
    undo_locally(rt, table, variant, updates);
  } else {
    const auto undo = make_undo(table, variant);
    const Progress silent(rt, 0, "");
    make_updates(rt, *undo, Stream(updates.first(rt.rank()), updates.count(rt.rank())), stored_updates_max, silent);
  }
  world.barrier();
  table.window().sync();
  verdict.wrong = world.allreduce(table.wrong_words(), rma::sum);
  verdict.time = rt.now() - begin;
  return verdict;
}

}  // namespace random_access
