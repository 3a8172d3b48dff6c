// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "armci/job.hpp"
#include "armci/letter_box.hpp"

namespace rma::armci {
namespace {

class plain_job final : public job {
 public:
  [[nodiscard]] Config config() const override { return {}; }
  void abort(int /*code*/) noexcept override {}  // the Runtime does that
  void began(const Team& world) override { letters_ = std::make_unique<letter_box>(world); }
  void send(state& s, int tag, const void* data, std::size_t bytes, int to) override {
    letters_->send(s.runtime, tag, data, bytes, to);
  }
  received receive(state& /*s*/, int tag, void* data, std::size_t room, int from) override {
    return letters_->receive(tag, data, room, from);
  }
  void ends() noexcept override { letters_.reset(); }

 private:
  std::unique_ptr<letter_box> letters_;
};

}  // namespace

std::unique_ptr<job> make_plain_job() { return std::make_unique<plain_job>(); }

bool is_started_by_rmarun() noexcept {
  const char* const boot = std::getenv("RMA_BOOT");
  return boot != nullptr && *boot != '\0' && std::getenv("RMA_RANK") != nullptr;
}

}  // namespace rma::armci
