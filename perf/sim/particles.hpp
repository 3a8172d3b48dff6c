// SPDX-License-Identifier: Apache-2.0
/// \file
/// Particles of an N-body simulation, and the domains that ranks compute: recursive bisection.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace perf {

struct particle {
  std::array<double, 3> position;  ///< in a box from 0 to 1, closed in each direction
  std::array<float, 3> velocity;   ///< box lengths per step
  float mass;
  std::uint64_t id;
};
static_assert(sizeof(particle) == 48, "what the paper's program sends for a particle");

/// How matter is distributed.
struct cosmos {
  std::uint64_t count = std::uint64_t{128} * 128 * 128;
  std::uint64_t seed = 1;
  int clusters = 200;
  double background = 0.3;    ///< share of particles that are in no cluster
  double bulk = 0.006;        ///< rms of each component of a cluster's velocity, box lengths per step
  double dispersion = 0.003;  ///< rms of a particle's velocity in it
};

/// Clusters are Plummer spheres; their masses go as 1/m. The same for the same cosmos, on every machine whose library
/// has the same logarithm and cosine.
std::vector<particle> make_particles(const cosmos& of);

/// One step: each particle goes on with its velocity.
void drift(std::vector<particle>& all);

/// Domains of equal numbers of particles.
class domains {
 public:
  /// The box is cut across x where its particles are halved (or as the ranks of the two halves are), each half across
  /// y, then z, x and so on: rank r has a domain next to that of its sibling r ^ 1.
  domains(const std::vector<particle>& all, int ranks);

  [[nodiscard]] int owner(const std::array<double, 3>& position) const noexcept;
  [[nodiscard]] int ranks() const noexcept { return ranks_; }

 private:
  struct cut {
    unsigned axis = 0;
    double at = 0;
    int left = -1, right = -1;  ///< another cut, or -1 - rank
  };
  using point = std::array<double, 3>;
  int divide(point* first, point* last, int rank, int ranks, unsigned axis);

  int ranks_;
  int root_ = 0;
  std::vector<cut> cuts_{};
};

/// How many particles each rank sends to each: of the owner before, the owner now.
class exchange {
 public:
  explicit exchange(int ranks)
      : ranks_(ranks), counts_(static_cast<std::size_t>(ranks) * static_cast<unsigned>(ranks)) {}

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] std::uint64_t& of(int from, int to) noexcept { return counts_[at(from, to)]; }
  [[nodiscard]] std::uint64_t of(int from, int to) const noexcept { return counts_[at(from, to)]; }
  /// Those that change their rank.
  [[nodiscard]] std::uint64_t leaving(int from) const noexcept;
  [[nodiscard]] std::uint64_t coming(int to) const noexcept;
  [[nodiscard]] std::uint64_t moved() const noexcept;
  /// All that a rank had, all that it has.
  [[nodiscard]] std::uint64_t before(int rank) const noexcept;
  [[nodiscard]] std::uint64_t after(int rank) const noexcept;

 private:
  [[nodiscard]] std::size_t at(int from, int to) const noexcept {
    return static_cast<std::size_t>(from) * static_cast<unsigned>(ranks_) + static_cast<std::size_t>(to);
  }
  int ranks_;
  std::vector<std::uint64_t> counts_;
};

/// The ranks that had and that have each particle, for the same particles in the same order before and after a step.
exchange exchange_between(const std::vector<particle>& before, const domains& old_domains,
                          const std::vector<particle>& after, const domains& new_domains);

/// T_pack: ns of real time that this machine takes to gather a particle that leaves its rank.
double measure_pack_ns(const std::vector<particle>& before, const domains& old_domains,
                       const std::vector<particle>& after, const domains& new_domains);

}  // namespace perf
