// SPDX-License-Identifier: Apache-2.0
// Figures of the dissertation's chapters 8 and 9 that perf/noncontiguous and perf/nbcbench do not have, on a simulated
// machine, one rank per node. perf/dissertation_transfers runs it.
//
//   alltoall   each rank puts columns of its matrix to each other one, between two fences     (figure 8.11)
//   target     what a put of columns takes of the target's processor                          (figure 8.13)
//   get        a contiguous get by the library, and by the bare network                       (figure 9.4)
//   overlap    the share of a get that computing hides: directly into user memory, by messages of the target's
//              handler (buffered), and of a receive that has been posted, by a rendezvous that its sender begins and
//              by the one that is chosen                                                      (figure 9.5)
//
// One line for each point: experiment, curve, ranks, rows, bytes, value (us; overlap: a share).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "rma/sim_pattern.hpp"

namespace {

using std::chrono::nanoseconds;
using settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t matrix_columns = 4096;
constexpr int turns = 4;

std::string machine = "dissertation-sdr-pcie";

rma::sim::Config job_of(int ranks, const settings& chosen) {
  rma::sim::Config job{.ranks = ranks, .ranks_per_node = 1, .parameters = machine};
  job.limit = std::chrono::seconds(600);
  for (const auto& [name, value] : chosen) job.settings[name] = value;
  return job;
}

rma::sim::Outcome run(int ranks, const settings& chosen, const std::function<void(rma::Runtime&)>& body) {
  auto ended = rma::sim::run(job_of(ranks, chosen), body);
  if (!ended.ok()) throw std::runtime_error(ended.text());
  return ended;
}

void say(const std::string& experiment, const std::string& curve, int ranks, std::size_t rows, std::size_t bytes,
         double value) {
  fmt::print("sim_transfers {} {} ranks {} rows {} bytes {} value {:.3f}\n", experiment, curve, ranks, rows, bytes,
             value);
}

double us_of(rma::Runtime& rt, const std::function<void()>& work) {
  const auto begin = rt.now();
  work();
  return std::chrono::duration<double, std::micro>(nanoseconds(rt.now() - begin)).count();
}

rma::Layout columns_of(std::size_t rows, std::size_t columns) {
  return rma::Layout::vector<int>(rows, columns, matrix_columns);
}

/// The time of one exchange, after one that connects.
double alltoall_us(const std::string& scheme, int ranks, std::size_t rows, std::size_t columns) {
  double us = 0;
  run(ranks, {{"RMA_LAYOUT", scheme}, {"RMA_PROGRESS_THREAD", "1"}}, [&](rma::Runtime& rt) {
    const std::size_t part = rows * matrix_columns;
    auto win = rma::Window<int>::allocate(rt.world(), part * static_cast<std::size_t>(rt.size()));
    std::vector<int> mine(part, 1);
    const rma::Layout block = columns_of(rows, columns);
    const auto exchange = [&] {
      for (int k = 1; k < rt.size(); ++k)
        win.put(mine.data(), block, (rt.rank() + k) % rt.size(), part * static_cast<std::size_t>(rt.rank()), block);
      win.fence();
    };
    win.fence();
    exchange();
    const double took_us = us_of(rt, [&] {
      for (int i = 0; i < turns; ++i) exchange();
    });
    if (rt.rank() == 0) us = took_us / turns;
    win.free();
  });
  return us;
}

/// Processor time of rank 1 during so many puts, one after the other.
double target_us(const std::string& scheme, std::size_t rows, std::size_t columns, int puts) {
  const auto ended = run(2, {{"RMA_LAYOUT", scheme}, {"RMA_PROGRESS_THREAD", "1"}}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), rows * matrix_columns);
    std::vector<int> mine(rows * matrix_columns, 1);
    const rma::Layout block = columns_of(rows, columns);
    if (rt.rank() == 0) {
      auto epoch = win.lock_all();
      for (int i = 0; i < puts; ++i) {
        win.put(mine.data(), block, 1, 0, block);
        win.flush(1);
      }
      epoch.unlock();
    }
    win.free();
  });
  const rma::sim::RankOutcome& target = ended.ranks[1];
  return std::chrono::duration<double, std::micro>(target.posting + target.copying + target.handling + target.polling)
      .count();
}

double bare_get_us(std::size_t bytes) {
  const auto out = rma::sim::run_pattern(job_of(2, {}), [bytes](rma::sim::PatternRank& me) {
    for (int i = 0; me.rank() == 0 && i < turns; ++i) me.complete(me.get(1, static_cast<std::int64_t>(bytes)));
  });
  return std::chrono::duration<double, std::micro>(out.time).count() / turns;
}

/// Puts from memory of rank 0; the first one sets up the connection.
double get_us(std::size_t bytes) {
  double us = 0;
  run(2, {}, [&](rma::Runtime& rt) {
    auto win = rma::Window<std::byte>::allocate(rt.world(), bytes);
    std::vector<std::byte> mine(bytes);
    if (rt.rank() == 0) {
      auto epoch = win.lock_all();
      const auto get = [&] {
        win.get(std::span(mine), 1, 0);
        win.flush(1);
      };
      get();
      us = us_of(rt,
                 [&] {
                   for (int i = 0; i < turns; ++i) get();
                 }) /
           turns;
      epoch.unlock();
    }
    win.free();
  });
  return us;
}

/// The part of the transfer's time that computation hides (overlap).
double share_of(const std::function<double(double)>& transfer) {
  (void)transfer(0);
  const double alone_us = transfer(0);
  return std::clamp((2 * alone_us - transfer(alone_us)) / alone_us, 0.0, 1.0);
}

void compute(rma::Runtime& rt, double us) { rt.compute(nanoseconds(static_cast<std::int64_t>(1000 * us))); }

double get_overlap(const settings& chosen, std::size_t bytes) {
  double share = 0;
  run(2, chosen, [&](rma::Runtime& rt) {
    std::vector<std::byte> memory(bytes), mine(bytes);
    auto win = rma::Window<std::byte>::create(rt.world(), memory);
    if (rt.rank() == 0) {
      auto epoch = win.lock_all();
      share = share_of([&](double compute_us) {
        return us_of(rt, [&] {
          win.get(std::span(mine), 1, 0);
          compute(rt, compute_us);
          win.flush(1);
        });
      });
      epoch.unlock();
    }
    win.free();
  });
  return share;
}

double receive_overlap(const settings& chosen, std::size_t bytes) {
  double share = 0;
  run(2, chosen, [&](rma::Runtime& rt) {
    std::vector<std::byte> data(bytes);
    rma::Team world = rt.world();
    double compute_us = 0;
    const auto transfer = [&](double us) {
      compute_us = us;
      world.barrier();
      return us_of(rt, [&] {
        auto in = world.irecv(std::span(data), 1, 0);
        compute(rt, compute_us);
        in.wait();
      });
    };
    if (rt.rank() == 0) share = share_of(transfer);
    for (int i = 0; rt.rank() == 1 && i < 3; ++i) {
      world.barrier();
      world.send(std::span(data), 0, 0);
    }
  });
  return share;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Figures of the dissertation's chapters 8 and 9 on a simulated machine");
  bool few = false;
  app.add_option("--params", machine, "The machine");
  app.add_flag("--few", few, "Only some points");
  CLI11_PARSE(app, argc, argv);
  const std::vector<std::size_t> columns =
      few ? std::vector<std::size_t>{8, 512} : std::vector<std::size_t>{4, 16, 64, 256, 512, 1024};
  for (const char* const scheme : {"generic", "multi-w", "sgrs"}) {
    for (const std::size_t each : columns) {
      for (const std::size_t rows : {64, 128}) {
        for (const int ranks : {4, 8})
          say("alltoall", scheme, ranks, rows, rows * each * sizeof(int), alltoall_us(scheme, ranks, rows, each));
      }
      const double us = (target_us(scheme, 64, each, 24) - target_us(scheme, 64, each, 8)) / 16;
      say("target", scheme, 2, 64, 64 * each * sizeof(int), us);
    }
  }
  for (std::size_t bytes = 8; bytes <= std::size_t{1} << 20; bytes *= few ? 64 : 4) {
    say("get", "bare", 2, 1, bytes, bare_get_us(bytes));
    say("get", "library", 2, 1, bytes, get_us(bytes));
  }
  for (std::size_t bytes = 1024; bytes <= std::size_t{1} << 20; bytes *= few ? 32 : 2) {
    say("overlap", "direct", 2, 1, bytes, get_overlap({}, bytes));
    say("overlap", "buffered", 2, 1, bytes,
        get_overlap({{"RMA_USER_MEMORY", "handler"}, {"RMA_PROGRESS_THREAD", "1"}}, bytes));
    say("overlap", "messages", 2, 1, bytes, receive_overlap({{"RMA_RENDEZVOUS", "rput"}}, bytes));
    say("overlap", "messages-auto", 2, 1, bytes, receive_overlap({}, bytes));
  }
  return 0;
}
