// SPDX-License-Identifier: Apache-2.0
// Measures what puts of layouts cost between two ranks of different nodes, for the choice among schemes
// (RMA_LAYOUT=auto); or what messages cost between two ranks of one node, for the choice among algorithms of
// collectives.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "fabric/tuning.hpp"
#include "rma/rma.hpp"

namespace {

constexpr std::size_t many = 64, stride = 2048, large = std::size_t{128} << 10;

/// Rank 0 puts; rank 1 waits in a barrier.
class tuner {
 public:
  explicit tuner(rma::Runtime& rt) : rt_(rt), mine_(many * stride) {}

  /// ns of a put and its flush by that scheme: the least of several rounds.
  double put(rma::layout_scheme scheme, const rma::Layout& here, const rma::Layout& there) {
    constexpr int rounds = 7, puts = 30;
    rma::Hints hints;
    hints.layout = scheme;
    auto win = rma::Window<std::byte>::allocate(rt_.world(), many * stride, hints);
    double least = 1e18;
    for (int round = 0; round < rounds; ++round) {
      rt_.world().barrier();
      if (rt_.rank() == 0) {
        auto held = win.lock(rma::shared, 1);
        win.put(mine_.data(), here, 1, 0, there);
        win.flush(1);
        const auto begin = rt_.now();
        for (int i = 0; i < puts; ++i) {
          win.put(mine_.data(), here, 1, 0, there);
          win.flush(1);
        }
        least = std::min(least, std::chrono::duration<double, std::nano>(rt_.now() - begin).count() / puts);
        held.unlock();
      }
      rt_.world().barrier();
    }
    win.free();
    return least;
  }

  rma::fabric::transfer_costs measure() {
    using rma::layout_scheme;
    const auto whole = [](std::size_t bytes) { return rma::Layout::contiguous<std::byte>(bytes); };
    const auto pieces = [](std::size_t count, std::size_t bytes) {
      return rma::Layout::vector<std::byte>(count, bytes, stride);
    };
    const double write = put(layout_scheme::multi_w, whole(8), whole(8));
    const double writes = put(layout_scheme::multi_w, pieces(many, 8), pieces(many, 8));
    const double bytes = put(layout_scheme::multi_w, whole(large), whole(large));
    const double list = put(layout_scheme::write_gather, pieces(16, 8), whole(16 * 8));
    const double message = put(layout_scheme::generic, pieces(2, 8), pieces(2, 8));
    const double packed = put(layout_scheme::generic, pieces(many, 1024), pieces(many, 1024));
    const auto at_least_0 = [](double ns) { return std::max(ns, 0.0); };
    rma::fabric::transfer_costs costs;
    costs.write_ns = static_cast<std::int64_t>(write);
    costs.piece_ns = static_cast<std::int64_t>(at_least_0((writes - write) / (many - 1)));
    costs.byte_ns = at_least_0((bytes - write) / large);
    costs.list_entry_ns = static_cast<std::int64_t>(at_least_0((list - write) / 15));
    costs.message_ns = static_cast<std::int64_t>(message);
    costs.message_byte_ns = at_least_0((packed - message) / (many * 1024));
    return costs;
  }

 private:
  rma::Runtime& rt_;
  std::vector<std::byte> mine_;
};

/// Two ranks of one node exchange messages.
class memory_tuner {
 public:
  explicit memory_tuner(rma::Runtime& rt) : rt_(rt), out_(longest), in_(longest) {}

  rma::fabric::memory_costs measure() {
    constexpr std::size_t few = 8, eager = 2048, some = std::size_t{64} << 10, row = 16;
    const auto at_least_0 = [](double ns) { return std::max(ns, 0.0); };
    const double message = least_ns([&] { exchange(few, 1); }) / 2;
    const double messages = least_ns([&] { exchange(few, row); }) / 2;
    const double bytes = least_ns([&] { exchange(eager, 1); }) / 2;
    const double one = least_ns([&] { exchange(some, 1); }) / 2;
    const double longer = least_ns([&] { exchange(longest, 1); }) / 2;
    const double start = least_ns([&] { combine(few); });
    const double combined = least_ns([&] { combine(some / 2); });
    rma::fabric::memory_costs costs;
    costs.latency_ns = message;
    costs.message_ns = at_least_0((messages - message) / (row - 1));
    costs.byte_ns = at_least_0((bytes - message) / (eager - few));
    costs.long_byte_ns = at_least_0((longer - one) / static_cast<double>(longest - some));
    costs.rendezvous_ns = std::max(message, one - costs.long_byte_ns * static_cast<double>(some));
    costs.combined_byte_ns = at_least_0((combined - start) / static_cast<double>(some / 2 - few));
    return costs;
  }

 private:
  static constexpr std::size_t longest = std::size_t{1} << 20;
  static constexpr int tag = 1;

  /// ns of a call: the least of several rounds.
  template <class Call>
  double least_ns(Call&& call) {
    constexpr int rounds = 9, calls = 100;
    double least = 1e18;
    for (int round = 0; round < rounds; ++round) {
      rt_.world().barrier();
      call();
      const auto begin = rt_.now();
      for (int i = 0; i < calls; ++i) call();
      least = std::min(least, std::chrono::duration<double, std::nano>(rt_.now() - begin).count() / calls);
    }
    return least;
  }
  /// Messages to the other rank, and as many back.
  void exchange(std::size_t bytes, std::size_t count) {
    const int other = 1 - rt_.rank();
    for (int turn = 0; turn < 2; ++turn) {
      for (std::size_t i = 0; i < count; ++i) {
        if (turn == rt_.rank()) {
          rt_.world().send(std::span(out_).first(bytes), other, tag);
        } else {
          (void)rt_.world().recv(std::span(in_).first(bytes), other, tag);
        }
      }
    }
  }
  /// A sum of that many bytes of doubles, without a message.
  void combine(std::size_t bytes) {
    rma::Schedule alone;
    alone.combine(rma::input(), rma::output(), bytes);
    rt_.world().start(alone, std::span(out_), std::span(in_), rma::sum, rma::element::f64).wait();
  }

  rma::Runtime& rt_;
  std::vector<std::byte> out_, in_;
};

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string setting(const rma::Runtime& rt, const std::string& name) {
  for (const rma::Setting& each : rt.settings()) {
    if (each.name == name) return each.value;
  }
  return {};
}

/// Rank 0 puts the section into the file, and shows it. Returns the exit status.
template <class Costs>
int write(const rma::Runtime& rt, const std::string& path, const std::string& section, const Costs& costs) {
  if (rt.rank() != 0) return 0;
  const std::string text = rma::fabric::with_costs(contents_of(path), section, costs);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    fmt::print(stderr, "rma-tune: {} cannot be written\n", path);
    return 1;
  }
  fmt::print("{}", rma::fabric::with_costs("", section, costs));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  CLI::App app("Measures what transfers cost between two ranks, and writes it to a file for RMA_TUNING");
  app.footer(
      "Start it with two ranks on two nodes, by the fabric that is to be measured:\n"
      "  rmarun -n 2 --nodes 2 rma-tune --out rma.tuning\n"
      "and with two ranks on one node, to measure messages in memory:\n"
      "  rmarun -n 2 rma-tune --out rma.tuning");
  app.set_version_flag("--version", std::string(rma::version()));
  app.add_option("--out", path, "The file; what it says of other fabrics and machines stays")->required();
  CLI11_PARSE(app, argc, argv);
  rma::Runtime rt(argc, argv);
  if (rt.size() != 2) {
    if (rt.rank() == 0)
      fmt::print(stderr, "rma-tune: it needs two ranks: rmarun -n 2 [--nodes 2] rma-tune --out {}\n", path);
    return 2;
  }
  const std::string route = rt.route(1 - rt.rank());
  if (route == rma::fabric::memory_name)
    return write(rt, path, rma::fabric::section_of(route, ""), memory_tuner(rt).measure());
  return write(rt, path, rma::fabric::section_of(route.substr(0, route.find(' ')), setting(rt, "RMA_DEVICE")),
               tuner(rt).measure());
}
