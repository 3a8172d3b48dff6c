// SPDX-License-Identifier: Apache-2.0
// Goal: signals neither make memory short nor keep a rank from the node's memory, however often they come.
//
// Method: a call of the kernel's that gives up as older ones do when a timer is faster than a large piece; a real
// timer, against this machine's kernel, and while a rank waits for the node's descriptor, which comes when the rank has
// been interrupted often enough.
//
// Break: take all memory by one call, and repeat that; take the first interruption for shortage; keep what was taken
// before a shortage; receive the descriptor without going on after a signal, or for ever.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <future>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "boot/socket.hpp"
#include "fabric/shm/fd_exchange.hpp"
#include "fabric/shm/node.hpp"
#include "fabric/shm/quiet_boot.hpp"
#include "rma/rma.hpp"

using namespace rma;
using namespace rma::shm;
using namespace rma::shm::test;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// The bytes that the kernel moves before a signal interrupts it, and those that it has in all.
struct kernel_limits {
  off_t uninterrupted_bytes = std::numeric_limits<off_t>::max();
  off_t left_bytes = std::numeric_limits<off_t>::max();
  int interruptions = 0;
} kernel;

std::atomic<int> alarms = 0;

/// SIGALRM every millisecond, handled without SA_RESTART, by threads that do not block it.
class interval_timer {
 public:
  interval_timer() {
    alarms = 0;
    struct sigaction counted {};
    counted.sa_handler = [](int) { ++alarms; };
    REQUIRE(::sigaction(SIGALRM, &counted, &before_) == 0);
    const itimerval every_ms{{0, 1000}, {0, 1000}};
    REQUIRE(::setitimer(ITIMER_REAL, &every_ms, nullptr) == 0);
  }
  ~interval_timer() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  interval_timer(const interval_timer&) = delete;
  interval_timer& operator=(const interval_timer&) = delete;

 private:
  struct sigaction before_ {};
};

std::size_t bytes_of_file(int fd) {
  struct stat s {};
  REQUIRE(::fstat(fd, &s) == 0);
  return static_cast<std::size_t>(s.st_blocks) * 512;
}

}  // namespace

/// Instead of the C library's.
extern "C" int posix_fallocate(int fd, off_t at, off_t bytes) {
  if (bytes > kernel.uninterrupted_bytes) {
    ++kernel.interruptions;
    return EINTR;
  }
  if (bytes > kernel.left_bytes) return ENOSPC;
  kernel.left_bytes -= bytes;
  return ::fallocate(fd, 0, at, bytes) == 0 ? 0 : errno;
}

TEST_CASE("memory is taken in pieces that a timer lets through", "[fabric][shm]") {
  const off_t uninterrupted_bytes = GENERATE(off_t{page_bytes}, off_t{5 * page_bytes}, off_t{4 * mebibyte});
  CAPTURE(uninterrupted_bytes);
  kernel = {};
  lone_board alone;
  const std::size_t before = bytes_of_file(alone.node->descriptor());
  kernel.uninterrupted_bytes = uninterrupted_bytes;
  const std::size_t bytes = 9 * mebibyte + 3 * page_bytes;
  REQUIRE(alone.node->populate(page_bytes, bytes) == status::done);
  CHECK(kernel.interruptions > 0);
  CHECK(kernel.interruptions < 20);  // not one for each piece
  CHECK(bytes_of_file(alone.node->descriptor()) >= before + bytes);
  kernel = {};
}

TEST_CASE("of memory that is not there nothing is kept", "[fabric][shm]") {
  kernel = {};
  const std::map<std::string, std::string> larger{{"RMA_SEGMENT_BYTES", "64M"}};
  lone_board alone(larger);
  const std::size_t before = bytes_of_file(alone.node->descriptor());
  kernel.left_bytes = 40 * mebibyte;
  CHECK(alone.node->populate(0, 48 * mebibyte) == status::out_of_memory);
  CHECK(bytes_of_file(alone.node->descriptor()) == before);
  kernel = {};
}

TEST_CASE("a large window is made beside a timer", "[fabric][shm]") {
  Config config;
  config.environment = false;
  config.settings = {{"RMA_SEGMENT_BYTES", "256M"}};
  Runtime rt(config);
  const interval_timer timer;
  auto win = Window<std::byte>::allocate(rt.world(), 128 * mebibyte);
  win.local().back() = std::byte{1};
  win.free();
}

TEST_CASE("a rank that is interrupted gets the node's descriptor", "[fabric][shm]") {
  const boot::unique_fd fd(::memfd_create("interrupted_test", MFD_CLOEXEC));
  fd_offer offer(fd.get(), {1234, 0x5000, 4096});
  constexpr int enough = 50;
  sigset_t alarm, before;
  ::sigemptyset(&alarm);
  ::sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_BLOCK, &alarm, &before);  // in the other thread
  auto serving = std::async(std::launch::async, [&] {
    rma::test::quiet_boot boot;
    for (int seen = alarms; seen < enough; seen = alarms) std::this_thread::yield();
    offer.serve(1, boot, 20000);
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  rma::test::quiet_boot boot;
  std::string failure;
  try {
    const interval_timer timer;
    ::close(accept_fd(offer.invitation(), boot, 0, 20000).fd);
  } catch (const Error& e) {
    failure = e.what();
  }
  alarms = enough;
  if (!failure.empty()) ::close(accept_fd(offer.invitation(), boot, 0, 20000).fd);  // the other thread is to end
  serving.get();
  CHECK(failure == "");
}

TEST_CASE("a rank that is interrupted does not wait for ever", "[fabric][shm]") {
  const boot::unique_fd fd(::memfd_create("interrupted_test", MFD_CLOEXEC));
  const fd_offer offer(fd.get(), {1234, 0x5000, 4096});
  rma::test::quiet_boot boot;
  const interval_timer timer;
  CHECK_THROWS_AS(accept_fd(offer.invitation(), boot, 0, 50), Error);
}
