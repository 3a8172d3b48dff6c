// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks that the program itself introduces to each other.
#include "boot/introduction.hpp"

namespace rma::boot {
namespace {

class program_session final : public introduction {
 public:
  explicit program_session(const options& how) : how_(how) {}

  [[nodiscard]] int rank() const noexcept override { return how_.rank; }
  [[nodiscard]] int size() const noexcept override { return how_.size; }
  [[nodiscard]] bool one_node() override { return how_.one_machine; }
  std::string from_rank_0(const std::string& text, int /*timeout_s*/) override { return how_.from_rank_0(text); }
  void abort(int /*code*/, std::string_view /*message*/) noexcept override {}  // the job's channel informs all ranks

 private:
  options how_;
};

}  // namespace

std::unique_ptr<introduction> introduce_by_program(const options& how) {
  if (!how.from_rank_0) throw Error(status::bad_boot, "RMA_BOOT=introduced is for programs: see Config::from_rank_0");
  if (how.size < 1 || how.rank < 0 || how.rank >= how.size) {
    throw Error(status::bad_boot, "Config::from_rank_0 needs Config::rank and Config::size: rank " +
                                      std::to_string(how.rank) + " of " + std::to_string(how.size) + " makes no sense");
  }
  return std::make_unique<program_session>(how);
}

}  // namespace rma::boot
