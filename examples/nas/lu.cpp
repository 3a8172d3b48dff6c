// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS LU as a communication skeleton: two sweeps through the planes of a cube in each step, in which a rank hands a
/// line of five values a point on to its two neighbors plane by plane, then an exchange of faces two points thick.
///
/// \code
/// RMA_RENDEZVOUS=put rmarun -n 4 nas_lu --class W
/// \endcode

#include "skeleton.hpp"

namespace nas {
namespace {

struct Problem {
  int n, steps;
};
constexpr Problem problem_of(char size) { return size == 'S' ? Problem{12, 50} : Problem{33, 300}; }

constexpr int none = -1;

/// x is dealt out over as many ranks as y, or over twice as many.
struct Grid {
  Grid(int me, int ranks, int n) {
    while (along_y * along_y * 4 <= ranks) along_y *= 2;
    along_x = ranks / along_y;
    const int row = me % along_x, column = me / along_x;
    north = row > 0 ? me - 1 : none;
    south = row + 1 < along_x ? me + 1 : none;
    west = column > 0 ? me - along_x : none;
    east = column + 1 < along_y ? me + along_x : none;
    nx = n / along_x + (row < n % along_x ? 1 : 0);
    ny = n / along_y + (column < n % along_y ? 1 : 0);
  }
  /// Points that are not at the cube's surface.
  [[nodiscard]] std::size_t inner_x() const { return size(nx - (north == none) - (south == none)); }
  [[nodiscard]] std::size_t inner_y() const { return size(ny - (west == none) - (east == none)); }
  static std::size_t size(int count) { return static_cast<std::size_t>(std::max(count, 0)); }

  int along_x = 1, along_y = 1;
  int north, south, west, east;
  int nx, ny;
};

class Lu {
 public:
  Lu(Run& run, const Problem& p) : skeleton_(run), p_(p), grid_(run.rank(), run.ranks(), p.n) {}

  int run() {
    faces();
    skeleton_.norms();
    skeleton_.run().start();
    for (int step = 0; step < p_.steps; ++step) {
      for (int k = 1; k + 1 < p_.n; ++k) plane(grid_.north, grid_.west, grid_.south, grid_.east);
      for (int k = 1; k + 1 < p_.n; ++k) plane(grid_.south, grid_.east, grid_.north, grid_.west);
      faces();
      charge(385 * p_.n);
    }
    skeleton_.norms();
    skeleton_.run().stop();
    return skeleton_.report();
  }

 private:
  enum { sweep_tag, face_tag };

  void charge(int flops_per_column) {
    skeleton_.run().charge(static_cast<double>(flops_per_column) * grid_.nx * grid_.ny);
  }

  /// One plane of a sweep: from two neighbors, to the other two.
  void plane(int from_x, int from_y, int to_x, int to_y) {
    const std::size_t line_y = 5 * grid_.inner_y(), line_x = 5 * grid_.inner_x();
    if (from_x != none) skeleton_.receive(from_x, sweep_tag, line_y);
    if (from_y != none) skeleton_.receive(from_y, sweep_tag, line_x);
    charge(800);
    if (to_x != none) skeleton_.send(to_x, sweep_tag, line_y);
    if (to_y != none) skeleton_.send(to_y, sweep_tag, line_x);
  }

  void faces() {
    const auto face_x = static_cast<std::size_t>(10 * grid_.ny * p_.n),
               face_y = static_cast<std::size_t>(10 * grid_.nx * p_.n);
    shift(grid_.north, grid_.south, face_x);
    shift(grid_.south, grid_.north, face_x);
    shift(grid_.west, grid_.east, face_y);
    shift(grid_.east, grid_.west, face_y);
  }
  void shift(int from, int to, std::size_t count) {
    std::optional<Skeleton::Incoming> incoming;
    if (from != none) incoming = skeleton_.expect(from, face_tag, count);
    if (to != none) skeleton_.send(to, face_tag, count);
    if (incoming) skeleton_.receive(std::move(*incoming));
  }

  Skeleton skeleton_;
  Problem p_;
  Grid grid_;
};

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  return nas::run_kernel(argc, argv, "lu", false,
                         [](nas::Run& run) { return nas::Lu(run, nas::problem_of(run.size())).run(); });
}
