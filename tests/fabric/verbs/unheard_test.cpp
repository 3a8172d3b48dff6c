// SPDX-License-Identifier: Apache-2.0
// Goal: a peer that lives as far as anybody knows, and does not answer, is named, with the device that it was asked by.
// Method: the peer is taken away without a word; what goes to stderr meanwhile.
// Break: leave say_unheard (src/fabric/verbs/connection_manager.cpp) out.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "fabric/verbs/verbs_job.hpp"
#include "heard_errors.hpp"

using namespace rma;
using namespace rma::test;

TEST_CASE("a peer that does not answer is named, once", "[verbs]") {
  if (no_device()) return;
  verbs_job job(3);
  job.remove(1);
  job.remove(2);
  std::string said;
  {
    const heard_errors errors;
    for (const int peer : {1, 2}) CHECK(job[0].net->send(peer, 20, {}, {}) == status::retry_queue_full);
    CHECK(job.until([&] { return errors.text().find('\n') != std::string::npos; }, 200));
    CHECK(job[0].net->send(1, 20, {}, {}) == status::retry_queue_full);
    said = errors.text();
  }
  INFO(said);
  CHECK(said.find("rma: rank 0: rank ") == 0);
  CHECK(said.find(" does not answer on ") != std::string::npos);
  CHECK(said.find("RMA_DEVICE") != std::string::npos);
  CHECK(said.find('\n') + 1 == said.size());
}
