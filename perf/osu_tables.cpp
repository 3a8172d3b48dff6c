// SPDX-License-Identifier: Apache-2.0
// The tables of the OSU micro-benchmarks: the same names, sizes and units, on the library's calls. Two ranks; rank 0 is
// the origin, in a lock_all epoch, and rank 1 waits in a barrier. `perf/osu` runs it, and draws what it prints.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <rma/rma.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace {

constexpr std::size_t size_max = std::size_t{1} << 20;
constexpr int window_size = 64;  // operations under way, as OSU's bandwidth tests have
constexpr std::size_t large = 8192;

struct Job {
  rma::Runtime& rt;
  rma::Team world;
  rma::Window<std::byte> window;
  rma::Window<std::int64_t> words;
  std::vector<std::byte> memory;
};

/// Runs on both ranks what takes their time, `iterations` times, and says how long one took on rank 0, in us.
double time_of(Job& job, int iterations, const std::function<void()>& origin, const std::function<void()>& target) {
  const auto& mine = job.rt.rank() == 0 ? origin : target;
  std::int64_t begin_ns = 0;
  for (int i = -iterations / 10; i < iterations; ++i) {
    if (i == 0) begin_ns = job.rt.now().count();
    if (mine) mine();
  }
  const auto took_ns = static_cast<double>(job.rt.now().count() - begin_ns);
  job.world.barrier();
  return took_ns / iterations / 1000;
}

struct Table {
  std::string_view name;
  std::string_view column;
  std::size_t least, most;  // bytes
  std::function<double(Job&, std::size_t bytes, int iterations)> value;
};

std::span<std::byte> buffer(Job& job, std::size_t bytes) { return std::span(job.memory).first(bytes); }

double put_latency(Job& job, std::size_t bytes, int n) {
  return time_of(job, n, [&] { job.window.put(buffer(job, bytes), 1, 0), job.window.flush(1); }, {});
}
double get_latency(Job& job, std::size_t bytes, int n) {
  return time_of(job, n, [&] { job.window.get(buffer(job, bytes), 1, 0), job.window.flush(1); }, {});
}
double acc_latency(Job& job, std::size_t bytes, int n) {
  const std::vector<std::int64_t> ones(bytes / sizeof(std::int64_t), 1);
  return time_of(job, n, [&] { job.words.accumulate(std::span(ones), 1, 0, rma::sum), job.words.flush(1); }, {});
}
double fop_latency(Job& job, std::size_t, int n) {
  return time_of(job, n, [&] { (void)job.words.fetch_and_op(1, 1, 0, rma::sum); }, {});
}
double cas_latency(Job& job, std::size_t, int n) {
  return time_of(job, n, [&] { (void)job.words.compare_and_swap(0, 0, 1, 0); }, {});
}
/// MB/s of so many bytes in each of `window_size` operations.
double rate(std::size_t bytes, double us) { return static_cast<double>(bytes) * window_size / us; }
double put_bw(Job& job, std::size_t bytes, int n) {
  const auto batch = [&] {
    for (int i = 0; i < window_size; ++i) job.window.put(buffer(job, bytes), 1, 0);
    job.window.flush(1);
  };
  return rate(bytes, time_of(job, n / 8, batch, {}));
}
double get_bw(Job& job, std::size_t bytes, int n) {
  const auto batch = [&] {
    for (int i = 0; i < window_size; ++i) job.window.get(buffer(job, bytes), 1, 0);
    job.window.flush(1);
  };
  return rate(bytes, time_of(job, n / 8, batch, {}));
}
/// Half of a ping-pong.
double latency(Job& job, std::size_t bytes, int n) {
  const auto data = buffer(job, bytes);
  const auto ping = [&] { job.world.send(std::span<const std::byte>(data), 1, 1), job.world.recv(data, 1, 1); };
  const auto pong = [&] { job.world.recv(data, 0, 1), job.world.send(std::span<const std::byte>(data), 0, 1); };
  return time_of(job, n, ping, pong) / 2;
}
double barrier(Job& job, std::size_t, int n) {
  const auto meet = [&] { job.world.barrier(); };
  return time_of(job, n, meet, meet);
}
double allreduce(Job& job, std::size_t bytes, int n) {
  std::vector<double> in(bytes / sizeof(double), 1.0), out(in.size());
  const auto add = [&] { job.world.allreduce(std::span<const double>(in), std::span(out), rma::sum); };
  return time_of(job, n, add, add);
}

const std::array<Table, 10>& tables() {
  static const std::array<Table, 10> all{{
      {"osu_put_latency", "Latency (us)", 1, size_max, put_latency},
      {"osu_get_latency", "Latency (us)", 1, size_max, get_latency},
      {"osu_acc_latency", "Latency (us)", 8, size_max, acc_latency},
      {"osu_fop_latency", "Latency (us)", 8, 8, fop_latency},
      {"osu_cas_latency", "Latency (us)", 8, 8, cas_latency},
      {"osu_put_bw", "Bandwidth (MB/s)", 1, size_max, put_bw},
      {"osu_get_bw", "Bandwidth (MB/s)", 1, size_max, get_bw},
      {"osu_latency", "Latency (us)", 1, size_max, latency},
      {"osu_barrier", "Avg Latency(us)", 0, 0, barrier},
      {"osu_allreduce", "Avg Latency(us)", 8, size_max, allreduce},
  }};
  return all;
}

void print(Job& job, const Table& table, std::size_t most, int iterations) {
  const bool first = job.rt.rank() == 0;
  if (first) fmt::print("# rma {} {}\n# {:<10}{:>18}\n", rma::version(), table.name, "Size", table.column);
  const std::size_t last = std::min(table.most, most);
  for (std::size_t bytes = table.least; bytes <= last; bytes = std::max<std::size_t>(2 * bytes, 1)) {
    const bool one_sided =
        table.name.find("barrier") == table.name.npos && table.name != "osu_latency" && table.name != "osu_allreduce";
    const int n = bytes > large ? std::max(iterations / 10, 10) : iterations;
    if (one_sided) (void)job.window.lock_all_nothrow();
    if (one_sided) (void)job.words.lock_all_nothrow();
    const double value = table.value(job, bytes, n);
    if (one_sided) job.window.unlock_all(), job.words.unlock_all();
    if (first) fmt::print("{:<12}{:>18.{}f}\n", bytes, value, value < 1 ? 4 : 2);  // in memory a put takes some ns
    if (table.least == table.most) break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  CLI::App app("Tables with the names of the OSU micro-benchmarks, on rma's calls", "osu_tables");
  std::vector<std::string> names;
  std::size_t most = size_max;
  int iterations = 1000;
  app.add_option("tables", names, "osu_put_latency ...; none: all");
  app.add_option("--most", most, "the largest size in bytes");
  app.add_option("--iterations", iterations, "of sizes up to 8 KiB; a tenth above")->check(CLI::Range(10, 1 << 24));
  CLI11_PARSE(app, argc, argv);
  for (const std::string& name : names) {
    if (std::ranges::none_of(tables(), [&](const Table& t) { return t.name == name; })) {
      fmt::print(stderr, "osu_tables: {} is none of its tables; see --help\n", name);
      return 2;
    }
  }
  if (rt.size() != 2) {
    fmt::print(stderr, "osu_tables: needs 2 ranks, and there are {}\n", rt.size());
    return 2;
  }
  Job job{rt, rt.world(), rma::Window<std::byte>::allocate(rt.world(), size_max),
          rma::Window<std::int64_t>::allocate(rt.world(), size_max / sizeof(std::int64_t)),
          std::vector<std::byte>(size_max)};
  for (const Table& each : tables()) {
    if (names.empty() || std::ranges::find(names, each.name) != names.end()) print(job, each, most, iterations);
  }
  return 0;
}
