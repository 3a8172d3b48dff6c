// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "boot/frame_link.hpp"
#include "ranks.hpp"
#include "sanitizers.hpp"

using namespace rma;
using namespace rma::boot;
using namespace rma::boot::test;
using rma::test::address_sanitizer;
using rma::test::thread_sanitizer;

namespace {

/// Somebody who found the socket and does not know the key.
class stranger {
 public:
  explicit stranger(const server& jobs)
      : fd_(connect_to(parse_address(jobs.address()), boot_clock::now() + std::chrono::seconds(10)).fd) {}

  stranger& say(const std::string& bytes) {
    (void)!::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return *this;
  }

  /// Waits until the server has closed the connection; returns what it said before.
  std::string until_cut_off() {
    std::string heard;
    for (;;) {
      pollfd wait{fd_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 10000) <= 0) return "still connected";
      char chunk[4096];
      const ssize_t got = ::recv(fd_.get(), chunk, sizeof chunk, 0);
      if (got <= 0) return heard;
      heard.append(chunk, static_cast<std::size_t>(got));
    }
  }

 private:
  unique_fd fd_;
};

/// A job that keeps working until told to stop; true if nothing went wrong in it.
class busy_job {
 public:
  explicit busy_job(world& ranks)
      : result_(std::async(std::launch::async, [this, &ranks] {
          return ranks.run([this](client& me) {
            for (;;) {
              std::string value = stop_ ? "stop" : "go";
              if (me.rank() == 0 && me.put("turn", value) != status::done) return false;
              if (me.fence() != status::done) return false;
              if (me.get("turn", value) != status::done) return false;
              if (me.fence() != status::done) return false;
              if (value == "stop") return true;
            }
          });
        })) {}

  std::vector<bool> finish() {
    stop_ = true;
    return result_.get();
  }

 private:
  std::atomic<bool> stop_{false};
  std::future<std::vector<bool>> result_;
};

std::string hello(int rank, int size) {
  return frame_writer(message::hello)
      .text(hello_magic)
      .u32(static_cast<std::uint32_t>(rank))
      .u32(static_cast<std::uint32_t>(size))
      .raw(bytes_of(random_digest()))
      .finish();
}

const std::vector<bool> three_good(3, true);

/// Memory of this process, the server's included.
std::size_t memory_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    if (word != "VmRSS:") continue;
    std::size_t kib = 0;
    file >> kib;
    return kib;
  }
  return 0;
}

std::size_t descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

}  // namespace

// Goal: whatever a stranger says, it is cut off at once and the job goes on. The time-out is long: it does not help.
TEST_CASE("strangers who talk nonsense are cut off at once", "[boot][strangers]") {
  world ranks(3);
  busy_job job(ranks);
  const std::string zeros(100, '\0');
  CHECK(stranger(ranks.jobs).say("GET / HTTP/1.1\r\nHost: a\r\n\r\n").until_cut_off().empty());
  CHECK(stranger(ranks.jobs).say("\xff\xff\xff\xff").until_cut_off().empty());
  CHECK(stranger(ranks.jobs).say(zeros).until_cut_off().empty());
  CHECK(stranger(ranks.jobs).say(std::string("\x01\x02\0\0\x01", 5)).until_cut_off().empty());  // 513 bytes
  CHECK(stranger(ranks.jobs).say(bare_frame(message::fence)).until_cut_off().empty());
  CHECK(stranger(ranks.jobs).say(bare_frame(message::hello)).until_cut_off().empty());
  CHECK(stranger(ranks.jobs).say(frame_writer(message::hello).text("rma-boot-0").finish()).until_cut_off().empty());
  CHECK(job.finish() == three_good);
}

TEST_CASE("random bytes from strangers do not disturb a job", "[boot][strangers]") {
  const auto seed = GENERATE(take(5, random(1, 1 << 30)));
  CAPTURE(seed);
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  world ranks(3, 100);
  busy_job job(ranks);
  for (int i = 0; i < 20; ++i) {
    std::string bytes = i % 2 == 0 ? hello(0, 3) + frame_writer(message::proof).raw(std::string(32, 'x')).finish() : "";
    while (bytes.size() < 200) bytes.push_back(static_cast<char>(draw()));
    for (int k = 0; k < 10; ++k) bytes[draw() % bytes.size()] = static_cast<char>(draw());
    CHECK(stranger(ranks.jobs).say(bytes).until_cut_off() != "still connected");
  }
  CHECK(job.finish() == three_good);
}

// Goal: saying nothing, or half of something, holds nobody up and ends with the time-out.
TEST_CASE("silent and half-spoken strangers are cut off in time", "[boot][strangers]") {
  world ranks(3, 100);
  stranger silent(ranks.jobs);
  stranger half(ranks.jobs);
  half.say(hello(0, 3).substr(0, 20));
  stranger half_length(ranks.jobs);
  half_length.say(std::string("\x09\0", 2));
  stranger no_proof(ranks.jobs);
  no_proof.say(hello(0, 3));
  busy_job job(ranks);
  CHECK(silent.until_cut_off().empty());
  CHECK(half.until_cut_off().empty());
  CHECK(half_length.until_cut_off().empty());
  CHECK(no_proof.until_cut_off().size() == 5 + digest_bytes);  // the challenge, and no more
  CHECK(job.finish() == three_good);
}

// Goal: strangers in any number cannot keep the ranks out. The time-out is long: the limit must help.
TEST_CASE("the oldest strangers make room for the newest", "[boot][strangers]") {
  const std::size_t strangers_max = 8;
  world ranks(3, 60000, strangers_max);
  std::vector<stranger> crowd;
  for (int i = 0; i < 30; ++i) crowd.emplace_back(ranks.jobs);
  busy_job job(ranks);
  for (int i = 0; i < 30 - static_cast<int>(strangers_max); ++i) {
    CAPTURE(i);
    CHECK(crowd[static_cast<std::size_t>(i)].until_cut_off().empty());
  }
  CHECK(job.finish() == three_good);
}

// Goal: what strangers leave behind does not add up. Method: so many connections that a little of each would show.
TEST_CASE("ten thousand connections with garbage leave nothing behind", "[boot][strangers]") {
  const int connections = 10000;
  const std::string address = GENERATE(as<std::string>{}, "local://", "tcp://127.0.0.1:0");
  CAPTURE(address);
  world ranks(3, 60000, 0, address);
  busy_job job(ranks);
  std::vector<stranger> staying;  // they hold half a header each, for longer than the test takes
  for (int i = 0; i < 32; ++i) {
    staying.emplace_back(ranks.jobs);
    staying.back().say(std::string("\x20\0", 2));
  }
  std::mt19937 draw(1);
  std::string garbage(4096, '\0');
  const std::size_t before = memory_kib();
  const std::size_t descriptors_before = descriptors();
  for (int i = 0; i < connections; ++i) {
    for (char& byte : garbage) byte = static_cast<char>(draw());
    stranger(ranks.jobs).say(garbage);
  }
  CHECK(stranger(ranks.jobs).say(garbage).until_cut_off() != "still connected");     // those before it were looked at
  if (!address_sanitizer && !thread_sanitizer) CHECK(memory_kib() < before + 8192);  // 40 MiB were sent
  CHECK(descriptors() < descriptors_before + 3 + 64);
  CHECK(job.finish() == three_good);
}

TEST_CASE("a wrong key is refused and the job goes on", "[boot][strangers]") {
  world ranks(3);
  auto wrong = ranks.options_of(1);
  wrong.key = random_hex(32);
  CHECK(contains(join_error(wrong).second, "the job key is wrong"));
  busy_job job(ranks);
  CHECK(contains(join_error(wrong).second, "the job key is wrong"));
  CHECK(job.finish() == three_good);
}

TEST_CASE("a rank can be taken only once", "[boot][strangers]") {
  world ranks(2);
  auto clients = ranks.join_all();
  const auto [code, text] = join_error(ranks.options_of(1));
  CHECK(code == status::bad_boot);
  CHECK(contains(text, "rank 1 has joined already"));
  CHECK(contains(text, "a Runtime that still lives"));
  CHECK(contains(text, "another process"));
  auto other = std::async(std::launch::async, [&] { return clients[1]->fence(); });
  CHECK(clients[0]->fence() == status::done);
  CHECK(other.get() == status::done);
  clients[1].reset();
  CHECK(clients[0]->fence() == status::peer_failed);
  CHECK(contains(join_error(ranks.options_of(1)).second, "known to be dead"));
}

// Goal: a client does not trust a server that does not know the key. Method: an impostor at the socket.
TEST_CASE("a server that does not know the key is not believed", "[boot][strangers]") {
  boot_address where = parse_address("local://");
  const unique_fd listener = listen_at(where);
  options how;
  how.address = to_text(where);
  how.key = random_hex(32);
  how.timeout_ms = 10000;
  const std::string after_hello = GENERATE(as<std::string>{}, "welcome", "nonsense", "refuse", "silence");
  CAPTURE(after_hello);
  if (after_hello == "silence") how.timeout_ms = 100;
  auto joining = std::async(std::launch::async, [&] { return join_error(how); });
  pollfd wait{listener.get(), POLLIN, 0};
  REQUIRE(::poll(&wait, 1, 10000) == 1);
  frame_link impostor(unique_fd{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)}, 512);
  frame got;
  const auto deadline = boot_clock::now() + std::chrono::seconds(10);
  REQUIRE(impostor.next(got, deadline) == frame_link::result::ready);
  if (after_hello == "welcome") {
    (void)impostor.send(frame_writer(message::challenge).raw(std::string(digest_bytes, 'c')).finish(), deadline);
    REQUIRE(impostor.next(got, deadline) == frame_link::result::ready);
    (void)impostor.send(frame_writer(message::accepted).raw(got.body).finish(), deadline);  // plays the proof back
  }
  if (after_hello == "nonsense") (void)impostor.send("SSH-2.0-OpenSSH_9.2p1\r\n", deadline);
  if (after_hello == "refuse") {
    (void)impostor.send(frame_writer(message::rejected).text("no\n\033[31m").finish(), deadline);
  }
  const auto [code, text] = joining.get();
  CHECK(code == status::bad_boot);
  CHECK(text.find('\n') == std::string::npos);
  if (after_hello == "welcome") CHECK(contains(text, "does not know the job key"));
  if (after_hello == "nonsense") CHECK(contains(text, "does not speak rma's protocol"));
  if (after_hello == "refuse") CHECK(contains(text, "no  [31m"));
  if (after_hello == "silence") CHECK(contains(text, "did not answer after 100 ms"));
}

// Goal: a rank that breaks the protocol is a dead rank, no more. Method: frames that only a broken rank would send.
TEST_CASE("a member that talks nonsense dies alone", "[boot][strangers]") {
  world ranks(2);
  auto good = std::async(std::launch::async, [&] { return join(ranks.options_of(0)); });
  // By hand what join() does, to keep hold of the socket.
  frame_link bad(connect_to(parse_address(ranks.jobs.address()), boot_clock::now() + std::chrono::seconds(10)).fd,
                 member_frame_bytes_max);
  const auto deadline = boot_clock::now() + std::chrono::seconds(10);
  transcript seen{.rank = 1, .size = 2, .client_nonce = random_digest(), .server_nonce = {}};
  frame got;
  (void)bad.send(frame_writer(message::hello).text(hello_magic).u32(1).u32(2).raw(bytes_of(seen.client_nonce)).finish(),
                 deadline);
  REQUIRE(bad.next(got, deadline) == frame_link::result::ready);
  std::copy(got.body.begin(), got.body.end(), seen.server_nonce.begin());
  (void)bad.send(frame_writer(message::proof).raw(bytes_of(prove(ranks.key, prover::client, seen))).finish(), deadline);
  const auto survivor = good.get();
  const std::string nonsense = GENERATE_COPY(
      as<std::string>{}, "garbage", frame_writer(message::put).u32(1000).finish(),
      frame_writer(message::get).text("no count").finish(), frame_writer(message::report_death).u32(99).finish(),
      frame_writer(message::fence).u8(1).finish(), bare_frame(message::ready));
  (void)bad.send(nonsense, deadline);
  frame_link::result last = frame_link::result::ready;
  while (last == frame_link::result::ready) last = bad.next(got, deadline);
  CHECK(last == frame_link::result::closed);
  CHECK(survivor->fence() == status::peer_failed);
  CHECK(ranks.jobs.deaths() == std::vector<int>{1});
  survivor->finalize();
}
