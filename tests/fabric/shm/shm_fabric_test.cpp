// SPDX-License-Identifier: Apache-2.0
// The shm fabric for the contract of all fabrics: the ranks' boards are made by threads of this process.
#include "fabric/shm/shm.hpp"

#include <memory>
#include <numeric>
#include <vector>

#include "fabric/contract_cases.hpp"
#include "fabric/shm/node.hpp"

namespace {

using rma::shm::board;
using rma::shm::shm_fabric;

class shm_job final : public rma::test::fabric_job {
 public:
  explicit shm_job(int size) {
    rma::boot::test::world ranks(size);
    boards_ = ranks.run([&](rma::boot::client& me) {
      std::vector<int> members(static_cast<std::size_t>(size));
      std::iota(members.begin(), members.end(), 0);
      auto made = std::make_unique<board>(me, rma::shm::test::settings_of(rma::shm::test::small), members,
                                          static_cast<std::size_t>(me.rank()));
      (void)me.fence();
      return made;
    });
    for (const auto& each : boards_)
      add_member(std::make_unique<rma::test::joined_rank<shm_fabric>>(std::make_unique<shm_fabric>(*each)));
  }
  shm_job(const shm_job&) = delete;
  shm_job& operator=(const shm_job&) = delete;
  ~shm_job() { remove_all(); }

 private:
  std::vector<std::unique_ptr<board>> boards_;
};

}  // namespace

void rma::test::with_fabric(int ranks, const std::function<void(fabric_job&)>& body) {
  shm_job job(ranks);
  run_with(job, body);
}
