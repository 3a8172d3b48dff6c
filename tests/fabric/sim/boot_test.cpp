// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

#include "fabric/sim/sim_client.hpp"
#include "fabric/sim/small_world.hpp"

using namespace rma::sim;
using namespace rma::test;
using rma::status;

TEST_CASE("values are seen by all, those to come are waited for", "[fabric][sim][boot]") {
  world w(ranks(4));
  std::vector<std::string> got(4);
  w.run([&](int r) {
    sim_client me(w, r);
    work(w, r, (4 - r) * us);
    CHECK(me.put("key/" + std::to_string(r), "value " + std::to_string(r)) == status::done);
    CHECK(me.get("key/" + std::to_string((r + 1) % 4), got[static_cast<std::size_t>(r)]) == status::done);
    CHECK(me.put(std::string(5000, 'k'), "") == status::bad_size);
    CHECK(me.fence() == status::done);
    me.finalize();
    return 0;
  });
  CHECK(got == std::vector<std::string>{"value 1", "value 2", "value 3", "value 0"});
  CHECK(w.deadlock().empty());
}

TEST_CASE("a fence lets nobody pass before the last one comes", "[fabric][sim][boot]") {
  world w(ranks(3));
  int arrived = 0;
  w.run([&](int r) {
    sim_client me(w, r);
    for (int turn = 1; turn <= 5; ++turn) {
      work(w, r, ((r + turn) % 3) * 10 * us);
      ++arrived;
      CHECK(me.fence() == status::done);
      CHECK(arrived >= 3 * turn);
    }
    me.finalize();
    return 0;
  });
  CHECK(arrived == 15);
}

TEST_CASE("deaths end waits and are news once", "[fabric][sim][boot]") {
  world w(ranks(3));
  w.kill_at(2, 50 * us);
  int told = 0;
  w.run([&](int r) {
    sim_client me(w, r);
    if (r == 2) work(w, r, 1000 * us);
    std::string value;
    if (r == 0) CHECK(me.get("nobody puts it", value) == status::peer_failed);
    if (r == 1) CHECK(me.fence() == status::peer_failed);
    std::vector<int> died;
    CHECK(me.poll_events(died) == status::done);
    CHECK(died == std::vector<int>{2});
    CHECK(me.poll_events(died) == status::done);
    CHECK(died.size() == 1);
    ++told;
    me.finalize();
    return 0;
  });
  CHECK(told == 2);
  CHECK(w.deadlock().empty());
}

TEST_CASE("who goes without leaving has died", "[fabric][sim][boot]") {
  world w(ranks(2));
  w.run([&](int r) {
    auto me = std::make_unique<sim_client>(w, r);
    if (r == 1) return 0;  // destroyed, not left
    CHECK(me->fence() == status::peer_failed);
    me->finalize();
    return 0;
  });
  CHECK(w.deaths() == std::vector<int>{1});
}

TEST_CASE("who ends before the others have come is missed", "[fabric][sim][boot]") {
  world w(ranks(2));
  w.run([&](int r) {
    if (r == 1) return 3;
    CHECK_THROWS_AS(sim_client(w, r), rma::Error);
    return 0;
  });
  CHECK(w.deadlock().empty());
}

TEST_CASE("a value that nobody puts is a deadlock", "[fabric][sim][boot]") {
  world w(ranks(2));
  w.run([&](int r) {
    sim_client me(w, r);
    std::string value;
    (void)me.get("nobody puts it", value);
    return 0;
  });
  CHECK(w.deadlock().find("rank 1 waits in the start of the runtime") != std::string::npos);
}

TEST_CASE("a rank that has left may come again", "[fabric][sim][boot]") {
  world w(ranks(3));
  w.run([&](int r) {
    for (int round = 0; round < 3; ++round) {
      sim_client me(w, r);
      std::string value;
      if (r == 0) CHECK(me.put("round", std::to_string(round)) == status::done);
      CHECK(me.get("round", value) == status::done);
      CHECK(value == std::to_string(round));
      CHECK(me.fence() == status::done);
      me.finalize();
      work(w, r, (r + 1) * 10 * us);
    }
    return 0;
  });
  CHECK(w.deaths().empty());
  CHECK(w.deadlock().empty());
}
