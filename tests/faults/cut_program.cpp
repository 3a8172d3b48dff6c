// SPDX-License-Identifier: Apache-2.0
// cut_program briefly | for-good | killed [seconds that it takes], on several hosts of which one loses its cable, or
// all processes, once "the cable may go" is printed.
//
// briefly    all ranks put, add and read in rings all the time; the cable comes back, and every number must be right
// for-good   calls that wait for a rank beyond the cable must end with peer_failed that names one of those, within
//            RMA_PEER_TIMEOUT_MS and two seconds; ranks that still reach each other go on
// killed     the same within two seconds: the news need not wait for silence
//
// Standard output has one line for each rank. Exit status 0 if all is as it should be.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rma/rma.hpp>

namespace {

constexpr double spread_s = 2;           // beyond the setting, for the news to reach everyone
constexpr double rings_before_s = 0.2;   // the cable goes in the middle of the rings
constexpr double rings_after_s = 3;      // longer than it is gone
constexpr std::size_t block_words = 64;  // small enough for messages
constexpr std::size_t large_words = 20000;
constexpr unsigned ready_signal = 0, never_signal = 1, after_signal = 2;

double seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double peer_timeout_s() {
  const char* const text = std::getenv("RMA_PEER_TIMEOUT_MS");
  return (text == nullptr ? 10000 : std::atoi(text)) / 1000.0;
}

/// One round: every rank writes the round's number to the next one, which reads the last, and counts at rank 0.
void ring(rma::Team& world, rma::Window<std::uint64_t>& win, std::uint64_t round) {
  const int next = (world.rank() + 1) % world.size();
  const std::size_t words = round % 8 == 0 ? large_words : block_words;
  const std::vector<std::uint64_t> sent(words, round);
  std::vector<std::uint64_t> read(words);
  win.fence();
  win.put(std::span<const std::uint64_t>(sent), next, 1);
  win.accumulate(1, 0, 0, rma::sum);
  win.fence();
  win.get(std::span(read), next, 1);
  win.fence(rma::no_succeed);
  for (const std::vector<std::uint64_t>& each : {read, std::vector<std::uint64_t>(&win[1], &win[1] + words)}) {
    if (std::ranges::count(each, round) != static_cast<std::ptrdiff_t>(words))
      throw std::runtime_error("round " + std::to_string(round) + " is not what was sent");
  }
  world.barrier();
}

int play_briefly(rma::Runtime& runtime) {
  rma::Team world = runtime.world();
  auto win = rma::Window<std::uint64_t>::allocate(world, 1 + large_words);
  const double start = seconds();
  bool said = false;
  std::uint64_t rounds = 0;
  for (int go_on = 1; go_on != 0;) {
    ring(world, win, ++rounds);
    const double since = seconds() - start;
    if (world.rank() == 0 && !said && since > rings_before_s) {
      said = true;
      std::printf("the cable may go\n");
      std::fflush(stdout);
    }
    go_on = world.allgather(since < rings_before_s + rings_after_s ? 1 : 0).front();
  }
  world.barrier();
  const auto counted = rounds * static_cast<std::uint64_t>(world.size());
  if (world.rank() == 0 && win[0] != counted) throw std::runtime_error("additions were lost");
  std::printf("rank %d: %llu rounds, nothing lost\n", world.rank(), static_cast<unsigned long long>(rounds));
  return 0;
}

class sides {
 public:
  explicit sides(rma::Team& world) : world_(world) {
    const int per_host = local_ranks(world);
    for (int r = 0; r < world.size(); ++r) (r / per_host == 1 ? cut_off_ : rest_).push_back(r);
  }
  [[nodiscard]] bool cut_off() const { return std::ranges::find(cut_off_, world_.rank()) != cut_off_.end(); }
  [[nodiscard]] const std::vector<int>& mine() const { return cut_off() ? cut_off_ : rest_; }
  [[nodiscard]] const std::vector<int>& beyond() const { return cut_off() ? rest_ : cut_off_; }

 private:
  static int local_ranks(rma::Team& world) {
    int n = 0;
    for (int r = 0; r < world.size(); ++r) n += world.shares_memory(r) ? 1 : 0;
    return n;
  }
  rma::Team& world_;
  std::vector<int> cut_off_, rest_;
};

/// Ends the program with 1 unless `call` ends with peer_failed about one of those beyond the cable, in time.
void must_be_told(rma::Runtime& runtime, const sides& of, double within_s, const char* name,
                  const std::function<void()>& call) {
  const double since = seconds();
  try {
    call();
  } catch (const rma::Error& e) {
    const double after = seconds() - since;
    std::printf("rank %d: %s: %s after %.2f s\n", runtime.rank(), name, e.what(), after);
    if (e.code() != rma::status::peer_failed) throw std::runtime_error("the status is not peer_failed");
    if (std::ranges::find(of.beyond(), e.rank()) == of.beyond().end()) throw std::runtime_error("the wrong rank");
    if (after > within_s) throw std::runtime_error("that is late");
    return;
  }
  throw std::runtime_error(std::string(name) + " has ended without an error");
}

int play_to_the_end(rma::Runtime& runtime, double within_s) {
  rma::Team world = runtime.world();
  const sides of(world);
  auto win = rma::Window<std::uint64_t>::allocate(world, 1 + large_words);
  ring(world, win, 1);
  if (!rma::ok(win.lock_all_nothrow())) throw std::runtime_error("lock_all");
  for (int r = 0; r < world.size(); ++r) win.put(std::uint64_t{0}, r, 0);  // all are connected, and have the lock
  if (!rma::ok(win.try_flush_all())) throw std::runtime_error("flush_all");
  const std::uint64_t token = 7;
  win.put_signal(std::span(&token, 1), 0, 0, ready_signal);  // with that, this rank waits for nothing any more
  if (world.rank() == 0) {
    win.wait_signal(ready_signal, static_cast<std::size_t>(world.size()));
    std::printf("the cable may go\n");
    std::fflush(stdout);
  }
  std::vector<std::uint64_t> block(block_words);
  const bool asks = world.rank() % 2 == 0;  // others only wait
  if (asks) {
    must_be_told(runtime, of, within_s, "get", [&] {
      while (true) {
        win.get(std::span(block), of.beyond().back(), 1);
        win.flush(of.beyond().back());
      }
    });
  } else {
    must_be_told(runtime, of, within_s, "wait_signal", [&] { win.wait_signal(never_signal, 1, of.beyond().front()); });
  }
  must_be_told(runtime, of, within_s, "barrier", [&] { world.barrier(); });
  const int near = *std::ranges::find_if(of.mine(), [&](int r) { return r != world.rank() && world.shares_memory(r); });
  win.put_signal(std::span(&token, 1), near, 0, after_signal);
  win.wait_signal(after_signal, 1, near);
  while (runtime.failed_ranks().size() < of.beyond().size()) runtime.progress();
  std::vector<int> failed = runtime.failed_ranks();
  std::ranges::sort(failed);
  if (failed != of.beyond() && !of.cut_off())
    throw std::runtime_error("failed_ranks() is not the host that is cut off");
  (void)win.try_unlock_all();
  std::printf("rank %d goes on without %zu ranks\n", world.rank(), failed.size());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  try {
    rma::Runtime runtime(argc, argv);
    if (what == "briefly") return play_briefly(runtime);
    const double takes_s = argc > 2 ? std::atof(argv[2]) : 0;
    return play_to_the_end(runtime, takes_s + spread_s + (what == "killed" ? 0 : peer_timeout_s()));
  } catch (const std::exception& e) {
    std::printf("cut_program: WRONG: %s\n", e.what());
    return 1;
  }
}
