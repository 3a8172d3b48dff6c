// SPDX-License-Identifier: Apache-2.0
/// \file
/// The communication of NAS SP and BT. A cube is cut into q x q x q cells for q x q ranks, so that each rank has one
/// cell in every slice across every axis: while a solve goes through the slices, no rank is idle. Each step exchanges
/// the faces of all cells, then solves along x, y and z: forward from slice to slice, and back.
#pragma once

#include <array>

#include "skeleton.hpp"

namespace nas {

/// Elements a point of a cell's face, in a solve's messages forward and back, and operations a point and step.
struct Multipartition {
  int n, steps;
  std::size_t forward, back;
  bool whole_cells;  ///< messages of a solve are as long as the largest cell needs, instead of this cell's inner points
  double flops;
};

class MultipartitionRun {
 public:
  MultipartitionRun(Run& run, const Multipartition& p) : skeleton_(run), p_(p) {
    while (q_ * q_ < run.ranks()) ++q_;
    const int i = run.rank() % q_, j = run.rank() / q_;
    for (int c = 0; c < q_; ++c) cells_.push_back({(i + c) % q_, (j - c + q_) % q_, c});
    const auto rank_at = [this](int x, int y) { return (x + q_) % q_ + q_ * ((y + q_) % q_); };
    before_ = {rank_at(i - 1, j), rank_at(i, j - 1), rank_at(i + 1, j - 1)};
    after_ = {rank_at(i + 1, j), rank_at(i, j + 1), rank_at(i - 1, j + 1)};
  }

  int run() {
    step();
    skeleton_.run().start();
    for (int i = 0; i < p_.steps; ++i) step();
    skeleton_.norms();
    skeleton_.run().stop();
    return skeleton_.report();
  }

 private:
  using Cell = std::array<int, 3>;
  enum { up_tag, down_tag = up_tag + 3, forward_tag = down_tag + 3, back_tag };

  /// Points of a cell along an axis; without those at the cube's surface.
  [[nodiscard]] int length(const Cell& cell, int axis) const {
    return p_.n / q_ + (at(cell, axis) < p_.n % q_ ? 1 : 0);
  }
  [[nodiscard]] int inner(const Cell& cell, int axis) const {
    return std::max(0, length(cell, axis) - (at(cell, axis) == 0) - (at(cell, axis) == q_ - 1));
  }
  [[nodiscard]] static int at(const Cell& cell, int axis) { return cell[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] static int rank(const std::array<int, 3>& ranks, int axis) {
    return ranks[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] double share() const { return p_.flops * p_.n * p_.n * p_.n / (q_ * q_); }

  void step() {
    faces();
    skeleton_.run().charge(.25 * share());
    for (int axis = 0; axis < 3; ++axis) solve(axis);
  }

  /// Two points of five values from each face that another cell touches.
  void faces() {
    if (q_ == 1) return;
    std::vector<Skeleton::Incoming> incoming;
    for (int axis = 0; axis < 3; ++axis) {
      incoming.push_back(skeleton_.expect(rank(before_, axis), up_tag + axis, faces_of(axis, 0)));
      incoming.push_back(skeleton_.expect(rank(after_, axis), down_tag + axis, faces_of(axis, q_ - 1)));
    }
    for (int axis = 0; axis < 3; ++axis) {
      skeleton_.start_send(rank(after_, axis), up_tag + axis, faces_of(axis, q_ - 1));
      skeleton_.start_send(rank(before_, axis), down_tag + axis, faces_of(axis, 0));
    }
    for (Skeleton::Incoming& message : incoming) skeleton_.receive(std::move(message));
    skeleton_.complete();
  }
  [[nodiscard]] std::size_t faces_of(int axis, int except) const {
    std::size_t count = 0;
    for (const Cell& cell : cells_) {
      if (at(cell, axis) != except)
        count += static_cast<std::size_t>(10 * length(cell, (axis + 1) % 3) * length(cell, (axis + 2) % 3));
    }
    return count;
  }

  [[nodiscard]] std::size_t points(const Cell& cell, int axis) const {
    const int most = p_.n / q_ + 1;
    if (p_.whole_cells) return static_cast<std::size_t>(most * most);
    return static_cast<std::size_t>(inner(cell, (axis + 1) % 3) * inner(cell, (axis + 2) % 3));
  }
  [[nodiscard]] const Cell& slice(int axis, int number) const {
    return *std::find_if(cells_.begin(), cells_.end(), [&](const Cell& cell) { return at(cell, axis) == number; });
  }

  void solve(int axis) {
    for (int i = 0; i < q_; ++i) {
      const std::size_t count = p_.forward * points(slice(axis, i), axis);
      std::optional<Skeleton::Incoming> incoming;
      if (i > 0) incoming = skeleton_.expect(rank(before_, axis), forward_tag, count);
      skeleton_.run().charge(.1 * share() / q_);  // this work needs nothing from the slice before
      if (incoming) skeleton_.receive(std::move(*incoming));
      skeleton_.run().charge(.1 * share() / q_);
      skeleton_.complete();
      if (i + 1 < q_) skeleton_.start_send(rank(after_, axis), forward_tag, count);
    }
    for (int i = q_ - 1; i >= 0; --i) {
      const std::size_t count = p_.back * points(slice(axis, i), axis);
      if (i + 1 < q_) skeleton_.receive(rank(after_, axis), back_tag, count);
      skeleton_.run().charge(.05 * share() / q_);
      skeleton_.complete();
      if (i > 0) skeleton_.start_send(rank(before_, axis), back_tag, count);
    }
    skeleton_.complete();
  }

  Skeleton skeleton_;
  Multipartition p_;
  int q_ = 1;
  std::vector<Cell> cells_;
  std::array<int, 3> before_{}, after_{};
};

inline bool square(int n) {
  int root = 1;
  while (root * root < n) ++root;
  return root * root == n;
}

}  // namespace nas
