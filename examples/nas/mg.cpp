// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS MG: Poisson's equation on a periodic cube by V-cycles of multigrid (NAS report RNR-94-007, section 2.2). The
/// cube is cut into boxes, one for each rank, with borders that neighbors fill. Levels on which a box would be thinner
/// than two points are small: every rank computes all of them.
///
/// \code
/// rmarun -n 4 nas_mg --class W --form nonblocking
/// \endcode

#include <array>

#include "exchange.hpp"
#include "verification.hpp"

namespace nas {
namespace {

using Triple = std::array<std::size_t, 3>;  // z, y, x: the last is the fastest

struct Problem {
  int levels;
  int cycles = 4;
};
constexpr Problem problem_of(char size) { return {size == 'S' ? 5 : 7}; }

/// Points of a box with a border of one on each side. Point 1 is the first inside.
class Box {
 public:
  explicit Box(const Triple& inside) : inside_(inside), data_((inside[0] + 2) * (inside[1] + 2) * (inside[2] + 2)) {}
  [[nodiscard]] std::size_t at(std::size_t k, std::size_t j, std::size_t i) const {
    return (k * (inside_[1] + 2) + j) * (inside_[2] + 2) + i;
  }
  double& operator()(std::size_t k, std::size_t j, std::size_t i) { return data_[at(k, j, i)]; }
  double operator()(std::size_t k, std::size_t j, std::size_t i) const { return data_[at(k, j, i)]; }
  [[nodiscard]] const Triple& inside() const { return inside_; }
  [[nodiscard]] double points() const { return static_cast<double>(inside_[0] * inside_[1] * inside_[2]); }
  [[nodiscard]] std::vector<double>& data() { return data_; }
  void clear() { std::fill(data_.begin(), data_.end(), 0.); }

  /// Starts and lengths of the plane number `which` across `axis`, with the borders of faster axes, whose exchange is
  /// over by then.
  struct Plane {
    Triple start, length;
    [[nodiscard]] std::size_t points() const { return length[0] * length[1] * length[2]; }
  };
  [[nodiscard]] Plane plane(std::size_t axis, std::size_t which) const {
    Plane p{{1, 1, 1}, inside_};
    for (std::size_t faster = axis + 1; faster < 3; ++faster) {
      p.start[faster] = 0;
      p.length[faster] += 2;
    }
    p.start[axis] = which;
    p.length[axis] = 1;
    return p;
  }
  [[nodiscard]] rma::Layout layout(const Plane& p) const {
    const Triple sizes = {inside_[0] + 2, inside_[1] + 2, inside_[2] + 2};
    return rma::Layout::subarray<double>(sizes, p.length, p.start);
  }
  template <class Visit>
  void each(const Plane& p, Visit visit) const {
    for (std::size_t k = p.start[0]; k < p.start[0] + p.length[0]; ++k) {
      for (std::size_t j = p.start[1]; j < p.start[1] + p.length[1]; ++j) {
        for (std::size_t i = p.start[2]; i < p.start[2] + p.length[2]; ++i) visit(at(k, j, i));
      }
    }
  }

 private:
  Triple inside_;
  std::vector<double> data_;
};

/// Ranks as a cuboid of powers of two, and where this one is.
struct Ranks {
  Ranks(int me, int ranks) {
    for (std::size_t left = static_cast<std::size_t>(ranks), axis = 0; left > 1; left /= 2, axis = (axis + 1) % 3)
      along[axis] *= 2;
    const auto m = static_cast<std::size_t>(me);
    place = {m / (along[1] * along[2]), m / along[2] % along[1], m % along[2]};
  }
  [[nodiscard]] int rank_of(const Triple& p) const {
    return static_cast<int>((p[0] * along[1] + p[1]) * along[2] + p[2]);
  }
  [[nodiscard]] int neighbor(std::size_t axis, std::size_t steps) const {
    Triple p = place;
    p[axis] = (p[axis] + steps) % along[axis];
    return rank_of(p);
  }
  Triple along = {1, 1, 1}, place = {0, 0, 0};
};

class Solver {
 public:
  Solver(Run& run, const Problem& problem)
      : run_(run),
        problem_(problem),
        ranks_(run.rank(), run.ranks()),
        exchange_(run, std::vector<std::size_t>(6, border_max())),
        v_(inside(problem.levels)) {
    for (int level = 0; level <= problem.levels; ++level) {
      u_.emplace_back(inside(level));
      r_.emplace_back(inside(level));
    }
    charges();
  }

  /// The norm of the last residual. One cycle that is not timed comes first.
  double run() {
    Box &u = u_.back(), &r = r_.back();
    residual(v_, u, r, problem_.levels);
    cycle();
    u.clear();
    run_.start();
    residual(v_, u, r, problem_.levels);
    for (int i = 0; i < problem_.cycles; ++i) {
      cycle();
      residual(v_, u, r, problem_.levels);
    }
    run_.stop();
    double sum = 0;
    r.each({{1, 1, 1}, r.inside()}, [&](std::size_t at) { sum += r.data()[at] * r.data()[at]; });
    const double points = std::pow(8., problem_.levels);
    return std::sqrt(run_.world().allreduce(sum, rma::sum) / points);
  }

 private:
  [[nodiscard]] bool shared_out(int level) const {
    const std::size_t most = std::max({ranks_.along[0], ranks_.along[1], ranks_.along[2]});
    return run_.ranks() == 1 || (std::size_t{1} << level) >= 2 * most;
  }
  [[nodiscard]] Triple inside(int level) const {
    const std::size_t n = std::size_t{1} << level;
    if (!shared_out(level)) return {n, n, n};
    return {n / ranks_.along[0], n / ranks_.along[1], n / ranks_.along[2]};
  }
  [[nodiscard]] std::size_t border_max() const {
    const Triple n = inside(problem_.levels);
    return std::max({(n[0] + 2) * (n[1] + 2), (n[1] + 2) * (n[2] + 2), (n[0] + 2) * (n[2] + 2)});
  }

  /// The right-hand side: 1 where the ten largest random numbers are, -1 where the ten smallest are.
  void charges() {
    struct Point {
      double value;
      std::size_t number;
    };
    const std::size_t n = std::size_t{1} << problem_.levels;
    const Triple& inside = v_.inside();
    const auto first = [&](std::size_t axis) { return ranks_.place[axis] * inside[axis]; };
    std::vector<Point> points;
    for (std::size_t k = 0; k < inside[0]; ++k) {
      for (std::size_t j = 0; j < inside[1]; ++j) {
        const std::size_t number = ((first(0) + k) * n + first(1) + j) * n + first(2);
        Random random;
        random.skip(number);
        for (std::size_t i = 0; i < inside[2]; ++i) points.push_back({random.next(), number + i});
      }
    }
    const auto less = [](const Point& a, const Point& b) { return a.value < b.value; };
    std::array<Point, 20> ends;
    std::partial_sort_copy(points.begin(), points.end(), ends.begin(), ends.begin() + 10, less);
    std::partial_sort_copy(points.begin(), points.end(), ends.begin() + 10, ends.end(),
                           [&](const Point& a, const Point& b) { return less(b, a); });
    std::vector<Point> all;
    for (const auto& of_rank : run_.world().allgather(ends)) all.insert(all.end(), of_rank.begin(), of_rank.end());
    std::sort(all.begin(), all.end(), less);
    all.erase(std::unique(all.begin(), all.end(), [](const Point& a, const Point& b) { return a.number == b.number; }),
              all.end());
    for (std::size_t which = 0; which < 20; ++which) {
      const std::size_t number = which < 10 ? all[which].number : all[all.size() + 9 - which].number;
      const Triple place = {number / (n * n), number / n % n, number % n};
      bool mine = true;
      for (std::size_t axis = 0; axis < 3; ++axis) mine = mine && place[axis] / inside[axis] == ranks_.place[axis];
      if (mine) v_(place[0] % inside[0] + 1, place[1] % inside[1] + 1, place[2] % inside[2] + 1) = which < 10 ? -1 : 1;
    }
    borders(v_, problem_.levels);
  }

  /// Fills the borders of a box, axis after axis, from the neighbors or from the box's other side.
  void borders(Box& box, int level) {
    for (std::size_t axis = 3; axis-- > 0;) {
      const std::size_t n = box.inside()[axis];
      if (!shared_out(level) || ranks_.along[axis] == 1) {
        copy(box, box.plane(axis, n), box.plane(axis, 0));
        copy(box, box.plane(axis, 1), box.plane(axis, n + 1));
        continue;
      }
      const int up = static_cast<int>(2 * axis), down = up + 1;  // slots
      const int next = ranks_.neighbor(axis, 1), before = ranks_.neighbor(axis, ranks_.along[axis] - 1);
      const std::size_t points = box.plane(axis, 1).points();
      exchange_.expect(up, before, points);
      exchange_.expect(down, next, points);
      exchange_.send(up, next, box.data().data(), box.layout(box.plane(axis, n)));
      exchange_.send(down, before, box.data().data(), box.layout(box.plane(axis, 1)));
      const double* from_before = exchange_.receive(up, before);
      const double* from_next = exchange_.receive(down, next);
      box.each(box.plane(axis, 0), [&](std::size_t at) { box.data()[at] = *from_before++; });
      box.each(box.plane(axis, n + 1), [&](std::size_t at) { box.data()[at] = *from_next++; });
    }
  }
  static void copy(Box& box, const Box::Plane& from, const Box::Plane& to) {
    std::vector<double> plane;
    box.each(from, [&](std::size_t at) { plane.push_back(box.data()[at]); });
    const double* next = plane.data();
    box.each(to, [&](std::size_t at) { box.data()[at] = *next++; });
  }

  /// Calls row(k, j, faces, edges) for each row of the inside: for each i the sums of b's four points beside it, and of
  /// its four diagonal ones, in the plane across x.
  template <class Row>
  static void rows(const Box& b, Row row) {
    std::vector<double> faces(b.inside()[2] + 2), edges(faces.size());
    for (std::size_t k = 1; k <= b.inside()[0]; ++k) {
      for (std::size_t j = 1; j <= b.inside()[1]; ++j) {
        for (std::size_t i = 0; i < faces.size(); ++i) {
          faces[i] = b(k, j - 1, i) + b(k, j + 1, i) + b(k - 1, j, i) + b(k + 1, j, i);
          edges[i] = b(k - 1, j - 1, i) + b(k - 1, j + 1, i) + b(k + 1, j - 1, i) + b(k + 1, j + 1, i);
        }
        row(k, j, faces, edges);
      }
    }
  }

  /// r = v - A u. `v` may be `r`.
  void residual(const Box& v, const Box& u, Box& r, int level) {
    constexpr double centre = -8. / 3, edge = 1. / 6, corner = 1. / 12;
    const std::size_t n = u.inside()[2];
    rows(u, [&](std::size_t k, std::size_t j, const auto& faces, const auto& edges) {
      for (std::size_t i = 1; i <= n; ++i) {
        r(k, j, i) = v(k, j, i) - centre * u(k, j, i) - edge * (edges[i] + faces[i - 1] + faces[i + 1]) -
                     corner * (edges[i - 1] + edges[i + 1]);
      }
    });
    run_.charge(18 * u.points());
    borders(r, level);
  }

  /// u += an approximate inverse of A, times r.
  void smooth(const Box& r, Box& u, int level) {
    constexpr double centre = -3. / 8, face = 1. / 32, edge = -1. / 64;
    const std::size_t n = r.inside()[2];
    rows(r, [&](std::size_t k, std::size_t j, const auto& faces, const auto& edges) {
      for (std::size_t i = 1; i <= n; ++i) {
        u(k, j, i) += centre * r(k, j, i) + face * (r(k, j, i - 1) + r(k, j, i + 1) + faces[i]) +
                      edge * (edges[i] + faces[i - 1] + faces[i + 1]);
      }
    });
    run_.charge(18 * r.points());
    borders(u, level);
  }

  /// The residual of level + 1 on this level: weighted means.
  void restrict_to(int level) {
    const Box& fine = r_[index(level + 1)];
    Box& coarse = r_[index(level)];
    const Triple inside = {fine.inside()[0] / 2, fine.inside()[1] / 2, fine.inside()[2] / 2};
    const bool gathered = inside != coarse.inside();
    std::vector<double> part;
    rows(fine, [&](std::size_t k, std::size_t j, const auto& faces, const auto& edges) {
      if (k % 2 != 0 || j % 2 != 0) return;
      for (std::size_t i = 2; i <= fine.inside()[2]; i += 2) {
        const double value = .5 * fine(k, j, i) + .25 * (fine(k, j, i - 1) + fine(k, j, i + 1) + faces[i]) +
                             .125 * (edges[i] + faces[i - 1] + faces[i + 1]) + .0625 * (edges[i - 1] + edges[i + 1]);
        if (gathered)
          part.push_back(value);
        else
          coarse(k / 2, j / 2, i / 2) = value;
      }
    });
    run_.charge(4 * fine.points());
    if (gathered) gather(part, inside, coarse);
    borders(coarse, level);
  }
  /// Every rank gets the parts of all.
  void gather(std::vector<double>& part, const Triple& inside, Box& whole) {
    std::vector<std::vector<double>> parts;
    run_.waiting([&] { parts = run_.world().allgatherv(std::span(part)); });
    for (int rank = 0; rank < run_.ranks(); ++rank) {
      const Triple place = Ranks(rank, run_.ranks()).place;
      const double* from = parts[index(rank)].data();
      const Box::Plane box{{place[0] * inside[0] + 1, place[1] * inside[1] + 1, place[2] * inside[2] + 1}, inside};
      whole.each(box, [&](std::size_t at) { whole.data()[at] = *from++; });
    }
  }

  /// Adds the interpolated u of the level below to u of this level, borders included.
  void interpolate_to(int level) {
    const Box& coarse = u_[index(level - 1)];
    Box& fine = u_[index(level)];
    Triple first = {0, 0, 0};
    if (shared_out(level) && !shared_out(level - 1)) {  // this rank's part of what all have
      for (std::size_t axis = 0; axis < 3; ++axis) first[axis] = ranks_.place[axis] * fine.inside()[axis] / 2;
    }
    const auto mean = [&](std::size_t k, std::size_t j, std::size_t i) {
      double sum = 0;
      const std::size_t z = first[0] + k / 2, y = first[1] + j / 2, x = first[2] + i / 2;
      for (std::size_t dz = 0; dz <= k % 2; ++dz) {
        for (std::size_t dy = 0; dy <= j % 2; ++dy) {
          for (std::size_t dx = 0; dx <= i % 2; ++dx) sum += coarse(z + dz, y + dy, x + dx);
        }
      }
      return sum / static_cast<double>((1 + k % 2) * (1 + j % 2) * (1 + i % 2));
    };
    for (std::size_t k = 0; k < fine.inside()[0] + 2; ++k) {
      for (std::size_t j = 0; j < fine.inside()[1] + 2; ++j) {
        for (std::size_t i = 0; i < fine.inside()[2] + 2; ++i) fine(k, j, i) += mean(k, j, i);
      }
    }
    run_.charge(4 * fine.points());
  }

  void cycle() {
    const int top = problem_.levels;
    for (int level = top - 1; level >= 1; --level) restrict_to(level);
    u_[1].clear();
    smooth(r_[1], u_[1], 1);
    for (int level = 2; level <= top; ++level) {
      Box &u = u_[index(level)], &r = r_[index(level)];
      if (level < top) u.clear();
      interpolate_to(level);
      residual(level < top ? r : v_, u, r, level);
      smooth(r, u, level);
    }
  }

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  Run& run_;
  Problem problem_;
  Ranks ranks_;
  Exchange exchange_;
  Box v_;
  std::vector<Box> u_, r_;
};

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  return nas::run_kernel(argc, argv, "mg", true, [](nas::Run& run) {
    nas::Solver solver(run, nas::problem_of(run.size()));
    return run.report({solver.run()}, {nas::published::mg(run.size())}, 1e-8);
  });
}
