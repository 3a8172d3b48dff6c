// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "boot/protocol.hpp"
#include "ranks.hpp"

using namespace rma;
using namespace rma::boot;
using namespace rma::boot::test;

namespace {

/// Waits for news as a runtime does: asleep on the event descriptor.
status wait_for_news(client& me, std::vector<int>& died, std::size_t wanted) {
  while (died.size() < wanted) {
    pollfd wait{me.event_fd(), POLLIN, 0};
    if (::poll(&wait, 1, 10000) <= 0) return status::not_yet;
    if (const status s = me.poll_events(died); s != status::done) return s;
  }
  return status::done;
}

bool readable(const client& me) {
  pollfd wait{me.event_fd(), POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
}

std::string name_of_rank(int rank) { return "address." + std::to_string(rank); }

}  // namespace

// Goal: after a fence every rank reads what every other put. Method: many rounds, ranks as threads.
TEST_CASE("put and fence and get among all ranks", "[boot][client]") {
  const int size = GENERATE(1, 2, 7);
  world ranks(size);
  const auto good = ranks.run([&](client& me) {
    for (int turn = 0; turn < 50; ++turn) {
      const std::string mine = std::to_string(turn * 1000 + me.rank());
      if (me.put(name_of_rank(me.rank()), mine) != status::done || me.fence() != status::done) return false;
      for (int rank = 0; rank < size; ++rank) {
        std::string value;
        if (me.get(name_of_rank(rank), value) != status::done) return false;
        if (value != std::to_string(turn * 1000 + rank)) return false;
      }
      if (me.fence() != status::done) return false;
    }
    return me.size() == size;
  });
  CHECK(good == std::vector<bool>(static_cast<std::size_t>(size), true));
}

// Goal: get waits for a put that comes later. Method: a chain in which each rank waits for the one before.
TEST_CASE("get waits for the put", "[boot][client]") {
  world ranks(4);
  const auto got = ranks.run([](client& me) {
    std::string value = "0";
    if (me.rank() > 0 && me.get(name_of_rank(me.rank() - 1), value) != status::done) return std::string("failed");
    (void)me.put(name_of_rank(me.rank()), value + std::to_string(me.rank()));
    (void)me.fence();
    return value;
  });
  CHECK(got == std::vector<std::string>{"0", "00", "001", "0012"});
}

TEST_CASE("values of up to 1 MiB with any bytes", "[boot][client]") {
  world ranks(2);
  const auto good = ranks.run([](client& me) {
    std::string big(value_bytes_max, '\0');
    const auto start = static_cast<std::size_t>(me.rank());
    for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 31 + start);
    for (int i = 0; i < 8; ++i) (void)me.put("big" + std::to_string(me.rank()) + std::to_string(i), big);
    if (me.put("too big", big + "x") != status::bad_size) return false;
    if (me.put(std::string(key_bytes_max + 1, 'k'), "") != status::bad_size) return false;
    std::string value;
    if (me.get(std::string(key_bytes_max + 1, 'k'), value) != status::bad_size) return false;
    if (me.fence() != status::done) return false;
    if (me.get("big" + std::to_string(1 - me.rank()) + "7", value) != status::done) return false;
    const bool same = value.size() == value_bytes_max && value[5] == static_cast<char>(5 * 31 + 1 - me.rank());
    return same && me.fence() == status::done;
  });
  CHECK(good == std::vector<bool>{true, true});
}

TEST_CASE("two jobs in one process do not see each other", "[boot][client]") {
  world one(2);
  world other(2);
  CHECK(one.jobs.address() != other.jobs.address());
  const auto work = [](const std::string& word) {
    return [word](client& me) {
      std::string value;
      if (me.rank() == 0) (void)me.put("word", word);
      (void)me.get("word", value);
      (void)me.fence();
      return value;
    };
  };
  auto in_other = std::async(std::launch::async, [&] { return other.run(work("other")); });
  CHECK(one.run(work("one")) == std::vector<std::string>{"one", "one"});
  CHECK(in_other.get() == std::vector<std::string>{"other", "other"});
  auto misled = one.options_of(0);
  misled.address = other.jobs.address();
  CHECK(contains(join_error(misled).second, "the job key is wrong"));
}

// Goal: everyone learns of a death, waiting or not. Method: rank 3 closes its connection without leaving.
TEST_CASE("a death ends waiting and reaches everyone", "[boot][death]") {
  world ranks(4);
  auto clients = ranks.join_all();
  auto in_fence = std::async(std::launch::async, [&] { return clients[0]->fence(); });
  auto in_get = std::async(std::launch::async, [&] {
    std::string value;
    return clients[1]->get("never put", value);
  });
  clients[3].reset();
  CHECK(in_fence.get() == status::peer_failed);
  CHECK(in_get.get() == status::peer_failed);
  for (const int rank : {0, 1, 2}) {
    CAPTURE(rank);
    std::vector<int> died;
    CHECK(wait_for_news(*clients[static_cast<std::size_t>(rank)], died, 1) == status::done);
    CHECK(died == std::vector<int>{3});
    CHECK_FALSE(readable(*clients[static_cast<std::size_t>(rank)]));
  }
  CHECK(ranks.jobs.deaths() == std::vector<int>{3});
  CHECK(ranks.jobs.state(3) == rank_state::dead);
  CHECK(clients[2]->fence() == status::peer_failed);
  // Those who have been told can go on among themselves.
  std::string value;
  CHECK(clients[2]->put("late", "1") == status::done);
  CHECK(clients[0]->get("late", value) == status::done);
  for (const int rank : {0, 1, 2}) clients[static_cast<std::size_t>(rank)]->finalize();
}

TEST_CASE("a missing key after a death that was not yet told", "[boot][death]") {
  world ranks(3);
  auto clients = ranks.join_all();
  clients[2].reset();
  std::vector<int> died;
  REQUIRE(wait_for_news(*clients[1], died, 1) == status::done);
  std::string value;
  CHECK(clients[0]->get("missing", value) == status::peer_failed);
  CHECK(readable(*clients[0]));  // the news came in while get was waiting, and is still to be told
  died.clear();
  CHECK(clients[0]->poll_events(died) == status::done);
  CHECK(died == std::vector<int>{2});
  // Now it knows, and may wait for a survivor.
  auto waiting = std::async(std::launch::async, [&] { return clients[0]->get("missing", value); });
  CHECK(clients[1]->put("missing", "here") == status::done);
  CHECK(waiting.get() == status::done);
  CHECK(value == "here");
}

TEST_CASE("report_death and mark_dead are deaths", "[boot][death]") {
  world ranks(4);
  auto clients = ranks.join_all();
  clients[0]->report_death(2);
  clients[0]->report_death(2);
  std::vector<int> died;
  CHECK(wait_for_news(*clients[1], died, 1) == status::done);
  ranks.jobs.mark_dead(3);
  CHECK(wait_for_news(*clients[1], died, 2) == status::done);
  CHECK(died == std::vector<int>{2, 3});
  // A rank that was reported dead by mistake gets a message about that, and is disconnected.
  std::vector<int> told;
  CHECK(wait_for_news(*clients[2], told, 100) == status::fabric_lost);
  CHECK(std::find(told.begin(), told.end(), 2) != told.end());
  CHECK(clients[2]->fence() == status::fabric_lost);
  CHECK_FALSE(readable(*clients[2]));
  clients[0]->report_death(-1);
  clients[0]->report_death(4);
  CHECK(clients[0]->put("k", "v") == status::done);
}

TEST_CASE("leaving is no death", "[boot][leave]") {
  world ranks(3);
  auto clients = ranks.join_all();
  clients[2]->finalize();
  clients[2]->finalize();
  clients[2].reset();
  CHECK(ranks.jobs.state(2) == rank_state::left);
  ranks.jobs.mark_dead(2);  // its process ends, as the launcher says of every rank
  CHECK(ranks.jobs.state(2) == rank_state::left);
  CHECK(ranks.jobs.deaths().empty());
  CHECK(clients[0]->fence() == status::peer_failed);  // it will never come
  std::vector<int> died;
  CHECK(clients[1]->poll_events(died) == status::done);
  CHECK(died.empty());
  std::string value;
  CHECK(clients[1]->put("k", "v") == status::done);
  CHECK(clients[0]->get("k", value) == status::done);
}

// Goal: a get that nobody can answer is an error, not a hang. Method: every rank waits.
TEST_CASE("ranks that all wait are told so", "[boot][client]") {
  world ranks(3);
  const auto got = ranks.run([](client& me) {
    std::string value;
    return me.rank() == 2 ? me.fence() : me.get("nobody puts this", value);
  });
  CHECK(got[0] == status::bad_argument);
  CHECK(got[1] == status::bad_argument);
  CHECK(got[2] == status::peer_failed);  // the others left instead
}

// Goal: a process may have one runtime after the other. Method: a quick rank is back before the others have left.
TEST_CASE("a job can be joined again after leaving", "[boot][leave]") {
  world ranks(3);
  const auto one_round = [&](int rank) {
    const auto me = join(ranks.options_of(rank));
    std::string value;
    // A value of an earlier round is gone: all wait for a key that only the last round knew.
    bool good = me->get("old", value) == status::bad_argument && me->fence() == status::done;
    good = good && me->put("old", "1") == status::done && me->fence() == status::done;
    me->finalize();
    return good;
  };
  std::vector<std::future<bool>> working;
  for (int rank = 0; rank < ranks.size; ++rank) {
    working.push_back(std::async(std::launch::async, [&, rank] {
      bool good = true;
      for (int turn = 0; turn < 20; ++turn) good = one_round(rank) && good;
      return good;
    }));
  }
  for (auto& each : working) CHECK(each.get());
  auto clients = ranks.join_all();
  clients[0]->finalize();
  auto early = std::async(std::launch::async, [&] { return join(ranks.options_of(0)); });
  CHECK(clients[1]->put("still", "here") == status::done);
  clients[1]->finalize();
  clients[2]->finalize();
  auto again = std::async(std::launch::async, [&] { return join(ranks.options_of(1)); });
  const auto last = join(ranks.options_of(2));
  CHECK(last->size() == 3);
  CHECK(early.get()->rank() == 0);
}

TEST_CASE("an abort reaches the server and everyone", "[boot][abort]") {
  world ranks(3);
  auto clients = ranks.join_all();
  auto in_fence = std::async(std::launch::async, [&] { return clients[1]->fence(); });
  clients[0]->abort(42, "no\nway");
  CHECK(in_fence.get() == status::job_aborted);
  std::vector<int> died;
  CHECK(wait_for_news(*clients[2], died, 1) == status::job_aborted);
  CHECK_FALSE(readable(*clients[2]));
  CHECK(clients[2]->put("k", "v") == status::job_aborted);
  pollfd wait{ranks.jobs.abort_fd(), POLLIN, 0};
  CHECK(::poll(&wait, 1, 0) == 1);
  const auto news = ranks.jobs.aborted();
  REQUIRE(news.has_value());
  CHECK(news->rank == 0);
  CHECK(news->code == 42);
  CHECK(news->message == "no way");
}

TEST_CASE("a server that ends in good order or not", "[boot][leave]") {
  world ranks(2);
  auto clients = ranks.join_all();
  auto in_fence = std::async(std::launch::async, [&] { return clients[0]->fence(); });
  ranks.jobs.stop();
  CHECK(in_fence.get() == status::fabric_lost);
  std::vector<int> died;
  pollfd wait{clients[1]->event_fd(), POLLIN, 0};
  CHECK(::poll(&wait, 1, 10000) == 1);
  CHECK(clients[1]->poll_events(died) == status::done);  // it said good-bye: no reason to presume anyone dead
  CHECK_FALSE(readable(*clients[1]));
  CHECK(clients[1]->fence() == status::fabric_lost);
  clients[1]->finalize();
}

TEST_CASE("a rank that ends before joining stops the others", "[boot][join]") {
  world ranks(3);
  auto waiting = std::async(std::launch::async, [&] { return join_error(ranks.options_of(0)); });
  ranks.jobs.mark_dead(2);
  const auto [code, text] = waiting.get();
  CHECK(code == status::peer_failed);
  CHECK(contains(text, "rank 2 ended before all had joined"));
}

// Goal: put, get and fence end although a rank does not go on, and say which. Method: rank 1 joins, and that is all.
TEST_CASE("who holds up the start is named", "[boot][client]") {
  world ranks(3);
  const auto join_with = [&](int rank, int timeout_ms) {
    options how = ranks.options_of(rank);
    how.timeout_ms = timeout_ms;
    return join(how);
  };
  std::vector<std::future<std::unique_ptr<client>>> joining;
  for (int rank = 0; rank < 3; ++rank)
    joining.push_back(std::async(std::launch::async, join_with, rank, rank == 1 ? 20000 : 2000));
  std::vector<std::unique_ptr<client>> clients;
  for (auto& each : joining) clients.push_back(each.get());
  clients[1]->begin_step("thinks");
  std::string value;
  auto waiting = std::async(std::launch::async, [&] { return clients[0]->fence(); });
  CHECK(clients[2]->get("never put", value) == status::bad_boot);
  CHECK(waiting.get() == status::bad_boot);
  CHECK(clients[0]->late_ranks() == "rank 1 (thinks)");
  try {
    raise_job_ended(*clients[2], status::bad_boot);
  } catch (const Error& e) {
    CHECK(e.code() == status::bad_boot);
    CHECK(contains(e.what(), "rank 2 of 3: "));
    CHECK(contains(e.what(), "it waits for rank 1 (thinks)"));
  }
}

TEST_CASE("who is missing after the time-out is named", "[boot][join]") {
  world ranks(4);
  auto how = ranks.options_of(2);
  how.timeout_ms = 100;
  const auto [code, text] = join_error(how);
  CHECK(code == status::bad_boot);
  CHECK(contains(text, "these ranks of 4 have not: 0, 1, 3"));
  CHECK(contains(text, "after 100 ms"));
}

TEST_CASE("parameters that make no sense are one clear line", "[boot][join]") {
  world ranks(1);
  const auto error_with = [&](auto change) {
    options how = ranks.options_of(0);
    how.timeout_ms = 50;
    change(how);
    const auto [code, text] = join_error(how);
    CHECK(code == status::bad_boot);
    CHECK(text.find('\n') == std::string::npos);
    return text;
  };
  CHECK(contains(error_with([](options& o) { o.rank = 7, o.size = 4; }), "RMA_RANK=7 but RMA_SIZE=4"));
  CHECK(contains(error_with([](options& o) { o.rank = -1; }), "RMA_RANK=-1"));
  CHECK(contains(error_with([](options& o) { o.size = 0; }), "RMA_SIZE=0"));
  CHECK(contains(error_with([](options& o) { o.address = "", o.size = 4; }), "RMA_BOOT is not set"));
  CHECK(contains(error_with([](options& o) { o.address = "alone", o.size = 3; }),
                 "RMA_SIZE=3 but RMA_BOOT=alone is a job of one"));
  CHECK(contains(error_with([](options& o) { o.address = "tcp://127.0.0.1:0", o.size = 2; }),
                 "RMA_BOOT=tcp://127.0.0.1:0: the others could not know port 0; give one that is free"));
  CHECK(contains(error_with([](options& o) { o.key = ""; }), "RMA_KEY is not set"));
  CHECK(contains(error_with([](options& o) { o.key = "short"; }), "RMA_KEY is too short"));
  CHECK(contains(error_with([](options& o) { o.key = random_hex(32); }), "the job key is wrong"));
  CHECK(contains(error_with([](options& o) { o.size = 2; }), "RMA_SIZE=2, but this job has 1 ranks"));
  CHECK(contains(error_with([](options& o) { o.address = "local://nobody-here"; }), "nobody listens there"));
  CHECK(contains(error_with([](options& o) { o.address = "carrier://pigeon"; }), "local://NAME and tcp://HOST:PORT"));
  CHECK(contains(error_with([](options& o) { o.address = "tcp://host"; }), "the port is missing"));
  CHECK(contains(error_with([](options& o) { o.address = "tcp://host:99999"; }), "bad port"));
  CHECK(contains(error_with([](options& o) { o.address = "tcp://:80"; }), "the host is missing"));
}

TEST_CASE("a job of one needs no server", "[boot][single]") {
  const auto me = join({});
  CHECK(me->rank() == 0);
  CHECK(me->size() == 1);
  std::string value;
  CHECK(me->put("k", "v") == status::done);
  CHECK(me->get("k", value) == status::done);
  CHECK(value == "v");
  CHECK(me->get("missing", value) == status::bad_argument);
  CHECK(me->fence() == status::done);
  CHECK(me->event_fd() == -1);
  std::vector<int> died;
  CHECK(me->poll_events(died) == status::done);
  me->finalize();
}

// Goal: what the launcher says is understood, or refused in one line. Method: this process's own environment.
TEST_CASE("parameters from the environment", "[boot][join]") {
  const auto with = [](const char* boot, const char* rank, const char* size) {
    const char* names[] = {"RMA_BOOT", "RMA_RANK", "RMA_SIZE"};
    const char* values[] = {boot, rank, size};
    for (int i = 0; i < 3; ++i) {
      if (values[i] != nullptr) ::setenv(names[i], values[i], 1);
    }
    std::string error;
    options how;
    try {
      how = options_from_environment();
    } catch (const Error& e) {
      error = e.what();
    }
    for (const char* name : names) ::unsetenv(name);
    return std::pair(how, error);
  };
  CHECK(with(nullptr, nullptr, nullptr).first.size == 1);
  CHECK(with(nullptr, nullptr, nullptr).first.address.empty());
  const auto [how, error] = with("local://x", "2", "3");
  CHECK(error.empty());
  CHECK(how.address == "local://x");
  CHECK(how.rank == 2);
  CHECK(how.size == 3);
  CHECK(contains(with("local://x", "2x", "3").second, "RMA_RANK=2x is not a whole number"));
  CHECK(contains(with("local://x", "2", "99999999999").second, "RMA_SIZE=99999999999 is not a whole number"));
  CHECK(contains(with("local://x", nullptr, "3").second, "RMA_RANK or RMA_SIZE is not"));
  CHECK(contains(join_error(with(nullptr, nullptr, "3").first).second, "RMA_BOOT is not set"));
}
