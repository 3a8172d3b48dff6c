// SPDX-License-Identifier: Apache-2.0
// The TCP fabric alone: processes that may open nothing more.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "boot/descriptors.hpp"
#include "fabric/tcp/tcp_job.hpp"
#include "sanitizers.hpp"
#include "skip.hpp"

namespace {

using rma::status;
using rma::tcp::bytes_of;
using rma::test::kind;
using rma::test::tcp_job;

constexpr int doubt_naps = 10;  // naps of `until`: twice as long as a fabric doubts

/// This process's limits, as they were at the end of the test.
class limits {
 public:
  limits() { REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0); }
  limits(const limits&) = delete;
  limits& operator=(const limits&) = delete;
  ~limits() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  void set_soft(rlim_t soft) const {
    const rlimit now{soft, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
  }
  [[nodiscard]] const rlimit& before() const { return before_; }

 private:
  rlimit before_{};
};

/// All that this process may have open.
class shortage {
 public:
  shortage() {
    rma::boot::unique_fd last(::dup(STDIN_FILENO));
    REQUIRE(last);
    limits_.set_soft(static_cast<rlim_t>(last.get()) + 1);
    taken_.push_back(std::move(last));
    for (int fd = ::dup(STDIN_FILENO); fd >= 0; fd = ::dup(STDIN_FILENO)) taken_.emplace_back(fd);
  }

 private:
  limits limits_;
  std::vector<rma::boot::unique_fd> taken_;
};

/// True in a sanitized build, which opens a pipe for each look at an object's type; the test has been skipped then.
bool watched_by_pipes() {
  if (rma::test::address_sanitizer) rma::test::skip("the sanitizer needs descriptors itself");
  return rma::test::address_sanitizer;
}

bool has_news(const rma::test::tcp_member& m) {
  pollfd news{m.net->event_fd(), POLLIN, 0};
  return ::poll(&news, 1, 0) != 0;
}

}  // namespace

// Goal: who has no descriptor for a connection does not take the peer for lost; what was said meanwhile arrives when
// there is one again. Nor does the shortage keep waits awake.
// Break: in connect, doubt whenever nothing begins; or do not try again.
TEST_CASE("no descriptor to connect with", "[tcp]") {
  if (watched_by_pipes()) return;
  tcp_job all(2);
  const std::uint64_t word = 5;
  {
    const shortage none;
    REQUIRE(all[0].net->send(1, kind, bytes_of(word), {}) == status::done);
    CHECK_FALSE(all.until([&] { return !all[0].broken.empty(); }, doubt_naps));
    REQUIRE(all[0].net->send(1, kind, bytes_of(word), {}) == status::done);
  }
  REQUIRE(all.until([&] { return all[1].messages.size() == 2; }));
  CHECK(all[0].broken.empty());
  all.exchange(0, 1);
}

// Goal: so has who is connected to; whoever connects waits, and strangers or ranks that are there are not sent away.
// Method: the connection is begun, then there is a shortage.
// Break: in accept_all, do nothing about it (waits never sleep); or listen no more when it is over.
TEST_CASE("no descriptor to accept with", "[tcp]") {
  if (watched_by_pipes()) return;
  tcp_job all(2);
  const std::uint64_t word = 5;
  REQUIRE(all[0].net->send(1, kind, bytes_of(word), {}) == status::done);
  {
    const shortage none;
    for (int i = 0; i < 10; ++i) all[1].net->poll(all[1], 100);
    REQUIRE_FALSE(has_news(all[1]));
    CHECK_FALSE(all.until([&] { return !all[0].broken.empty(); }, doubt_naps));
    CHECK(all[1].messages.empty());
  }
  REQUIRE(all.until([&] { return all[1].messages.size() == 1; }));
  CHECK((all[0].broken.empty() && all[1].broken.empty()));
}

// Goal: a rank of a large job may have as many descriptors as its system allows; small jobs change nothing.
// Break: raise the limit always, or never.
TEST_CASE("descriptors for large jobs", "[tcp]") {
  const limits now;
  const rlim_t most = now.before().rlim_max;
  REQUIRE(most > 2048);
  const auto soft = [] {
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    return limit.rlim_cur;
  };
  now.set_soft(1024);
  rma::boot::allow_connections(64);
  CHECK(soft() == 1024);
  rma::boot::allow_connections(1000);
  CHECK(soft() == most);
}
