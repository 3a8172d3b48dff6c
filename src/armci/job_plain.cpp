// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <span>
#include <string>

#include "armci/job.hpp"
#include "rma/messages.hpp"

namespace rma::armci {
namespace {

class plain_job final : public job {
 public:
  [[nodiscard]] Config config() const override { return {}; }
  void abort(int /*code*/) noexcept override {}  // the Runtime does this
  void send(state& s, int tag, const void* data, std::size_t bytes, int to) override {
    check("armci_msg_snd", s.world.try_send(std::span(static_cast<const std::byte*>(data), bytes), to, tag));
  }
  received receive(state& s, int tag, void* data, std::size_t room, int from) override {
    Received what;
    const status how =
        s.world.recv_nothrow(std::span(static_cast<std::byte*>(data), room), from < 0 ? any_source : from, tag, what);
    if (how == status::message_too_long)
      fail("armci_msg_rcv", "a message of " + std::to_string(what.bytes) + " bytes from process " +
                                std::to_string(what.source) + " does not fit into " + std::to_string(room));
    check("armci_msg_rcv", how);
    return {what.bytes, what.source};
  }
};

}  // namespace

std::unique_ptr<job> make_plain_job() { return std::make_unique<plain_job>(); }

bool is_started_by_rmarun() noexcept {
  const char* const boot = std::getenv("RMA_BOOT");
  return boot != nullptr && *boot != '\0' && std::getenv("RMA_RANK") != nullptr;
}

}  // namespace rma::armci
