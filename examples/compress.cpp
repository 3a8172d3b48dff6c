// SPDX-License-Identifier: Apache-2.0
// Parallel compression: each rank compresses its blocks, rank 0 gathers them. Blocking: everything is compressed, then
// gathered. Pipelined: an igather of each block is under way while the next one is compressed.
//
//   rmarun -n 4 compress 16
//
// Checked: what rank 0 has is, decompressed, what the ranks began with, in both forms. Printed: the time that each form
// spends in communication.
#include <fmt/format.h>
#include <zstd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <rma/rma.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

using bytes = std::vector<char>;
constexpr std::size_t block_bytes = 256 << 10;

/// The same wherever it is asked for: text that can be compressed.
bytes block_of(int rank, std::size_t number) {
  bytes block;
  std::uint64_t x = static_cast<std::uint64_t>(rank) * 1000 + number + 1;
  while (block.size() < block_bytes) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::string word = fmt::format("{} ", (x >> 33) % 997);
    block.insert(block.end(), word.begin(), word.end());
  }
  block.resize(block_bytes);
  return block;
}

struct job {
  rma::Runtime& rt;
  rma::Team team;
  std::size_t blocks;
  std::size_t slot = ZSTD_compressBound(block_bytes) + 8;
  std::vector<bytes> out{}, in{};
  double communication_us = 0;

  [[nodiscard]] double now_us() const { return std::chrono::duration<double, std::micro>(rt.now()).count(); }
  void compress(std::size_t i) {
    const bytes block = block_of(rt.rank(), i);
    out[i].assign(slot, 0);
    const std::uint64_t size = ZSTD_compress(out[i].data() + 8, slot - 8, block.data(), block.size(), 3);
    std::memcpy(out[i].data(), &size, 8);
    rt.compute(std::chrono::microseconds(500));
  }
  void prepare() {
    out.assign(blocks, {});
    in.assign(blocks, bytes(rt.rank() == 0 ? slot * static_cast<std::size_t>(team.size()) : 0));
    communication_us = 0;
  }
  void blocking() {
    prepare();
    for (std::size_t i = 0; i < blocks; ++i) compress(i);
    const double begin = now_us();
    for (std::size_t i = 0; i < blocks; ++i) team.gather(std::span(out[i]), std::span(in[i]), 0);
    communication_us = now_us() - begin;
  }
  void pipelined() {
    prepare();
    std::vector<rma::Request> under_way;
    for (std::size_t i = 0; i < blocks; ++i) {
      compress(i);
      const double begin = now_us();
      under_way.push_back(team.igather(std::span(out[i]), std::span(in[i]), 0));
      for (rma::Request& r : under_way) (void)r.test();
      communication_us += now_us() - begin;
    }
    const double begin = now_us();
    rma::wait_all(under_way);
    communication_us += now_us() - begin;
  }
  [[nodiscard]] bool right() const {
    if (rt.rank() != 0) return true;
    for (std::size_t i = 0; i < blocks; ++i) {
      for (int r = 0; r < team.size(); ++r) {
        const char* const at = in[i].data() + static_cast<std::size_t>(r) * slot;
        std::uint64_t size = 0;
        std::memcpy(&size, at, 8);
        bytes block(block_bytes);
        const std::size_t got = ZSTD_decompress(block.data(), block.size(), at + 8, size);
        if (got != block_bytes || block != block_of(r, i)) return false;
      }
    }
    return true;
  }
};

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  job all{rt, rt.world(), argc > 1 ? static_cast<std::size_t>(std::atoi(argv[1])) : 8};
  all.blocking();
  bool right = all.right();
  const double blocking_us = rt.world().allreduce(all.communication_us, rma::max);
  all.pipelined();
  right = all.right() && right;
  const double pipelined_us = rt.world().allreduce(all.communication_us, rma::max);
  right = rt.world().allreduce(right ? 1 : 0, rma::min) == 1;
  if (rt.rank() == 0) {
    fmt::print("{} blocks of {} ranks: communication {:.1f} us blocking, {:.1f} us pipelined\n", all.blocks,
               all.team.size(), blocking_us, pipelined_us);
    fmt::print("{}\n", right ? "what was gathered is right" : "WRONG");
  }
  return right ? 0 : 1;
}
