// SPDX-License-Identifier: Apache-2.0
// A three-dimensional FFT in slabs. Each rank has n / ranks planes; it transforms them in two dimensions, the cube is
// turned by an alltoall, and the third dimension follows. Blocking: all planes, then one alltoall. Pipelined: an
// ialltoall for each plane, under way while the next one is transformed.
//
//   rmarun -n 4 fft_3d 64
//
// Checked: forward and inverse give the input again, and both forms the same bits. Printed: the time that each form
// spends in communication.
#include <fftw3.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <rma/rma.hpp>
#include <span>
#include <utility>
#include <vector>

namespace {

using value = std::complex<double>;
using cube = std::vector<value>;

struct slabs {
  rma::Runtime& rt;
  rma::Team team;
  std::size_t n;       ///< points in each direction
  std::size_t planes;  ///< planes of this rank
  double communication_us = 0;

  [[nodiscard]] double now_us() const { return std::chrono::duration<double, std::micro>(rt.now()).count(); }

  void lines(value* at, int count, int stride, int distance, int sign) const {
    const int length = static_cast<int>(n);
    auto* const data = reinterpret_cast<fftw_complex*>(at);
    const fftw_plan plan = fftw_plan_many_dft(1, &length, count, data, nullptr, stride, distance, data, nullptr, stride,
                                              distance, sign, FFTW_ESTIMATE);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    const double points = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(count);
    rt.compute(std::chrono::nanoseconds(static_cast<std::int64_t>(points / static_cast<double>(n) * 5)));
  }
  /// Both dimensions of a plane.
  void plane(value* at, int sign) const {
    const int count = static_cast<int>(n);
    lines(at, count, 1, count, sign);
    lines(at, count, count, 1, sign);
  }
  /// The data of a plane for one rank are contiguous: the columns that this rank gets, one after the other.
  void pack(const value* from, value* to) const {
    for (std::size_t r = 0; r < static_cast<std::size_t>(team.size()); ++r)
      for (std::size_t c = 0; c < planes; ++c)
        for (std::size_t row = 0; row < n; ++row) *to++ = from[row * n + r * planes + c];
  }
  /// Plane p of every rank has come: place it so that lines of the third dimension lie in a row.
  void unpack(const value* from, std::size_t p, cube& turned) const {
    for (std::size_t r = 0; r < static_cast<std::size_t>(team.size()); ++r)
      for (std::size_t c = 0; c < planes; ++c)
        for (std::size_t row = 0; row < n; ++row) turned[(c * n + row) * n + r * planes + p] = *from++;
  }

  template <class Exchange>
  cube transform(cube data, int sign, Exchange&& exchange) {
    cube turned(data.size());
    exchange(data, turned, sign);
    for (std::size_t c = 0; c < planes; ++c)
      lines(&turned[c * n * n], static_cast<int>(n), 1, static_cast<int>(n), sign);
    return turned;
  }
  cube blocking(const cube& data, int sign) {
    return transform(data, sign, [this](cube& all, cube& turned, int s) {
      cube out(all.size()), in(all.size());
      for (std::size_t p = 0; p < planes; ++p) {
        plane(&all[p * n * n], s);
        pack(&all[p * n * n], &out[p * n * n]);
      }
      const double begin = now_us();
      for (std::size_t p = 0; p < planes; ++p)
        team.alltoall(std::span(out).subspan(p * n * n, n * n), std::span(in).subspan(p * n * n, n * n));
      communication_us += now_us() - begin;
      for (std::size_t p = 0; p < planes; ++p) unpack(&in[p * n * n], p, turned);
    });
  }
  cube pipelined(const cube& data, int sign) {
    return transform(data, sign, [this](cube& all, cube& turned, int s) {
      cube out(all.size()), in(all.size());
      std::vector<rma::Request> under_way;
      for (std::size_t p = 0; p < planes; ++p) {
        plane(&all[p * n * n], s);
        pack(&all[p * n * n], &out[p * n * n]);
        const double begin = now_us();
        under_way.push_back(
            team.ialltoall(std::span(out).subspan(p * n * n, n * n), std::span(in).subspan(p * n * n, n * n)));
        for (rma::Request& r : under_way) (void)r.test();
        communication_us += now_us() - begin;
      }
      for (std::size_t p = 0; p < planes; ++p) {
        const double begin = now_us();
        under_way[p].wait();
        communication_us += now_us() - begin;
        unpack(&in[p * n * n], p, turned);
      }
    });
  }
};

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const std::size_t n = argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 32;
  const auto ranks = static_cast<std::size_t>(rt.size());
  if (n == 0 || n % ranks != 0) {
    if (rt.rank() == 0) fmt::print(stderr, "fft_3d: the number of points must be a multiple of {} ranks\n", ranks);
    return 2;
  }
  slabs job{rt, rt.world(), n, n / ranks};
  cube input(n * n * job.planes);
  for (std::size_t i = 0; i < input.size(); ++i)
    input[i] = {std::sin(static_cast<double>(i + 1) * (rt.rank() + 1)), std::cos(static_cast<double>(3 * i))};

  const cube forward = job.blocking(input, FFTW_FORWARD);
  const double blocking_us = rt.world().allreduce(std::exchange(job.communication_us, 0), rma::max);
  const cube same = job.pipelined(input, FFTW_FORWARD);
  const double pipelined_us = rt.world().allreduce(job.communication_us, rma::max);
  const bool equal = std::memcmp(forward.data(), same.data(), forward.size() * sizeof(value)) == 0;

  // The turned cube's planes are columns: transforming it back turns it again.
  const cube back = job.pipelined(forward, FFTW_BACKWARD);
  double error = 0;
  const double points = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  for (std::size_t i = 0; i < input.size(); ++i) error = std::max(error, std::abs(back[i] / points - input[i]));
  error = rt.world().allreduce(error, rma::max);
  const bool right = rt.world().allreduce(equal ? 1 : 0, rma::min) == 1 && error < 1e-12;
  if (rt.rank() == 0) {
    fmt::print("fft of {}^3 on {} ranks: communication {:.1f} us blocking, {:.1f} us pipelined\n", n, ranks,
               blocking_us, pipelined_us);
    fmt::print("{}\n", right ? "inverse and pipelined form are right" : "WRONG");
  }
  return right ? 0 : 1;
}
