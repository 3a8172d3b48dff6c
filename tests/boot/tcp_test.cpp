// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "boot/frame_link.hpp"
#include "boot/interfaces.hpp"
#include "boot/pmi2_session.hpp"
#include "ranks.hpp"

using namespace rma;
using namespace rma::boot;
using namespace rma::boot::test;

namespace {

/// A port that was free a moment ago.
std::string free_address(const char* host = "127.0.0.1") {
  boot_address where = parse_address(std::string("tcp://") + host + ":0");
  const unique_fd listener = listen_at(where);
  return to_text(where);
}

options tcp_options(const std::string& address, const std::string& key, int rank, int size) {
  options how;
  how.address = address;
  how.rank = rank;
  how.size = size;
  how.key = key;
  how.timeout_ms = 20000;
  return how;
}

}  // namespace

// Goal: rank 0 hosts the job, and the others may come earlier than it. Method: it is started last.
TEST_CASE("tcp: a job without a launcher", "[boot][tcp]") {
  const int size = 4;
  const std::string address = free_address();
  const std::string key = random_hex(32);
  std::vector<std::future<bool>> working;
  for (int rank = size - 1; rank >= 0; --rank) {
    working.push_back(std::async(std::launch::async, [&, rank] {
      const auto me = join(tcp_options(address, key, rank, size));
      bool good = me->put("k" + std::to_string(rank), std::to_string(rank)) == status::done;
      for (int other = 0; other < size; ++other) {
        std::string value;
        good = good && me->get("k" + std::to_string(other), value) == status::done && value == std::to_string(other);
      }
      good = good && me->fence() == status::done;
      me->finalize();
      return good;
    }));
  }
  for (auto& each : working) CHECK(each.get());
}

TEST_CASE("tcp: rank 0 leaving in good order is not its death", "[boot][tcp]") {
  const std::string address = free_address();
  const std::string key = random_hex(32);
  auto zero = std::async(std::launch::async, [&] { return join(tcp_options(address, key, 0, 2)); });
  const auto one = join(tcp_options(address, key, 1, 2));
  auto host = zero.get();
  host->finalize();
  host.reset();
  CHECK(one->fence() != status::done);
  std::vector<int> died;
  CHECK(one->poll_events(died) == status::done);
  CHECK(died.empty());
  one->finalize();
}

// Goal: of jobs one after the other at one address, none is disturbed by the one before. Method: the others do not wait
// for rank 0, which still hosts the last job when they come for the next one. Break: give up at any `closing`.
TEST_CASE("tcp: a rank comes while rank 0 ends the job before", "[boot][tcp]") {
  constexpr int size = 3;
  constexpr int jobs = 30;
  const std::string address = free_address();
  const std::string key = random_hex(32);
  std::vector<std::future<int>> working;
  for (int rank = 0; rank < size; ++rank) {
    working.push_back(std::async(std::launch::async, [&, rank] {
      for (int job = 0; job < jobs; ++job) {
        const auto me = join(tcp_options(address, key, rank, size));
        std::string value;
        const std::string mine = std::to_string(job);
        if (me->put("job of " + std::to_string(rank), mine) != status::done) return job;
        if (me->get("job of " + std::to_string((rank + 1) % size), value) != status::done || value != mine) return job;
        if (me->fence() != status::done) return job;
        me->finalize();
      }
      return jobs;
    }));
  }
  for (auto& each : working) CHECK(each.get() == jobs);
}

TEST_CASE("tcp: nobody listens", "[boot][tcp]") {
  auto how = tcp_options(free_address(), random_hex(32), 1, 2);
  how.timeout_ms = 200;
  const auto [code, text] = join_error(how);
  CHECK(code == status::bad_boot);
  CHECK(contains(text, "nobody listens there (Connection refused) after 200 ms"));
}

// Goal: who waits in vain for ranks of other hosts is told what the name in RMA_BOOT stands for here, and that a
// loopback address is no use. Break: say the name only.
TEST_CASE("tcp: rank 0 says where it listens", "[boot][tcp]") {
  const char* const host = GENERATE("127.0.1.1", "0.0.0.0", "localhost");
  auto how = tcp_options(free_address(host), random_hex(32), 0, 2);
  how.timeout_ms = 100;
  const auto [code, text] = join_error(how);
  CAPTURE(host, text);
  CHECK(code == status::bad_boot);
  CHECK(contains(text, "these ranks of 2 have not: 1; have they been started, with this RMA_BOOT? Rank 0 listens at "));
  const bool is_loopback = host != std::string("0.0.0.0");
  CHECK(contains(text, "a loopback address, which no other host reaches") == is_loopback);
  CHECK((contains(text, host) && (is_loopback || text.ends_with("Rank 0 listens at 0.0.0.0"))));
}

TEST_CASE("tcp: the port is taken", "[boot][tcp]") {
  boot_address where = parse_address("tcp://127.0.0.1:0");
  const unique_fd listener = listen_at(where);
  const auto [code, text] = join_error(tcp_options(to_text(where), random_hex(32), 0, 2));
  CHECK(code == status::bad_boot);
  CHECK(contains(text, "cannot listen at " + to_text(where) + ": Address already in use"));
}

TEST_CASE("tcp: a wrong key", "[boot][tcp]") {
  const std::string address = free_address();
  const std::string key = random_hex(32);
  auto zero = std::async(std::launch::async, [&] { return join(tcp_options(address, key, 0, 2)); });
  CHECK(contains(join_error(tcp_options(address, random_hex(32), 1, 2)).second, "the job key is wrong"));
  const auto one = join(tcp_options(address, key, 1, 2));
  const auto host = zero.get();
  CHECK(host->size() == 2);
}

TEST_CASE("PMI-2: messages are taken apart", "[boot][pmi2]") {
  CHECK(pmi2_fields("cmd=x;rc=0;value=a=b;") ==
        std::map<std::string, std::string, std::less<>>{{"cmd", "x"}, {"rc", "0"}, {"value", "a=b"}});
  CHECK(pmi2_fields("").empty());
  CHECK(pmi2_fields(";;nothing;=").size() == 1);
  CHECK(pmi2_nodes("(vector,(0,1,4))") == 1);
  CHECK(pmi2_nodes("(vector,(0,2,2),(2,1,1))") == 3);
  for (const char* text :
       {"", "vector", "(vector", "(vector,(", "(vector,(0,x,1))", "(vector,(0", "(vector,(-1,1,1))"}) {
    CAPTURE(text);
    CHECK(pmi2_nodes(text) == 0);
  }
}

TEST_CASE("interfaces are found by name and by address", "[boot][tcp]") {
  CHECK(address_of_interface("lo") == "127.0.0.1");
  CHECK(address_of_interface("127.0.0.1") == "127.0.0.1");
  CHECK_THROWS_WITH(address_of_interface("nowhere"), Catch::Contains("no such interface or address") &&
                                                         Catch::Contains("there are: ") && Catch::Contains("lo 127."));
}

TEST_CASE("addresses are taken apart and put together", "[boot][tcp]") {
  for (const char* text : {"local://name", "tcp://host.example:80", "tcp://[::1]:65535", "tcp://10.0.0.1:0"}) {
    CHECK(to_text(parse_address(text)) == text);
  }
  for (const char* text : {"", "name", "local:/name", "tcp://host:", "tcp://host:x", "tcp://host:123456",
                           "tcp://host:99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_address(text), Error);
  }
}
