// SPDX-License-Identifier: Apache-2.0
// The experiments of the dissertation's chapter 8 with each scheme for layouts: under rmarun as they are, under rma-sim
// on a simulated machine. perf/dissertation_transfers runs them.
//
// clang-format off
//   latency        a put of columns of a matrix of ints (64 or 128 rows of 4096), and its flush (figures 8.2, 8.5)
//   blocks         the same bytes in 4 to 64 blocks                                             (figure 8.3)
//   bandwidth      16 of these puts, and one flush                                       (figures 8.7, 8.8)
//   both-ways      the same by both ranks at once                                               (figure 8.9)
//   call           what the put call itself takes of the origin's processor                    (figure 8.12)
//   diagonals      a put of two diagonals of blocks of a matrix, a new one each time or always the same (figure 8.14)
//   get-idle       16 gets of columns, the target waits in the library                         (figure 8.17)
//   get-busy       the same while the target computes                                          (figure 8.18)
//   get-overlap    the share of a get that computing hides at the origin                       (figure 8.19)
//   gather         a put of columns into contiguous memory, and its flush            (8.1.1, RDMA write-gather)
//   scatter        a get of contiguous memory into columns                            (8.1.1, RDMA read-scatter)
// clang-format on
//
// One line for each point: experiment, scheme, rows, columns, bytes, us for one transfer (overlap: a share).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t matrix_columns = 4096, matrix_rows = 128, batch = 16;

struct choice {
  std::vector<std::string> experiments{"latency",   "blocks",   "bandwidth", "both-ways",  "call",
                                       "diagonals", "get-idle", "get-busy",  "get-overlap"};
  std::vector<std::string> schemes{"contiguous", "generic", "multi-w", "sgrs", "host-assisted"};
  std::vector<std::size_t> columns{4, 16, 64, 256, 512, 1024, 2048};
  std::vector<std::size_t> rows{64};
  int turns = 3;
};

rma::layout_scheme scheme_named(const std::string& name) {
  if (name == "contiguous" || name == "auto") return rma::layout_scheme::automatic;
  if (name == "generic") return rma::layout_scheme::generic;
  if (name == "multi-w") return rma::layout_scheme::multi_w;
  if (name == "write-gather") return rma::layout_scheme::write_gather;
  if (name == "read-scatter") return rma::layout_scheme::read_scatter;
  if (name == "sgrs") return rma::layout_scheme::sgrs;
  if (name == "host-assisted") return rma::layout_scheme::host_assisted;
  throw std::runtime_error(fmt::format("'{}' is no scheme for layouts", name));
}

/// Both ranks' matrices, and one of the experiments' transfers of columns of them.
class bench {
 public:
  bench(rma::Runtime& rt, const choice& chosen, const std::string& scheme)
      : rt_(rt), chosen_(chosen), scheme_(scheme), win_(make(rt, scheme)), mine_(matrix_rows * matrix_columns, 1) {}

  void run(const std::string& experiment) {
    for (const std::size_t rows : chosen_.rows) {
      if (experiment == "blocks") {
        for (const std::size_t bytes : {std::size_t{128} << 10, std::size_t{256} << 10, std::size_t{512} << 10}) {
          for (const std::size_t blocks : {4, 8, 16, 32, 64}) one(experiment, blocks, bytes / 4 / blocks);
        }
        return;
      }
      for (const std::size_t columns : chosen_.columns) one(experiment, rows, columns);
    }
  }
  void free() { win_.free(); }

 private:
  static rma::Window<int> make(rma::Runtime& rt, const std::string& scheme) {
    rma::Hints hints;
    hints.layout = scheme_named(scheme);
    return rma::Window<int>::allocate(rt.world(), matrix_rows * matrix_columns, hints);
  }
  [[nodiscard]] rma::Layout layout_of(std::size_t rows, std::size_t columns) const {
    if (scheme_ == "contiguous") return rma::Layout::contiguous<int>(rows * columns);
    // Blocks larger than a row of the matrix have rows of their own.
    return rma::Layout::vector<int>(rows, columns, static_cast<std::ptrdiff_t>(std::max(2 * columns, matrix_columns)));
  }
  [[nodiscard]] static rma::Layout diagonals(std::size_t rows, std::size_t columns, std::size_t which) {
    std::vector<std::ptrdiff_t> places;
    const std::size_t length = std::max<std::size_t>(columns / 8, 1);
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t at = r * matrix_columns + (r * length + which) % (matrix_columns - 2 * length);
      places.push_back(static_cast<std::ptrdiff_t>(at));
      places.push_back(static_cast<std::ptrdiff_t>(at + length + 1 + which % 7));
    }
    return rma::Layout::indexed<int>(length, places);
  }

  double us_of(const std::function<void()>& work) {
    const auto begin = rt_.now();
    work();
    return std::chrono::duration<double, std::micro>(nanoseconds(rt_.now() - begin)).count();
  }
  /// Rank 0 works while rank 1 waits in a barrier or computes; the second time counts, the first connects.
  double on_origin(const std::function<double()>& work, bool busy = false) {
    double us = 0;
    for (int i = 0; i < 2; ++i) {
      rt_.world().barrier();
      if (rt_.rank() == 0) {
        us = work();
      } else if (busy) {
        rt_.compute(std::chrono::milliseconds(200));
      }
      rt_.world().barrier();
    }
    return us;
  }
  void say(const std::string& experiment, std::size_t rows, std::size_t columns, double value) {
    if (rt_.rank() != 0) return;
    fmt::print("noncontiguous {} {} rows {} columns {} bytes {} value {:.3f}\n", experiment, scheme_, rows, columns,
               rows * columns * sizeof(int), value);
  }
  void one(const std::string& experiment, std::size_t rows, std::size_t columns);
  double put(const rma::Layout& layout, std::size_t times, int to) {
    for (std::size_t i = 0; i < times; ++i) win_.put(mine_.data(), layout, to, 0, layout);
    win_.flush(to);
    return 0;
  }
  double gets(const rma::Layout& layout) {
    return us_of([&] {
             for (std::size_t i = 0; i < batch; ++i) win_.get(mine_.data(), layout, 1, 0, layout);
             win_.flush(1);
           }) /
           static_cast<double>(batch);
  }

  rma::Runtime& rt_;
  const choice& chosen_;
  std::string scheme_;
  rma::Window<int> win_;
  std::vector<int> mine_;
};

void bench::one(const std::string& experiment, std::size_t rows, std::size_t columns) {
  const rma::Layout layout = layout_of(rows, columns);
  const auto turns = static_cast<double>(chosen_.turns);
  auto epoch = win_.lock_all();
  double value = 0;
  if (experiment == "latency" || experiment == "blocks") {
    value = on_origin([&] {
      return us_of([&] {
               for (int i = 0; i < chosen_.turns; ++i) put(layout, 1, 1);
             }) /
             turns;
    });
  } else if (experiment == "bandwidth") {
    value = on_origin([&] { return us_of([&] { put(layout, batch, 1); }) / static_cast<double>(batch); });
  } else if (experiment == "both-ways") {
    put(layout, 1, 1 - rt_.rank());
    rt_.world().barrier();
    value = us_of([&] {
              put(layout, batch, 1 - rt_.rank());
              rt_.world().barrier();
            }) /
            static_cast<double>(batch);
  } else if (experiment == "call") {
    value = on_origin([&] {
      const double us = us_of([&] { win_.put(mine_.data(), layout, 1, 0, layout); });
      win_.flush(1);
      return us;
    });
  } else if (experiment == "diagonals") {
    const rma::Layout same = diagonals(rows, columns, 0);
    const double known = on_origin([&] { return us_of([&] { put(same, 1, 1); }); });
    std::size_t which = 0;
    const double fresh = on_origin([&] {
      const rma::Layout next = diagonals(rows, columns, ++which);
      return us_of([&] { put(next, 1, 1); });
    });
    value = fresh / known;
  } else if (experiment == "gather" || experiment == "scatter") {
    const auto flat = rma::Layout::contiguous<int>(rows * columns);
    value = on_origin([&] {
      return us_of([&] {
               for (int i = 0; i < chosen_.turns; ++i) {
                 if (experiment == "gather") win_.put(mine_.data(), layout, 1, 0, flat);
                 if (experiment == "scatter") win_.get(mine_.data(), layout, 1, 0, flat);
                 win_.flush(1);
               }
             }) /
             turns;
    });
  } else if (experiment == "get-idle" || experiment == "get-busy") {
    value = on_origin([&] { return gets(layout); }, experiment == "get-busy");
  } else if (experiment == "get-overlap") {
    const auto transfer = [&](double compute_us) {
      return us_of([&] {
        win_.get(mine_.data(), layout, 1, 0, layout);
        rt_.compute(nanoseconds(static_cast<std::int64_t>(1000 * compute_us)));
        win_.flush(1);
      });
    };
    value = on_origin([&] {
      const double alone = transfer(0);
      return std::max(0.0, (2 * alone - transfer(alone)) / alone);
    });
  } else {
    throw std::runtime_error(fmt::format("there is no experiment '{}'", experiment));
  }
  epoch.unlock();
  say(experiment, rows, columns, value);
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  choice chosen;
  CLI::App app("Puts and gets of layouts, by each scheme; two ranks");
  app.add_option("--experiments", chosen.experiments, "Which")->delimiter(',');
  app.add_option("--schemes", chosen.schemes, "Which; contiguous: the same bytes in one piece")->delimiter(',');
  app.add_option("--columns", chosen.columns, "Ints of each row")->delimiter(',');
  app.add_option("--rows", chosen.rows, "Rows")->delimiter(',');
  app.add_option("--turns", chosen.turns, "Transfers of a latency");
  CLI11_PARSE(app, argc, argv);
  if (rt.size() != 2) throw std::runtime_error("this needs two ranks");
  for (const std::string& scheme : chosen.schemes) {
    bench b(rt, chosen, scheme);
    for (const std::string& experiment : chosen.experiments) b.run(experiment);
    b.free();
  }
  return 0;
}
