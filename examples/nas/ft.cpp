// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS FT: the heat equation on a periodic box by three-dimensional Fourier transforms (NAS report RNR-94-007, section
/// 2.5). Ranks have planes across z; to transform along z they send each other what makes planes across y.
///
/// \code
/// rmarun -n 4 nas_ft --class W
/// \endcode

#include <numbers>

#include "kernel.hpp"
#include "verification.hpp"

namespace nas {
namespace {

using Complex = std::complex<double>;

struct Problem {
  std::size_t nx, ny, nz;
  int steps = 6;
};
constexpr Problem problem_of(char size) { return size == 'S' ? Problem{64, 64, 64} : Problem{128, 128, 32}; }

/// Transforms of one length, a power of two.
class Fourier {
 public:
  explicit Fourier(std::size_t n) : n_(n) {
    for (std::size_t k = 0; k < n / 2; ++k)
      roots_.push_back(std::polar(1., -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
  }
  /// In place, of n elements `stride` apart. Nothing is divided by n.
  void transform(Complex* data, std::size_t stride, bool inverse) {
    line_.resize(n_);
    for (std::size_t i = 0, reversed = 0; i < n_; ++i) {
      line_[reversed] = data[i * stride];
      std::size_t bit = n_ / 2;
      while (bit != 0 && (reversed & bit) != 0) reversed ^= bit, bit /= 2;
      reversed |= bit;
    }
    for (std::size_t half = 1; half < n_; half *= 2) {
      for (std::size_t first = 0; first < n_; first += 2 * half) {
        for (std::size_t k = 0; k < half; ++k) {
          const Complex root = roots_[k * (n_ / (2 * half))];
          Complex &a = line_[first + k], &b = line_[first + k + half];
          const double im = inverse ? -root.imag() : root.imag();
          const Complex product(b.real() * root.real() - b.imag() * im, b.real() * im + b.imag() * root.real());
          b = a - product;
          a += product;
        }
      }
    }
    for (std::size_t i = 0; i < n_; ++i) data[i * stride] = line_[i];
  }

 private:
  std::size_t n_;
  std::vector<Complex> roots_, line_;
};

class Solver {
 public:
  Solver(Run& run, const Problem& p)
      : run_(run),
        p_(p),
        ranks_(static_cast<std::size_t>(run.ranks())),
        me_(static_cast<std::size_t>(run.rank())),
        planes_(p.nz / ranks_),
        rows_(p.ny / ranks_),
        along_x_(p.nx),
        along_y_(p.ny),
        along_z_(p.nz),
        out_(planes_ * p.ny * p.nx),
        in_(out_.size()) {}

  /// Checksums of all steps. A transform that is not timed comes first.
  std::vector<double> run() {
    std::vector<Complex> space = start(), wave(space.size());
    forward(space, wave);
    space = start();
    run_.start();
    forward(space, wave);
    const std::vector<double> decay = decays();
    std::vector<double> sums;
    std::vector<Complex> now;
    for (int step = 1; step <= p_.steps; ++step) {
      for (std::size_t i = 0; i < wave.size(); ++i) wave[i] *= decay[i];
      now = wave;
      inverse(now, space);
      const Complex sum = checksum(space);
      sums.insert(sums.end(), {sum.real(), sum.imag()});
    }
    run_.stop();
    return sums;
  }

 private:
  /// This rank's planes: [z][y][x].
  [[nodiscard]] std::vector<Complex> start() const {
    std::vector<Complex> space;
    Random random;
    random.skip(2 * me_ * planes_ * p_.ny * p_.nx);
    for (std::size_t i = 0; i < planes_ * p_.ny * p_.nx; ++i) {
      const double real = random.next();
      space.emplace_back(real, random.next());
    }
    return space;
  }
  /// Factor of each wave in a time step: [y][x][z].
  [[nodiscard]] std::vector<double> decays() const {
    const auto square = [](std::size_t i, std::size_t n) {
      const double k = static_cast<double>((i + n / 2) % n) - static_cast<double>(n / 2);
      return k * k;
    };
    std::vector<double> decay;
    for (std::size_t y = me_ * rows_; y < (me_ + 1) * rows_; ++y) {
      for (std::size_t x = 0; x < p_.nx; ++x) {
        for (std::size_t z = 0; z < p_.nz; ++z) {
          const double k2 = square(x, p_.nx) + square(y, p_.ny) + square(z, p_.nz);
          decay.push_back(std::exp(-4e-6 * std::numbers::pi * std::numbers::pi * k2));
        }
      }
    }
    return decay;
  }

  void forward(std::vector<Complex>& space, std::vector<Complex>& wave) {
    planes(space, false);
    // Part by part what the other ranks transform: [their y][x][my z].
    for_blocks([&](std::size_t at, std::size_t rank, std::size_t y, std::size_t x, std::size_t z) {
      out_[at] = space[(z * p_.ny + rank * rows_ + y) * p_.nx + x];
    });
    exchange();
    for_blocks([&](std::size_t at, std::size_t rank, std::size_t y, std::size_t x, std::size_t z) {
      wave[(y * p_.nx + x) * p_.nz + rank * planes_ + z] = in_[at];
    });
    lines(wave, false);
  }
  void inverse(std::vector<Complex>& wave, std::vector<Complex>& space) {
    lines(wave, true);
    for_blocks([&](std::size_t at, std::size_t rank, std::size_t y, std::size_t x, std::size_t z) {
      out_[at] = wave[(y * p_.nx + x) * p_.nz + rank * planes_ + z];
    });
    exchange();
    for_blocks([&](std::size_t at, std::size_t rank, std::size_t y, std::size_t x, std::size_t z) {
      space[(z * p_.ny + rank * rows_ + y) * p_.nx + x] = in_[at];
    });
    planes(space, true);
  }
  template <class Visit>
  void for_blocks(Visit visit) const {
    std::size_t at = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t y = 0; y < rows_; ++y) {
        for (std::size_t x = 0; x < p_.nx; ++x) {
          for (std::size_t z = 0; z < planes_; ++z) visit(at++, rank, y, x, z);
        }
      }
    }
  }

  /// Along x and y of this rank's planes.
  void planes(std::vector<Complex>& space, bool inverse) {
    for (std::size_t z = 0; z < planes_; ++z) {
      Complex* const plane = &space[z * p_.ny * p_.nx];
      for (std::size_t y = 0; y < p_.ny; ++y) along_x_.transform(plane + y * p_.nx, 1, inverse);
      for (std::size_t x = 0; x < p_.nx; ++x) along_y_.transform(plane + x, p_.nx, inverse);
    }
    charge(p_.nx * p_.ny);
  }
  /// Along z.
  void lines(std::vector<Complex>& wave, bool inverse) {
    for (std::size_t i = 0; i < rows_ * p_.nx; ++i) along_z_.transform(&wave[i * p_.nz], 1, inverse);
    charge(p_.nz);
  }
  void charge(std::size_t length) {
    run_.charge(5 * static_cast<double>(out_.size()) * std::log2(static_cast<double>(length)));
  }

  /// Part i of `out_` goes to rank i, whose part comes to place i of `in_`.
  void exchange() {
    const std::size_t length = out_.size() / ranks_;
    std::vector<rma::MessageRequest> requests;
    for (std::size_t step = 1; step < ranks_; ++step) {
      const std::size_t from = me_ ^ step;
      requests.push_back(run_.world().irecv(std::span(&in_[from * length], length), static_cast<int>(from), 0));
    }
    for (std::size_t step = 1; step < ranks_; ++step) {
      const std::size_t to = me_ ^ step;
      requests.push_back(run_.world().isend(std::span(&out_[to * length], length), static_cast<int>(to), 0));
    }
    std::copy_n(&out_[me_ * length], length, &in_[me_ * length]);
    run_.waiting([&] { rma::wait_all(requests); });
  }

  Complex checksum(const std::vector<Complex>& space) {
    double sum[2] = {0, 0};
    for (std::size_t j = 1; j <= 1024; ++j) {
      const std::size_t x = j % p_.nx, y = 3 * j % p_.ny, z = 5 * j % p_.nz;
      if (z / planes_ != me_) continue;
      const Complex value = space[(z % planes_ * p_.ny + y) * p_.nx + x];
      sum[0] += value.real();
      sum[1] += value.imag();
    }
    run_.waiting([&] { run_.world().allreduce(std::span(sum), rma::sum); });
    const auto points = static_cast<double>(p_.nx * p_.ny * p_.nz);
    return {sum[0] / points, sum[1] / points};
  }

  Run& run_;
  Problem p_;
  std::size_t ranks_, me_, planes_, rows_;
  Fourier along_x_, along_y_, along_z_;
  std::vector<Complex> out_, in_;
};

}  // namespace
}  // namespace nas

int main(int argc, char** argv) {
  return nas::run_kernel(argc, argv, "ft", false, [](nas::Run& run) {
    const nas::Problem problem = nas::problem_of(run.size());
    if (static_cast<std::size_t>(run.ranks()) > problem.nz) {
      return example::reject(run.runtime(), "nas_ft", "there are more ranks than planes");
    }
    nas::Solver solver(run, problem);
    return run.report(solver.run(), nas::published::ft(run.size()), 1e-12);
  });
}
