// SPDX-License-Identifier: Apache-2.0
#include "boot/introduction.hpp"

namespace rma::boot {

std::unique_ptr<introduction> introduce_by_pmix() {
  throw Error(status::bad_boot,
              "a PMIx launcher started this process, but this library was built without PMIx (libpmix-dev was not "
              "there); set RMA_BOOT=alone for jobs of one rank, or RMA_BOOT=tcp://HOST:PORT, RMA_RANK and RMA_SIZE");
}

}  // namespace rma::boot
