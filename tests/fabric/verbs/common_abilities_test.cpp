// SPDX-License-Identifier: Apache-2.0
// Goal: a device uses nothing that some other device of the job does not have.
// Method: ranks that are told what all have. Break: in verbs_fabric's constructor, do not meet who.common.
#include <catch2/catch.hpp>
#include <cstdint>

#include "fabric/verbs/verbs_job.hpp"

using namespace rma;
using namespace rma::test;

TEST_CASE("what some device does not have no device uses", "[verbs]") {
  if (no_device()) return;
  const verbs::abilities has = verbs::open("")->has();
  CHECK(has.ethernet);
  verbs::abilities common;
  common.atomics = common.placed = false;
  verbs_job job(2, verbs::member{}.completions, common);
  CHECK_FALSE(job[0].net->caps().atomics);
  CHECK(job[0].net->caps().write_means == fabric::write_completion::acked);
  std::uint64_t word = 5, old = 0;
  fabric::region_key key;
  REQUIRE(job[1].net->register_region(&word, sizeof word, key) == status::done);
  CHECK(job[0].net->fetch_add(1, key, key.address, 1, old, 1) == status::not_supported);
  job[1].net->deregister_region(key);
}

TEST_CASE("a device uses what it has if all have it", "[verbs]") {
  if (no_device()) return;
  const verbs::abilities has = verbs::open("")->has();
  verbs_job job(2);
  CHECK(job[0].net->caps().atomics == has.atomics);
  CHECK((job[0].net->caps().write_means == fabric::write_completion::placed) == has.placed);
}
